// How an operation goes on: its stages, its rate, and when too many of its items have failed. Nothing here touches a store.
import type { TakenOperation } from "../storage/operations-step.ts";
import { BATCH_ROWS } from "./batches.ts";

/** So many items of an operation are at work at once, at the most: what comes after a failure can still be held back. */
export const AT_WORK_MAX = 1000;

/** Outside of the canary's stages, fewer ended items than this say nothing. */
const JUDGED_MIN = 10;

/** Time that went by unused is made up for, but no more than this. */
const BURST_MS = 250;

/** How soon an operation is looked at again while its items move, and at the latest. */
export const LOOK_MS = { soon: 200, late: 2000 } as const;

type Judged = Pick<
  TakenOperation,
  | "stage"
  | "stageLeft"
  | "waiting"
  | "replayed"
  | "done"
  | "dead"
  | "judgedBefore"
  | "failedBefore"
  | "failureLimit"
>;

/** Why the operation must not go on; undefined where it may. Where nothing is left to replay there is nothing to stop. */
export function judge(operation: Judged): string | undefined {
  const { stage, stageLeft, waiting, replayed, failureLimit } = operation;
  const judged = operation.done + operation.dead - operation.judgedBefore;
  const failed = operation.dead - operation.failedBefore;
  if (waiting === 0 || failed === 0 || failureLimit === null) return undefined;
  if (stage === "one")
    return `${failed} of ${judged} died again in the canary's first stage, where none may.`;
  // of eleven the order in which they end must not matter: those that have not are taken for good ones
  const open = stage === "ten" ? replayed + Math.min(stageLeft ?? 0, waiting) : 0;
  if (stage === "all" && judged < JUDGED_MIN) return undefined;
  if (failed / (judged + open) <= failureLimit) return undefined;
  const share = failed / judged;
  return `${failed} of ${judged} died again: ${percent(share)} is above the limit of ${percent(failureLimit)}.`;
}

/** With a digit behind the point where there is one: 9.7 % must not read as 10 %. */
const percent = (share: number) => `${Math.round(share * 1000) / 10} %`;

/** The stage of an operation, the next one where this one's items have ended. */
export function advance({
  stage,
  stageLeft,
  replayed,
}: Pick<TakenOperation, "stage" | "stageLeft" | "replayed">): Pick<TakenOperation, "stage" | "stageLeft"> {
  if (stage === "all" || stageLeft !== 0 || replayed > 0) return { stage, stageLeft };
  return stage === "one" ? { stage: "ten", stageLeft: 10 } : { stage: "all", stageLeft: null };
}

/** How many items may be done now. */
export function sizeOf(
  operation: Pick<
    TakenOperation,
    "kind" | "state" | "waiting" | "replayed" | "stageLeft" | "rate" | "allowedMs"
  >,
): number {
  if (operation.state !== "running") return 0;
  return Math.min(
    BATCH_ROWS,
    operation.waiting,
    operation.stageLeft ?? BATCH_ROWS,
    operation.kind === "replay" ? Math.max(0, AT_WORK_MAX - operation.replayed) : BATCH_ROWS,
    allowedBy(operation),
  );
}

function allowedBy({ rate, allowedMs }: Pick<TakenOperation, "rate" | "allowedMs">): number {
  if (rate === null) return BATCH_ROWS;
  return allowedMs < 0 ? 0 : Math.floor((Math.min(allowedMs, BURST_MS) * rate) / 1000) + 1;
}

/** In how many milliseconds the rate allows the next item, after so many were done. */
export function pace({ rate, allowedMs }: Pick<TakenOperation, "rate" | "allowedMs">, count: number): number {
  if (rate === null || count === 0) return -allowedMs;
  return -Math.min(allowedMs, BURST_MS) + (count * 1000) / rate;
}

/** In how many milliseconds the operation is looked at again. */
export function nextLook(
  operation: Parameters<typeof sizeOf>[0],
  { moved, idleMs }: { readonly moved: boolean; readonly idleMs: number },
): number {
  if (sizeOf(operation) > 0) return 0;
  // one that waits for days need not be looked at five times a second
  const look = moved ? LOOK_MS.soon : Math.min(LOOK_MS.late, Math.max(LOOK_MS.soon, idleMs / 10));
  const paced =
    operation.allowedMs < 0 && sizeOf({ ...operation, allowedMs: 0 }) > 0 ? -operation.allowedMs : look;
  return Math.min(look, paced);
}

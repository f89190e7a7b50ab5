// An effect that cannot be begun: what it holds is sealed under a key that this process lacks, was changed, or was erased.
import { UkemiError } from "../errors.ts";
import { expireEffect } from "../storage/effects-settle.ts";
import { giveBack } from "../storage/give-back.ts";
import { transaction, type Queryable } from "../storage/postgres.ts";
import { settleFailed, type KeptError } from "../storage/settle-failed.ts";
import type { EffectEnd, EffectRun } from "./effect-run.ts";
import { keepError } from "./kept-error.ts";

/** How long it waits for somebody who has the key. */
const SEALED_PAUSE_MS = 10_000;

/** The class of what is kept of it, where the key is missing. */
export const SEALED = "UkemiError body_sealed";

/** True where the intent is there, and cannot be read. */
export function isUnreadable(error: unknown): error is UkemiError {
  return error instanceof UkemiError && (error.code === "body_sealed" || error.code === "body_altered");
}

/** Nothing was begun. Another process may have the key; what was changed stays changed, and a person must know. */
export async function settleUnread(
  run: EffectRun,
  effect: string,
  unreadable: UkemiError,
): Promise<EffectEnd> {
  const error = keepError(unreadable);
  if (unreadable.code === "body_altered")
    return transaction(run.pool, (client) => bury(run, client, effect, error));
  const { job } = run.running;
  let isBack: boolean | undefined;
  await run.returns.until(async () => {
    const back = { reason: error.message, delayMs: SEALED_PAUSE_MS };
    isBack = (await giveBack(run.pool, [job], back)).has(job.id);
  });
  return { outcome: isBack === true ? "returned" : "lost", error, effect };
}

const ERASED: KeptError = {
  class: "ContentErased",
  message: "what it held was erased: it can never be carried out",
  stack: null,
};

/** Whoever replays such a dead letter is told why it is dead again. */
export async function settleErased(run: EffectRun, client: Queryable, effect: string): Promise<EffectEnd> {
  await expireEffect(client, effect, ERASED.message);
  return bury(run, client, effect, ERASED);
}

async function bury(run: EffectRun, client: Queryable, effect: string, error: KeptError): Promise<EffectEnd> {
  const death = await settleFailed(
    client,
    run.running.job,
    { next: "die", death: "terminal", error },
    run.tried(),
  );
  return { outcome: "dead", ...(death !== null && { death }), error, effect };
}

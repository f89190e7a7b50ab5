// Erasing one subject: previewed, audited, in small transactions, and never under a handler at work.
import { UkemiError } from "../errors.ts";
import {
  chooseErasure,
  previewErasure,
  type ErasureFilter,
  type ErasurePreview,
} from "../storage/erasure-choice.ts";
import { eraseBodies, eraseRejections, type Erasing } from "../storage/erasure.ts";
import type { Pool } from "../storage/postgres.ts";
import { letRun, type BatchOptions } from "./batches.ts";
import type { Read } from "./read.ts";
import { readMandate, readText, wrong, type Mandate } from "./mandate.ts";
import { inTransaction, surroundingClient } from "./transaction.ts";

/** Whose bodies are erased. Exactly one of `ref` and `event` is given. */
export interface ErasureRequest extends ErasureFilter {
  /**
   * Also bodies that jobs still need. Unfinished jobs are then cancelled; dead letters stay, and cannot be replayed.
   * @default false: such an erasure is refused
   */
  readonly includeUnfinished?: boolean;
}

/** What an erasure did. */
export interface ErasureResult {
  /** Events that were not erased before. */
  readonly events: number;
  readonly bodies: number;
  /** Effects whose content was erased. */
  readonly effects: number;
  readonly jobs_cancelled: number;
  /** Refused requests that were removed from the quarantine. */
  readonly rejections: number;
  /** Events that were left because a handler is at work on them: erase again when it has ended. */
  readonly left_running: number;
  /** Events that were left because jobs have come to need their body meanwhile. */
  readonly left_unfinished: number;
  /** True where it was stopped before the end. */
  readonly stopped: boolean;
}

/** How many events one transaction erases at the most. */
const BATCH_EVENTS = 500;
const TEXT_MAX = 500;

/** Says what an erasure would touch. */
export async function previewErase(read: Read, request: ErasureRequest): Promise<ErasurePreview> {
  const filter = readRequest(request);
  return read((client) => previewErasure(client, filter));
}

/** Erases; what is done stays done when it is stopped or fails, and asking again does the rest, and what has come since. */
export async function erase(
  { open, read }: { readonly open: () => Promise<Pool>; readonly read: Read },
  request: ErasureRequest,
  mandate: Mandate,
  options: BatchOptions = {},
): Promise<ErasureResult> {
  const filter = readRequest(request);
  const includeUnfinished = request.includeUnfinished ?? false;
  const subject = (filter.ref ?? filter.event)!;
  const erasing: Erasing = { ...readMandate(mandate), subject, includeUnfinished };
  if (!includeUnfinished) refuseNeeded(await read((client) => previewErasure(client, filter)));
  const pool = await open();
  const events = await chooseErasure(surroundingClient() ?? pool, filter);
  const sum = { events: 0, bodies: 0, effects: 0, jobs_cancelled: 0, left_running: 0, left_unfinished: 0 };
  let done = 0;
  while (done < events.length && !options.signal?.aborted) {
    const ids = events.slice(done, done + BATCH_EVENTS);
    const batch = await inTransaction(pool, (client) => eraseBodies(client, ids, erasing));
    await letRun(pool, batch.keys);
    done += ids.length;
    sum.events += batch.events;
    sum.bodies += batch.bodies;
    sum.effects += batch.effects;
    sum.jobs_cancelled += batch.cancelled;
    sum.left_running += batch.leftRunning;
    sum.left_unfinished += batch.leftUnfinished;
    options.onProgress?.({ done, total: events.length });
  }
  const stopped = options.signal?.aborted ?? false;
  const rejections = stopped
    ? 0
    : await inTransaction(pool, (client) => eraseRejections(client, filter, erasing));
  return { ...sum, rejections, stopped };
}

function readRequest({ ref, event, tenants }: ErasureRequest): ErasureFilter {
  if ((ref === undefined) === (event === undefined)) {
    throw wrong("ref", "must be given, or else the parameter event");
  }
  return {
    ref: ref === undefined ? undefined : readText("ref", ref, TEXT_MAX),
    event: event === undefined ? undefined : readText("event", event, TEXT_MAX),
    tenants,
  };
}

function refuseNeeded({ unfinished, dead }: ErasurePreview): void {
  if (unfinished + dead === 0) return;
  throw new UkemiError(
    "body_needed",
    `${unfinished} unfinished jobs or effects and ${dead} dead letters still need what would be erased.`,
  );
}

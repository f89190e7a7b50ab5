// Dead letters in an operator's hands: look, find the cause, then replay or drop.
import type { UkemiError } from "../errors.ts";
import type { DeadFilter } from "../storage/dead-filter.ts";
import {
  groupDead,
  listDead,
  readCursor,
  showJob,
  type DeadGroup,
  type DeadPage,
  type ShownJob,
} from "../storage/dead-letters.ts";
import type { Pool, Queryable } from "../storage/postgres.ts";
import {
  chooseDead,
  dropJobs,
  previewDead,
  readMoment,
  replayJobs,
  type Changed,
  type Chosen,
  type DeadChange,
  type DeadPreview,
  type Skip,
} from "../storage/replay.ts";
import { batchesOf, inTransaction, letRun, type BatchOptions } from "./batches.ts";
import { readMandate, wrong, type Mandate } from "./mandate.ts";
import { filterOf, readDeadFilter, type Selection } from "./selection.ts";

/** What a change of dead letters did. */
export interface DeadResult {
  readonly changed: number;
  /** Those that were chosen and left as they are. */
  readonly skipped: number;
  /** The first hundred of them. */
  readonly skips: readonly Skip[];
}

/** What a change in batches did. */
export interface DeadBatchesResult extends DeadResult {
  /** True where it was stopped before the end. */
  readonly stopped: boolean;
}

/** Only what belongs to these tenants. @default everything */
export interface Scope {
  readonly tenants?: readonly string[] | undefined;
}

/** What can be done with dead letters. */
export interface DeadLetters {
  /** Newest first. */
  list(
    filter?: DeadFilter,
    page?: Scope & { readonly limit?: number; readonly cursor?: string | undefined },
  ): Promise<DeadPage>;
  /** By error class and handler, the largest first. */
  groups(filter?: DeadFilter, scope?: Scope): Promise<readonly DeadGroup[]>;
  /** One job with its event and every try, also when it is no longer dead. */
  show(id: number, scope?: Scope): Promise<ShownJob | undefined>;
  /** What a replay or a drop would touch. */
  preview(selection: Selection, scope?: Scope): Promise<DeadPreview>;
  /**
   * Puts up to a thousand back to work in one transaction, with a fresh set of attempts. Those whose event has no body any
   * more are skipped.
   */
  replay(selection: Selection, mandate: Mandate, scope?: Scope): Promise<DeadResult>;
  /** Gives up to a thousand up for good, in one transaction. */
  drop(selection: Selection, mandate: Mandate, scope?: Scope): Promise<DeadResult>;
  /** Any number, in many small transactions. */
  replayInBatches(selection: Selection, mandate: Mandate, options?: BatchOptions): Promise<DeadBatchesResult>;
  dropInBatches(selection: Selection, mandate: Mandate, options?: BatchOptions): Promise<DeadBatchesResult>;
}

/** Runs a read with a limit of time. */
export type Read = <T>(work: (client: Queryable) => Promise<T>) => Promise<T>;

const LIMIT_DEFAULT = 50;
const LIMIT_MAX = 200;
const SKIPS_SHOWN = 100;

/** How many dead letters one transaction changes at the most. */
export const CHANGES_MAX = 1000;

type Apply = (client: Queryable, change: DeadChange) => Promise<Changed>;

export function createDeadLetters(open: () => Promise<Pool>, read: Read): DeadLetters {
  async function change(
    selection: Selection,
    mandate: Mandate,
    apply: Apply,
    { tenants }: Scope = {},
  ): Promise<DeadResult> {
    const filter = within(filterOf(selection), tenants);
    const by = readMandate(mandate);
    const pool = await open();
    const { count, skips, keys } = await inTransaction(pool, async (client) => {
      const chosen = await choose(client, filter, CHANGES_MAX + 1);
      if (chosen.ids.length > CHANGES_MAX) throw tooMany();
      return apply(client, { ...chosen, ...by, tenants });
    });
    await letRun(pool, keys);
    return { changed: count, skipped: skips.length, skips: skips.slice(0, SKIPS_SHOWN) };
  }

  async function changeInBatches(
    selection: Selection,
    mandate: Mandate,
    apply: Apply,
    options: BatchOptions = {},
  ): Promise<DeadBatchesResult> {
    const filter = filterOf(selection);
    const by = readMandate(mandate);
    const pool = await open();
    const chosen = await choose(pool, filter);
    const total = chosen.ids.length;
    const skips: Skip[] = [];
    let done = 0;
    let changed = 0;
    for (const ids of batchesOf(chosen.ids)) {
      if (options.signal?.aborted) break;
      const batch = await inTransaction(pool, (client) => apply(client, { ...chosen, ...by, ids }));
      await letRun(pool, batch.keys);
      done += ids.length;
      changed += batch.count;
      skips.push(...batch.skips);
      options.onProgress?.({ done, total });
    }
    const shown = skips.slice(0, SKIPS_SHOWN);
    return { changed, skipped: skips.length, skips: shown, stopped: done < total };
  }

  return {
    async list(filter = {}, { limit = LIMIT_DEFAULT, cursor, tenants } = {}) {
      if (!Number.isInteger(limit) || limit < 1 || limit > LIMIT_MAX) {
        throw wrong("limit", `must be a whole number from 1 to ${LIMIT_MAX}`);
      }
      if (cursor !== undefined && !readCursor(cursor)) {
        throw wrong("cursor", "must be the cursor of an earlier answer");
      }
      const page = cursor === undefined ? { limit } : { limit, after: cursor };
      const wanted = within(readDeadFilter(filter), tenants);
      return read((client) => listDead(client, wanted, page));
    },
    groups: (filter = {}, { tenants } = {}) =>
      read((client) => groupDead(client, within(readDeadFilter(filter), tenants))),
    async show(id, { tenants } = {}) {
      if (!Number.isSafeInteger(id)) return undefined;
      const job = await read((client) => showJob(client, id));
      const seen = tenants === undefined || (job?.tenant != null && tenants.includes(job.tenant));
      return seen ? job : undefined;
    },
    preview: (selection, { tenants } = {}) =>
      read((client) => previewDead(client, within(filterOf(selection), tenants))),
    replay: (selection, mandate, scope) => change(selection, mandate, replayJobs, scope),
    drop: (selection, mandate, scope) => change(selection, mandate, dropJobs, scope),
    replayInBatches: (selection, mandate, options) =>
      changeInBatches(selection, mandate, replayJobs, options),
    dropInBatches: (selection, mandate, options) => changeInBatches(selection, mandate, dropJobs, options),
  };
}

/** The filter within the caller's tenants. */
export function within(filter: DeadFilter, tenants: readonly string[] | undefined): DeadFilter {
  return tenants === undefined ? filter : { ...filter, tenants };
}

/** Ids that were named are all looked at, so that each is answered for; a filter chooses among the dead. */
async function choose(client: Queryable, filter: DeadFilter, most?: number): Promise<Chosen> {
  if (filter.ids === undefined) return chooseDead(client, filter, most);
  return { ids: filter.ids.map(String), momentUs: await readMoment(client) };
}

function tooMany(): UkemiError {
  return wrong(
    "filter",
    `matches more than ${CHANGES_MAX} dead letters, and one request changes at most so many: narrow it, or make an operation`,
  );
}

// Dead letters in an operator's hands: look, find the cause, then replay or drop.
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
import { batchesOf, letRun, type BatchOptions } from "./batches.ts";
import { inTransaction } from "./transaction.ts";
import { readMandate, wrong, type Mandate } from "./mandate.ts";
import { readLimit, type PageRequest } from "./page.ts";
import { filterOf, readDeadFilter, type Selection } from "./selection.ts";

/** What a change of dead letters did. */
export interface DeadResult {
  readonly changed: number;
  /** Those that were chosen and left as they are. */
  readonly skipped: number;
  /** The first hundred of them. */
  readonly skips: readonly Skip[];
  /** True where it was stopped before the end. */
  readonly stopped: boolean;
}

/** What can be done with dead letters. */
export interface DeadLetters {
  /** Newest first. */
  list(filter?: DeadFilter, page?: PageRequest): Promise<DeadPage>;
  /** By error class and handler, the largest first. */
  groups(filter?: DeadFilter): Promise<readonly DeadGroup[]>;
  /** One job with its event and every try, also when it is no longer dead. */
  show(id: number, tenants?: readonly string[]): Promise<ShownJob | undefined>;
  /** What a replay or a drop would touch. */
  preview(selection: Selection): Promise<DeadPreview>;
  /** Puts them back to work, with a fresh set of attempts. Those whose event has no body any more are skipped. */
  replay(selection: Selection, mandate: Mandate, options?: BatchOptions): Promise<DeadResult>;
  /** Gives them up for good. */
  drop(selection: Selection, mandate: Mandate, options?: BatchOptions): Promise<DeadResult>;
}

/** Runs a read with a limit of time. */
export type Read = <T>(work: (client: Queryable) => Promise<T>) => Promise<T>;

const SKIPS_SHOWN = 100;

export function createDeadLetters(open: () => Promise<Pool>, read: Read): DeadLetters {
  async function change(
    selection: Selection,
    mandate: Mandate,
    apply: (client: Queryable, change: DeadChange) => Promise<Changed>,
    options: BatchOptions = {},
  ): Promise<DeadResult> {
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
    async list(filter = {}, { limit: given, cursor } = {}) {
      const limit = readLimit(given);
      if (cursor !== undefined && !readCursor(cursor)) {
        throw wrong("cursor", "must be the cursor of an earlier answer");
      }
      const page = cursor === undefined ? { limit } : { limit, after: cursor };
      const wanted = readDeadFilter(filter);
      return read((client) => listDead(client, wanted, page));
    },
    groups: (filter = {}) => read((client) => groupDead(client, readDeadFilter(filter))),
    show: async (id, tenants) =>
      Number.isSafeInteger(id) ? read((client) => showJob(client, id, tenants)) : undefined,
    preview: (selection) => read((client) => previewDead(client, filterOf(selection))),
    replay: (selection, mandate, options) => change(selection, mandate, replayJobs, options),
    drop: (selection, mandate, options) => change(selection, mandate, dropJobs, options),
  };
}

/** Ids that were named are all looked at, so that each is answered for; a filter chooses among the dead. */
async function choose(pool: Pool, filter: DeadFilter): Promise<Chosen> {
  if (filter.ids === undefined || filter.tenants !== undefined) return chooseDead(pool, filter);
  return { ids: filter.ids.map(String), momentUs: await readMoment(pool) };
}

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
import { letRun } from "./batches.ts";
import { readMandate, wrong, type Mandate } from "./mandate.ts";
import { readLimit, type PageRequest } from "./page.ts";
import { filterOf, readDeadFilter, type Selection } from "./selection.ts";
import { inTransaction } from "./transaction.ts";

/** What a change of dead letters did. */
export interface DeadResult {
  readonly changed: number;
  /** Those that were chosen and left as they are. */
  readonly skipped: number;
  /** The first hundred of them. */
  readonly skips: readonly Skip[];
}

/** Only what belongs to these tenants. @default everything */
export interface Scope {
  readonly tenants?: readonly string[] | undefined;
}

/** What can be done with dead letters. */
export interface DeadLetters {
  /** Newest first. */
  list(filter?: DeadFilter, page?: Scope & PageRequest): Promise<DeadPage>;
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
}

/** Runs a read with a limit of time. */
export type Read = <T>(work: (client: Queryable) => Promise<T>) => Promise<T>;

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

  return {
    async list(filter = {}, { limit: given, cursor, tenants } = {}) {
      const limit = readLimit(given);
      if (cursor !== undefined && !readCursor(cursor)) {
        throw wrong("cursor", "must be the cursor of an earlier answer");
      }
      const page = cursor === undefined ? { limit } : { limit, after: cursor };
      const wanted = within(readDeadFilter(filter), tenants);
      return read((client) => listDead(client, wanted, page));
    },
    groups: (filter = {}, { tenants } = {}) =>
      read((client) => groupDead(client, within(readDeadFilter(filter), tenants))),
    show: async (id, { tenants } = {}) =>
      Number.isSafeInteger(id) ? read((client) => showJob(client, id, tenants)) : undefined,
    preview: (selection, { tenants } = {}) =>
      read((client) => previewDead(client, within(filterOf(selection), tenants))),
    replay: (selection, mandate, scope) => change(selection, mandate, replayJobs, scope),
    drop: (selection, mandate, scope) => change(selection, mandate, dropJobs, scope),
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

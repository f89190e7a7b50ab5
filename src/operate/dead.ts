// Dead letters in an operator's hands: look, find the cause, then replay or drop.
import type { UkemiError } from "../errors.ts";
import type { DeadFilter } from "../storage/dead-filter.ts";
import { groupDead, listDead, readCursor, type DeadGroup, type DeadPage } from "../storage/dead-letters.ts";
import type { Keyring } from "../storage/keyring.ts";
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
import { previewEffects, type EffectPreview } from "../storage/replay-effects.ts";
import { letRun } from "./batches.ts";
import { readMandate, wrong, type Mandate } from "./mandate.ts";
import { readLimit, type PageRequest } from "./page.ts";
import { within, type Reach } from "./reach.ts";
import type { Read } from "./read.ts";
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

/** What can be done with dead letters. */
export interface DeadLetters {
  /** Newest first. */
  list(filter?: DeadFilter, page?: Reach & PageRequest): Promise<DeadPage>;
  /** By error class and handler, the largest first. */
  groups(filter?: DeadFilter, reach?: Reach): Promise<readonly DeadGroup[]>;
  /** What a replay or a drop would touch. */
  preview(selection: Selection, reach?: Reach): Promise<DeadPreview>;
  /** What a replay means for effects: which would be tried, and which are done and will not be repeated. */
  previewEffects(selection: Selection, reach?: Reach): Promise<EffectPreview>;
  /**
   * Puts up to a thousand back to work in one transaction, with a fresh set of attempts. Those whose event has no body any
   * more are skipped.
   */
  replay(selection: Selection, mandate: Mandate, reach?: Reach): Promise<DeadResult>;
  /** Gives up to a thousand up for good, in one transaction. */
  drop(selection: Selection, mandate: Mandate, reach?: Reach): Promise<DeadResult>;
}

const SKIPS_SHOWN = 100;

/** How many dead letters one transaction changes at the most. */
export const CHANGES_MAX = 1000;

type Apply = (client: Queryable, change: DeadChange) => Promise<Changed>;

export function createDeadLetters(open: () => Promise<Pool>, read: Read, keyring: Keyring): DeadLetters {
  async function change(
    selection: Selection,
    mandate: Mandate,
    apply: Apply,
    reach: Reach = {},
  ): Promise<DeadResult> {
    const filter = within(filterOf(selection), reach);
    const by = readMandate(mandate);
    const pool = await open();
    const { count, skips, keys } = await inTransaction(pool, async (client) => {
      const chosen = await choose(client, filter, CHANGES_MAX + 1);
      if (chosen.ids.length > CHANGES_MAX) throw tooMany();
      return apply(client, { ...chosen, ...by, tenants: reach.tenants });
    });
    await letRun(pool, keys);
    return { changed: count, skipped: skips.length, skips: skips.slice(0, SKIPS_SHOWN) };
  }

  return {
    async list(filter = {}, { limit: given, cursor, ...reach } = {}) {
      const limit = readLimit(given);
      if (cursor !== undefined && !readCursor(cursor)) {
        throw wrong("cursor", "must be the cursor of an earlier answer");
      }
      const page = cursor === undefined ? { limit } : { limit, after: cursor };
      const wanted = within(readDeadFilter(filter), reach);
      return read((client) => listDead(client, wanted, page));
    },
    groups: (filter = {}, reach = {}) =>
      read((client) => groupDead(client, within(readDeadFilter(filter), reach))),
    preview: (selection, reach = {}) =>
      read((client) => previewDead(client, within(filterOf(selection), reach))),
    previewEffects: (selection, reach = {}) =>
      read((client) => previewEffects(client, within(filterOf(selection), reach), keyring)),
    replay: (selection, mandate, reach) => change(selection, mandate, replayJobs, reach),
    drop: (selection, mandate, reach) => change(selection, mandate, dropJobs, reach),
  };
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

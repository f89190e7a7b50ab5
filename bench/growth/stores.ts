// The stores of the growth contest: an empty one, one with a long past, one with much to do on another day.
import pg from "pg";
import type { Bench } from "../bench.ts";
import { demandRoom } from "../seed/disk.ts";
import { progressBar } from "../seed/progress.ts";
import { seed } from "../seed/seed.ts";
import { grouped } from "../tables.ts";

export const EMPTY = "empty";

export interface GrownStore {
  readonly name: string;
  readonly database: string;
}

/** Bodies of the past are left out: retention would have removed them. Those of jobs for another day stay. */
const PAST = { days: 180, bodyBytes: 0, jobs: "finished" } as const;
const LATER = { days: 30, bodyBytes: 512, jobs: "later" } as const;
const LATER_SHARE = 0.1;

/** On disk, with the indexes and what their making takes meanwhile. */
const ROW_BYTES = { past: 1300, later: 2200 };
/** The log of the server, and what the contests add. */
const MORE_BYTES = 8 * 2 ** 30;

/** Makes them; the empty one comes first. */
export async function makeStores({ store, rows }: Bench): Promise<GrownStore[]> {
  const later = Math.ceil(rows * LATER_SHARE);
  const bytes = rows * ROW_BYTES.past + later * ROW_BYTES.later + MORE_BYTES;
  await demandRoom(store.folder, { rows: rows + later, bytes });
  const stores = [
    { name: EMPTY, database: await store.create("growth_empty", { schema: true }) },
    { name: `${grouped(rows)} finished`, database: await store.create("growth_past", { schema: true }) },
    {
      name: `${grouped(later)} scheduled for later`,
      database: await store.create("growth_later", { schema: true }),
    },
  ];
  const seeds = [undefined, { ...PAST, rows }, { ...LATER, rows: later }];
  for (const [index, { name, database }] of stores.entries()) {
    const past = seeds[index];
    if (!past) continue;
    const pool = new pg.Pool({ connectionString: database, max: 1 });
    try {
      await seed(pool, past, progressBar(`seed, ${name}`));
    } finally {
      await pool.end();
    }
  }
  return stores;
}

// What a piece of work costs the database, in blocks looked at: unlike time, it is the same on a busy machine.
import { onTestFinished } from "vitest";
import { openPool, type Pool, type Queryable } from "../../src/storage/postgres.ts";

const BLOCKS = `
select
  (select coalesce(sum(heap_blks_hit + heap_blks_read), 0) from pg_statio_user_tables where schemaname = 'ukemi')
  + (select coalesce(sum(idx_blks_hit + idx_blks_read), 0) from pg_statio_user_indexes where schemaname = 'ukemi')
  as blocks`;

export interface BlockCounter {
  /** One session, so that nobody else's blocks are counted. */
  readonly client: Queryable;
  /** Does the work on the client; returns how many blocks of our tables and indexes it looked at. */
  count(work: (client: Queryable) => Promise<unknown>): Promise<number>;
}

/** Counts on a database where nobody else is at work; the vacuum is kept out. */
export async function countBlocks(url: string): Promise<BlockCounter> {
  const pool: Pool = openPool(url, { max: 1, name: "block counter" });
  onTestFinished(() => pool.end());
  await pool.query("alter table ukemi.jobs set (autovacuum_enabled = off)");
  const read = async () => {
    // what a session has counted is seen by others, and by itself, when it is flushed
    await pool.query("select pg_stat_force_next_flush()");
    const { rows } = await pool.query<{ blocks: string }>(BLOCKS);
    return Number(rows[0]!.blocks);
  };
  return {
    client: pool,
    async count(work) {
      const before = await read();
      await work(pool);
      return (await read()) - before;
    },
  };
}

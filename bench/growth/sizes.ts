// How much room the jobs take, with each of their indexes.
import type pg from "pg";

export interface Sizes {
  /** The table first. */
  readonly relations: readonly { readonly name: string; readonly bytes: number }[];
  /** Rows that nobody sees any more, as the statistics have it. */
  readonly dead: number;
  /** How often autovacuum has been there. */
  readonly vacuums: number;
}

export async function readSizes(client: pg.Client): Promise<Sizes> {
  const { rows: relations } = await client.query<{ name: string; bytes: number }>(
    `select c.relname as name, pg_relation_size(c.oid)::float8 as bytes
     from pg_class c
     left join pg_index i on i.indexrelid = c.oid
     where coalesce(i.indrelid, c.oid) = 'ukemi.jobs'::regclass
     order by i.indrelid is not null, bytes desc`,
  );
  const { rows } = await client.query<{ dead: number; vacuums: number }>(
    `select n_dead_tup::integer as dead, autovacuum_count::integer as vacuums
     from pg_stat_all_tables
     where relid = 'ukemi.jobs'::regclass`,
  );
  return { relations, ...rows[0]! };
}

/** The sizes as they are, and those of the same rows written anew. */
export async function rewrite(client: pg.Client): Promise<Record<"before" | "rewritten", Sizes>> {
  const before = await readSizes(client);
  await client.query("vacuum full ukemi.jobs");
  return { before, rewritten: await readSizes(client) };
}

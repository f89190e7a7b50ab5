// Indexes are made faster at once than row by row.
import type pg from "pg";

/** An index or a constraint, and how to make it. */
export interface Index {
  readonly name: string;
  readonly sql: string;
}

/** Drops the indexes and constraints of these tables; returns how to make them again. */
export async function dropIndexes(
  client: Pick<pg.ClientBase, "query">,
  tables: readonly string[],
): Promise<readonly Index[]> {
  const { rows } = await client.query<Index & { readonly table: string; readonly constraint: boolean }>(
    `select c.relname as name, t.relname as table, k.oid is not null as constraint,
       case when k.oid is null then pg_get_indexdef(c.oid)
         else format('alter table ukemi.%I add constraint %I %s', t.relname, c.relname, pg_get_constraintdef(k.oid)) end as sql
     from pg_index i
     join pg_class c on c.oid = i.indexrelid
     join pg_class t on t.oid = i.indrelid
     join pg_namespace n on n.oid = t.relnamespace and n.nspname = 'ukemi'
     left join pg_constraint k on k.conindid = c.oid and k.contype in ('p', 'u')
     where t.relname = any($1)`,
    [tables],
  );
  for (const { name, table, constraint } of rows) {
    await client.query(
      constraint ? `alter table ukemi.${table} drop constraint ${name}` : `drop index ukemi.${name}`,
    );
  }
  return rows;
}

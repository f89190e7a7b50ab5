// The schema as text, the same on every supported PostgreSQL: compared with the copy in the repository.
import type { Pool } from "../../src/storage/postgres.ts";

const DUMP = `
with ours as (
  select c.oid, c.relname, c.relkind
  from pg_class c
  where c.relnamespace = 'ukemi'::regnamespace and c.relkind in ('r', 'p', 'v')
    -- the months differ from day to day
    and c.relname !~ '^event_bodies_[0-9]{6}$'
),
lines as (
  select 1 as part, relname as name, attnum::text as at,
    format('column %s.%s %s%s%s', relname, attname, format_type(atttypid, atttypmod),
      case when attnotnull then ' not null' else '' end,
      coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '')) as line
  from ours
  join pg_attribute a on a.attrelid = ours.oid and a.attnum > 0 and not a.attisdropped
  left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
  where relkind <> 'v'
  union all
  select 2, relname, conname, format('constraint %s.%s %s', relname, conname, pg_get_constraintdef(k.oid))
  from ours join pg_constraint k on k.conrelid = ours.oid
  where k.contype <> 'n'
  union all
  select 3, relname, i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid)
  from ours join pg_index i on i.indrelid = ours.oid
  union all
  select 4, relname, tgname, pg_get_triggerdef(t.oid)
  from ours join pg_trigger t on t.tgrelid = ours.oid
  where not t.tgisinternal and t.tgparentid = 0
  union all
  select 5, relname, '', format('view %s as%s', relname, pg_get_viewdef(ours.oid, true))
  from ours
  where relkind = 'v'
  union all
  select 6, proname, '', pg_get_functiondef(p.oid)
  from pg_proc p
  where p.pronamespace = 'ukemi'::regnamespace
)
select line from lines order by part, name collate "C", at collate "C"`;

/** One line or block for every column, constraint, index, trigger, view and function. */
export async function dumpSchema(pool: Pool): Promise<string> {
  const client = await pool.connect();
  // an empty path: names are printed in full, whoever asks
  await client.query("set search_path = ''");
  const { rows } = await client.query<{ line: string }>(DUMP);
  client.release(true);
  return `${rows.map((row) => row.line.trimEnd()).join("\n")}\n`;
}

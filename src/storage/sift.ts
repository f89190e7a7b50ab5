// Lists of large tables by what no index knows: a page looks through so many rows at the most and says where to go on, so
// that no question, however rare its answer, holds the database for long.
import { createConditions, pageOf, type Page } from "./conditions.ts";
import type { Queryable } from "./postgres.ts";

/** How many rows one page looks through. */
const ROWS_MOST = 100_000;

/** Which rows of a table whose ids rise with time. `?` in a clause stands for its value; what is undefined is left out. */
export interface Sieve {
  readonly table: string;
  /** @default bigint */
  readonly idType?: "bigint" | "uuid";
  /** When a row was made. */
  readonly time: string;
  /** Clauses that an index serves. */
  readonly found: readonly (readonly [clause: string, value: unknown])[];
  /** Clauses that only the row itself can tell. */
  readonly told: readonly (readonly [clause: string, value: unknown])[];
  readonly since: Date | undefined;
  readonly until: Date | undefined;
}

export interface SiftOptions {
  readonly limit: number;
  readonly before?: string | undefined;
  /** @default 100,000 */
  readonly rowsMost?: number;
}

/**
 * Lists the rows that pass, newest first. The columns are read from the row `t`; joins may follow it. One statement, so that
 * rows which are committed meanwhile cannot move the place where the next page begins.
 */
export async function sift<R extends { readonly id: string }>(
  client: Queryable,
  sieve: Sieve,
  columns: { readonly select: string; readonly joins?: string },
  { limit, before, rowsMost = ROWS_MOST }: SiftOptions,
): Promise<Page<R>> {
  const window = Math.max(rowsMost, limit + 1);
  const found = createConditions();
  for (const [clause, value] of sieve.found) found.add(clause, value);
  found.add(`id < ?::${sieve.idType ?? "bigint"}`, before);
  const told = createConditions(found.values);
  for (const [clause, value] of sieve.told) told.add(clause, value);
  told.add(`${sieve.time} >= ?`, sieve.since);
  told.add(`${sieve.time} < ?`, sieve.until);
  const newest = `select * from ${sieve.table} ${found.where()} order by id desc`;
  const { rows } = await client.query<{ page: R[]; last: { id: string; is_past: boolean | null } | null }>(
    `with passed as materialized (
       select * from (${newest} limit ${window}) as looked
       ${told.where()}
       order by id desc
       limit ${limit + 1}
     )
     select
       coalesce((
         select json_agg(shown)
         from (select ${columns.select} from passed t ${columns.joins ?? ""} order by t.id desc) as shown
       ), '[]') as page,
       -- the end of the window, which is looked for only where the page is not full
       case when (select count(*) from passed) <= ${limit} then (
         select json_build_object(
           'id', id::text,
           -- ids and times rise together, but for what was under way at the same time
           'is_past', ${sieve.time} < ${told.value(sieve.since ?? null)}::timestamptz - interval '1 h'
         )
         from (${newest} offset ${window - 1} limit 1) as last
       ) end as last`,
    told.values,
  );
  const { page, last } = rows[0]!;
  const shown = pageOf(page, limit, ({ id }) => id);
  return shown.cursor === undefined && last && !last.is_past ? { ...shown, cursor: last.id } : shown;
}

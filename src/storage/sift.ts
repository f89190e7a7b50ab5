// Lists of large tables by what no index knows: a page looks through so many rows at the most and says where to go on, so
// that no question, however rare its answer, holds the database for long.
import { createConditions, pageOf, type Page } from "./conditions.ts";
import type { Queryable } from "./postgres.ts";

/** How many rows one page looks through. */
const ROWS_MOST = 100_000;

/** Which rows of a table whose ids rise with time. `?` in a clause stands for its value; what is undefined is left out. */
export interface Sieve {
  readonly table: string;
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
 * Lists the rows that pass, newest first. The columns are read from the row `t`; joins may follow it.
 */
export async function sift<R extends { readonly id: string }>(
  client: Queryable,
  sieve: Sieve,
  columns: { readonly select: string; readonly joins?: string },
  { limit, before, rowsMost = ROWS_MOST }: SiftOptions,
): Promise<Page<R>> {
  const window = Math.max(rowsMost, limit + 1);
  const values: unknown[] = [];
  const found = createConditions(values);
  for (const [clause, value] of sieve.found) found.add(clause, value);
  found.add("id < ?::bigint", before);
  const newest = `select * from ${sieve.table} ${found.where()} order by id desc`;
  const endValues = [...values];
  const told = createConditions(values);
  for (const [clause, value] of sieve.told) told.add(clause, value);
  told.add(`${sieve.time} >= ?`, sieve.since);
  told.add(`${sieve.time} < ?`, sieve.until);
  const { rows } = await client.query<R>(
    `select ${columns.select}
     from (
       select * from (${newest} limit ${told.value(window)}) as looked
       ${told.where()}
       order by id desc
       limit ${told.value(limit + 1)}
     ) as t
     ${columns.joins ?? ""}
     order by t.id desc`,
    values,
  );
  const page = pageOf(rows, limit, ({ id }) => id);
  if (page.cursor !== undefined || told.where() === "") return page;
  // ids and times rise together, but for what was under way at the same time
  const { rows: ends } = await client.query<{ id: string; is_past: boolean | null }>(
    `select id, ${sieve.time} < $${endValues.length + 1}::timestamptz - interval '1 h' as is_past
     from (${newest} offset $${endValues.length + 2} limit 1) as last`,
    [...endValues, sieve.since ?? null, window - 1],
  );
  const end = ends[0];
  return end && !end.is_past ? { ...page, cursor: end.id } : page;
}

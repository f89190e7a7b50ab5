// How many rows there are: a duplicate must leave none behind.
import pg from "pg";

/** Written once a minute, whatever arrives then: statistics of the hours before. */
const STATISTICS = ["event_hours", "stale_hours", "anomalies"];

/** Rows by table, of the schema of Ukemi. */
export async function countRows(database: string): Promise<ReadonlyMap<string, number>> {
  const client = new pg.Client({ connectionString: database });
  await client.connect();
  try {
    const tables = await client.query<{ name: string }>(
      "select tablename as name from pg_tables where schemaname = 'ukemi' and tablename <> all($1) order by 1",
      [STATISTICS],
    );
    const rows = new Map<string, number>();
    for (const { name } of tables.rows) {
      const counted = await client.query<{ count: string }>(`select count(*) as count from ukemi."${name}"`);
      rows.set(name, Number(counted.rows[0]!.count));
    }
    return rows;
  } finally {
    await client.end();
  }
}

/** The tables that have more rows than before, and how many. */
export function grownTables(
  before: ReadonlyMap<string, number>,
  after: ReadonlyMap<string, number>,
): string[] {
  return [...after].flatMap(([name, rows]) => {
    const more = rows - (before.get(name) ?? 0);
    return more > 0 ? [`${name} by ${more}`] : [];
  });
}

// Looks for a word in every table of the schema, as text, as bytes and as base64.
import type { Pool } from "../../src/storage/postgres.ts";

/** The tables that hold the word in any form. */
export async function tablesWith(pool: Pool, word: string): Promise<string[]> {
  const { rows: tables } = await pool.query<{ name: string }>(
    `select c.relname as name from pg_class c
     where c.relnamespace = 'ukemi'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
     order by 1`,
  );
  const forms = [word, Buffer.from(word).toString("hex"), ...base64Forms(word)];
  const found: string[] = [];
  for (const { name } of tables) {
    // bytea shows itself as hex in the text of a row
    const { rows } = await pool.query<{ found: boolean }>(
      `select exists (
         select from ukemi.${name} t, unnest($1::text[]) as f (form) where position(f.form in t::text) > 0
       ) as found`,
      [forms],
    );
    if (rows[0]!.found) found.push(name);
  }
  return found;
}

/** A word looks different in base64 for each of the three places where it may begin. */
function base64Forms(word: string): string[] {
  return [0, 1, 2].map((before) => {
    const text = Buffer.concat([Buffer.alloc(before), Buffer.from(word)]).toString("base64");
    return text.slice(before === 0 ? 0 : 4, -4);
  });
}

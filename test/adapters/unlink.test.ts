// The guide's triggers: events forget a row of the application that is deleted.
import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { createDatabase } from "../support/database.ts";
import { makeUkemi, storeElsewhere, untilDrained } from "../support/work.ts";

const GUIDE = new URL("../../docs/guides/databases.md", import.meta.url);

test("a deleted row is unlinked from its events, and from no others", async () => {
  const { url, pool } = await createDatabase();
  await pool.query(`
    create table billings (id integer primary key);
    create table offices (id uuid primary key default gen_random_uuid());
    insert into billings values (1), (2);
    insert into offices default values`);
  await pool.query(/^```sql\n([\s\S]*?)^```$/m.exec(await readFile(GUIDE, "utf8"))![1]!);
  const { ukemi } = makeUkemi(url);
  ukemi.on("stripe", "payment_intent.succeeded", async ({ event, tx }) => {
    const { rows } = await tx.query<{ id: string }>("select id from offices");
    event.link({ billing: event.id === "evt_1" ? 1 : 2, office: rows[0]!.id });
  });
  await ukemi.work();
  await storeElsewhere(url, ["evt_1", "evt_2"]);
  await untilDrained(pool);
  const links = async () =>
    (
      await pool.query(
        "select billing_id, office_id is not null as office from ukemi.webhook_events order by event_id",
      )
    ).rows;
  expect(await links()).toEqual([
    { billing_id: "1", office: true },
    { billing_id: "2", office: true },
  ]);
  await pool.query("delete from billings where id = 1");
  await pool.query("delete from offices");
  expect(await links()).toEqual([
    { billing_id: null, office: false },
    { billing_id: "2", office: false },
  ]);
});

// Behind a transaction pooler there is no session to hold: leases and polling carry the work.
import { expect, test } from "vitest";
import { createDatabase } from "../support/database.ts";
import { poolerProgram, startPooler } from "../support/pgbouncer.ts";
import { makeUkemi, storeElsewhere, untilDrained } from "../support/work.ts";
import { until } from "../support/until.ts";

const TYPE = "payment_intent.succeeded";
const ids = (prefix: string, count: number) =>
  Array.from({ length: count }, (_, index) => `${prefix}_${index}`);

test.skipIf(poolerProgram === undefined)(
  "works through pgbouncer in transaction mode, exactly once",
  async () => {
    const { url, pool } = await createDatabase();
    await pool.query("create table ledger (event text not null)");
    const through = await startPooler(url);
    const { ukemi } = makeUkemi(through, { handlerConnectionsMax: 1 });
    ukemi.on("stripe", TYPE, async ({ tx, event }) => {
      await tx.query("insert into ledger values ($1)", [event.id]);
    });
    ukemi.on("stripe", TYPE, () => {}, { name: "no tx" });
    await ukemi.work();
    expect((await pool.query("select has_session from ukemi.workers")).rows).toEqual([
      { has_session: false },
    ]);
    await storeElsewhere(url, ids("evt", 100));
    const jobs = await untilDrained(pool);
    expect(jobs.every((job) => job.state === "done" && job.attempt === 1)).toBe(true);
    const { rows } = await pool.query(
      "select count(*)::int as n, count(distinct event)::int as events from ledger",
    );
    expect(rows).toEqual([{ n: 100, events: 100 }]);
  },
);

test.skipIf(poolerProgram === undefined)(
  "holds its session round the pooler where a direct URL is given",
  async () => {
    const { url, pool } = await createDatabase();
    const through = await startPooler(url);
    const { ukemi } = makeUkemi(through, { directUrl: url, pollMs: 60_000, handlerConnectionsMax: 1 });
    let ran = 0;
    ukemi.task("count", () => (ran += 1));
    await ukemi.work();
    expect((await pool.query("select has_session from ukemi.workers")).rows).toEqual([{ has_session: true }]);
    // polling would take a minute: only the notification can be so quick
    const asking = makeUkemi(url).ukemi;
    asking.task("count", () => {});
    await asking.enqueue(null, "count", {});
    await until(() => ran === 1, "the notification to arrive");
  },
);

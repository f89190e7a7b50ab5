// What must hold for whatever writes in a handler's transaction: its writes and the job's completion are one fenced commit.
import { setTimeout } from "node:timers/promises";
import { expect, test } from "vitest";
import type { EventContext, HandlerOptions, SqlClient, TransactionOwner } from "../../src/index.ts";
import type { Pool } from "../../src/storage/postgres.ts";
import { createDatabase } from "../support/database.ts";
import { until } from "../support/until.ts";
import { makeUkemi, readJobs, storeElsewhere, untilDrained, type TestUkemi } from "../support/work.ts";
import { aborted } from "../support/aborted.ts";

/** A query builder or ORM on the table `payments (id text primary key, status text not null)`. */
export interface Adapter<Tx> {
  /** Where the ORM opens the transaction itself. */
  readonly transaction?: TransactionOwner<Tx>;
  insert(tx: Tx, id: string): Promise<unknown>;
  /** Runs the work in a transaction inside the handler's; it inserts through that one. */
  inner(tx: Tx, work: (insert: (id: string) => Promise<unknown>) => Promise<void>): Promise<unknown>;
  /** For `ukemi.enqueue`. */
  sql(tx: Tx): SqlClient;
}

type Context<Tx> = EventContext<{ readonly id: string }, Tx>;

interface Scene<Tx> extends Adapter<Tx> {
  readonly url: string;
  readonly pool: Pool;
  readonly ukemi: TestUkemi["ukemi"];
  /** Runs the handler for the event evt_1. */
  run(handler: (context: Context<Tx>) => Promise<unknown>): Promise<void>;
}

const RETRY = { retries: 50, delaysMs: [20] };
const TYPE = "payment_intent.succeeded";

/** Runs the suite; `open` is called once for each test, with its own database. */
export function testAdapter<Tx>(open: (url: string) => Adapter<Tx>): void {
  const optionsOf = ({ transaction }: Adapter<Tx>): HandlerOptions<Tx> => ({
    retry: RETRY,
    ...(transaction && { transaction }),
  });

  async function setUp(settings: { timeLimitMs?: number } = {}): Promise<Scene<Tx>> {
    const { url, pool } = await createDatabase();
    await pool.query("create table payments (id text primary key, status text not null)");
    const adapter = open(url);
    const { ukemi } = makeUkemi(url, settings);
    return {
      ...adapter,
      url,
      pool,
      ukemi,
      async run(handler) {
        ukemi.on("stripe", TYPE, handler, optionsOf(adapter));
        await ukemi.work();
        await storeElsewhere(url, ["evt_1"]);
      },
    };
  }

  test("commits the handler's writes and its job's completion together", async () => {
    const { pool, run, insert } = await setUp();
    await run(async ({ tx, event, audit }) => {
      await insert(tx, "pay_1");
      event.link({ billing: "b1" });
      await audit("payment.paid", { target: "pay_1" });
    });
    await expectDone(pool, 1);
    const { rows } = await pool.query(`
      select p.xmin = j.xmin and p.xmin = o.xmin and p.xmin = a.xmin as together, p.status, o.billing_id
      from payments p, ukemi.jobs j, ukemi.event_outcomes o, ukemi.audit_log a`);
    expect(rows).toEqual([{ together: true, status: "paid", billing_id: "b1" }]);
  });

  test("a throw rolls everything back, and the job is retried", async () => {
    const { pool, run, insert } = await setUp();
    const seen: string[][] = [];
    await run(async ({ tx, job, audit }) => {
      seen.push(await readPayments(pool));
      await insert(tx, `pay_${job.attempt}`);
      await audit("payment.paid", { target: `pay_${job.attempt}` });
      if (job.attempt < 3) throw new Error("not this time");
    });
    await expectDone(pool, 3);
    expect(seen).toEqual([[], [], []]);
    expect(await readPayments(pool)).toEqual(["pay_3"]);
    expect((await pool.query("select target from ukemi.audit_log")).rows).toEqual([{ target: "pay_3" }]);
  });

  test("writes nothing where the lease is taken away in mid-handler", async () => {
    const { pool, run, insert } = await setUp();
    let runs = 0;
    await run(async ({ tx, audit }) => {
      runs += 1;
      await insert(tx, `pay_${runs}`);
      await audit("payment.paid", { target: `pay_${runs}` });
      if (runs > 1) return;
      await pool.query("update ukemi.jobs set lease_token = gen_random_uuid(), lease_until = ukemi.now()");
    });
    // the job lapses and is run again: what the first run wrote is nowhere
    await expectDone(pool, 1);
    expect(runs).toBe(2);
    expect(await readPayments(pool)).toEqual(["pay_2"]);
    expect((await pool.query("select target from ukemi.audit_log")).rows).toEqual([{ target: "pay_2" }]);
  });

  test("an audit line that cannot be written takes the handler's writes with it", async () => {
    const { pool, run, insert } = await setUp();
    await pool.query(`
      create function refuse() returns trigger language plpgsql as $$ begin raise 'the audit is full'; end $$;
      create trigger refuse before insert on ukemi.audit_log for each row execute function refuse()`);
    await run(async ({ tx, audit }) => {
      await insert(tx, "pay_1");
      await audit("payment.paid", { target: "pay_1" });
    });
    await until(async () => (await readJobs(pool))[0]!.attempt > 1, "two failed tries");
    expect(await readPayments(pool)).toEqual([]);
    expect((await readJobs(pool))[0]!.error_message).toContain("the audit is full");
    await pool.query("drop trigger refuse on ukemi.audit_log");
    expect(await untilDrained(pool)).toMatchObject([{ state: "done" }]);
    expect(await readPayments(pool)).toEqual(["pay_1"]);
  });

  test("an error that the handler catches does not commit the half before it", async () => {
    const { pool, run, insert } = await setUp();
    await run(async ({ tx, job }) => {
      await insert(tx, `pay_${job.attempt}`);
      if (job.attempt === 1) await expect(insert(tx, "pay_1")).rejects.toThrow();
    });
    await expectDone(pool, 2);
    expect(await readPayments(pool)).toEqual(["pay_2"]);
  });

  test("a COMMIT that is refused writes nothing, and the job is retried", async () => {
    const { pool, run, insert } = await setUp();
    await pool.query(`
      create function refuse() returns trigger language plpgsql as $$ begin raise check_violation; end $$;
      create constraint trigger refuse after insert on payments deferrable initially deferred
        for each row when (new.id = 'pay_1') execute function refuse()`);
    await run(({ tx, job }) => insert(tx, `pay_${job.attempt}`));
    await expectDone(pool, 2);
    expect(await readPayments(pool)).toEqual(["pay_2"]);
  });

  test("a connection that is lost in mid-handler writes nothing and burns no attempt", async () => {
    const { pool, run, insert, sql } = await setUp();
    let runs = 0;
    await run(async ({ tx }) => {
      runs += 1;
      await insert(tx, `pay_${runs}`);
      if (runs > 1) return;
      const { rows } = await sql(tx).query("select pg_backend_pid() as pid", []);
      await pool.query("select pg_terminate_backend($1)", [(rows[0] as { pid: number }).pid]);
      await insert(tx, "pay_lost");
    });
    await expectDone(pool, 1);
    expect(await readPayments(pool)).toEqual(["pay_2"]);
  });

  test("a connection that is lost at COMMIT is looked into, and the job runs once", async () => {
    const { pool, run, insert } = await setUp();
    await pool.query(`
      create function cut() returns trigger language plpgsql as $$
        begin perform pg_terminate_backend(pg_backend_pid()); return null; end $$;
      create constraint trigger cut after insert on payments deferrable initially deferred
        for each row when (new.id = 'pay_1') execute function cut()`);
    let runs = 0;
    await run(({ tx }) => insert(tx, `pay_${(runs += 1)}`));
    await expectDone(pool, 1);
    expect(await readPayments(pool)).toEqual(["pay_2"]);
  });

  test("what a handler writes after its time is over is written nowhere", async () => {
    const { pool, run, insert } = await setUp({ timeLimitMs: 1500 });
    const late: string[] = [];
    await run(async ({ tx, job, signal }) => {
      await insert(tx, `pay_${job.attempt}`);
      if (job.attempt > 1) return;
      await aborted(signal);
      await insert(tx, "at once").catch(() => {}); // in time to be rolled back, or refused
      await setTimeout(50);
      late.push(
        await insert(tx, "later").then(
          () => "done",
          () => "refused",
        ),
      );
    });
    await expectDone(pool, 2);
    await until(() => late.length === 1, "the first run's last words");
    expect(late).toEqual(["refused"]);
    expect(await readPayments(pool)).toEqual(["pay_2"]);
  });

  test("an inner transaction is kept or rolled back by itself", async () => {
    const { pool, run, insert, inner } = await setUp();
    await run(async ({ tx }) => {
      await insert(tx, "pay_1");
      await inner(tx, async (insertInner) => void (await insertInner("pay_2")));
      const failing = inner(tx, async (insertInner) => {
        await insertInner("pay_3");
        throw new Error("only this one");
      });
      await expect(failing).rejects.toThrow("only this one");
      const refused = inner(tx, async (insertInner) => void (await insertInner("pay_1")));
      await expect(refused).rejects.toThrow();
      await insert(tx, "pay_4");
    });
    await expectDone(pool, 1);
    expect(await readPayments(pool)).toEqual(["pay_1", "pay_2", "pay_4"]);
  });

  test("an inner transaction that was committed goes with the handler's", async () => {
    const { pool, run, inner } = await setUp();
    await run(async ({ tx, job }) => {
      await inner(tx, async (insertInner) => void (await insertInner(`pay_${job.attempt}`)));
      if (job.attempt === 1) throw new Error("not this time");
    });
    await expectDone(pool, 2);
    expect(await readPayments(pool)).toEqual(["pay_2"]);
  });

  test("enqueue in the handler's transaction makes a job only where that commits", async () => {
    const { pool, run, insert, sql, ukemi } = await setUp();
    const receipts: unknown[] = [];
    ukemi.task("receipt", ({ payload }) => void receipts.push(payload));
    await run(async ({ tx, job }) => {
      await insert(tx, `pay_${job.attempt}`);
      await ukemi.enqueue(sql(tx), "receipt", { attempt: job.attempt }, { dedupe: "receipt of evt_1" });
      if (job.attempt === 1) throw new Error("not this time");
    });
    await until(() => receipts.length > 0, "a receipt");
    expect(await untilDrained(pool)).toHaveLength(2);
    expect(receipts).toEqual([{ attempt: 2 }]);
    expect(await readPayments(pool)).toEqual(["pay_2"]);
  });

  test("two workers that fail now and then do each event exactly once", async () => {
    const { url, pool, ukemi, insert, ...adapter } = await setUp();
    const events = Array.from({ length: 60 }, (_, index) => `evt_${index}`);
    const workers = [ukemi, makeUkemi(url).ukemi];
    let runs = 0;
    for (const worker of workers) {
      const handler = async ({ tx, event }: Context<Tx>) => {
        runs += 1;
        await insert(tx, `${event.id} in run ${runs}`);
        if (runs % 4 === 0) throw new Error("not this time");
      };
      worker.on("stripe", TYPE, handler, optionsOf({ insert, ...adapter }));
      await worker.work();
    }
    await storeElsewhere(url, events);
    const jobs = await untilDrained(pool);
    expect(new Set(jobs.map(({ state }) => state))).toEqual(new Set(["done"]));
    const paid = (await readPayments(pool)).map((id) => id.split(" ")[0]);
    expect(paid).toHaveLength(events.length);
    expect(new Set(paid)).toEqual(new Set(events));
    expect(runs).toBeGreaterThan(events.length);
  });
}

/** The job is done after so many attempts; where it is not, the tries say why. */
async function expectDone(pool: Pool, attempts: number): Promise<void> {
  const [job] = await untilDrained(pool);
  const tries = await pool.query("select number, outcome, error_message from ukemi.attempts order by id");
  expect(job, JSON.stringify(tries.rows)).toMatchObject({ state: "done", attempt: attempts });
}

async function readPayments(pool: Pool): Promise<string[]> {
  const { rows } = await pool.query<{ id: string }>("select id from payments order by id");
  return rows.map(({ id }) => id);
}

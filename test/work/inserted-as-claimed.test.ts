// A job that is stored where a worker has a free slot is that worker's from the first moment, unless it would overtake.
import { expect, test } from "vitest";
import type { Pool } from "../../src/storage/postgres.ts";
import type { UkemiOptions } from "../../src/ukemi.ts";
import { createDatabase } from "../support/database.ts";
import { deliver } from "../support/deliver.ts";
import { startTestServer, type TestServer } from "../support/in-process.ts";
import { proxyDatabase } from "../support/proxied.ts";
import { until } from "../support/until.ts";
import { insertJobs } from "../support/worked.ts";
import { readJobs, untilDrained } from "../support/work.ts";

/** A worker that looks for jobs by itself so seldom that none of its claims comes between. */
const SELDOM = { pollMs: 60_000 };

/** Notes every state that a job comes into; the function tells those of the jobs of an event. */
async function watchStates(pool: Pool): Promise<(eventId: string) => Promise<string[]>> {
  await pool.query(`
    create table states (at bigint generated always as identity, job bigint, event uuid, state text);
    create function note_state() returns trigger language plpgsql as $$
      begin insert into states (job, event, state) values (new.id, new.event, new.state); return null; end $$;
    create trigger note_state after insert or update of state on ukemi.jobs
      for each row execute function note_state()`);
  return async (eventId) => {
    const { rows } = await pool.query<{ states: string }>(
      `select string_agg(s.state, ' ' order by s.at) as states
       from states s join ukemi.events e on e.id = s.event
       where e.event_id = $1 group by s.job order by s.job`,
      [eventId],
    );
    return rows.map(({ states }) => states);
  };
}

interface Working {
  readonly server: TestServer;
  readonly pool: Pool;
  readonly ran: string[];
  readonly states: (eventId: string) => Promise<string[]>;
  /** Delivers an event, and waits until its jobs have ended. Returns the states that they came through. */
  through(eventId: string, type?: string): Promise<string[]>;
}

/** A server that works too: a handler for plain events, one by key, and two for one event. */
async function startWorking(
  options: Partial<UkemiOptions> = {},
  {
    prepare,
    hold,
  }: { prepare?: (pool: Pool) => Promise<unknown>; hold?: (pool: Pool) => Promise<void> } = {},
): Promise<Working> {
  const { url, pool } = await createDatabase();
  const states = await watchStates(pool);
  await prepare?.(pool);
  const server = await startTestServer({ database: url, ...SELDOM, ...options });
  const ran: string[] = [];
  const note = ({ event }: { event: object }) => void ran.push((event as { id: string }).id);
  server.ukemi.on("stripe", "payment_intent.succeeded", note);
  server.ukemi.on("stripe", "charge.succeeded", note, { key: { ref: "payment_intent" } });
  server.ukemi.on("stripe", "customer.created", () => hold?.(pool));
  server.ukemi.on("stripe", "invoice.paid", note, { name: "a" });
  server.ukemi.on("stripe", "invoice.paid", note, { name: "b" });
  await server.ukemi.work();
  const through = async (eventId: string, type = "payment_intent.succeeded") => {
    expect(await deliver(server.url, eventId, { type })).toMatchObject({ status: 204, duplicate: false });
    const ended = async () => (await states(eventId)).every((line) => line.endsWith("done"));
    await until(ended, `the jobs of ${eventId} to end`);
    return states(eventId);
  };
  return { server, pool, ran, states, through };
}

/** The worker's first look must be over: a claim under way could be overtaken. */
async function untilOffered({ through }: Working): Promise<void> {
  let count = 0;
  await until(
    async () => (await through(`evt_first_${(count += 1)}`))[0] === "running done",
    "slots to be offered",
  );
}

test("a job is inserted as claimed where a slot is free, and is never claimed", async () => {
  const working = await startWorking();
  await untilOffered(working);
  for (let count = 0; count < 10; count += 1) {
    expect(await working.through(`evt_${count}`)).toEqual(["running done"]);
  }
  expect(await working.through("evt_two", "invoice.paid")).toEqual(["running done", "running done"]);
  const { rows } = await working.pool.query("select attempt, recoveries from ukemi.jobs group by 1, 2");
  expect(rows).toEqual([{ attempt: 1, recoveries: 0 }]);
  expect(new Set(working.ran).size).toBe(working.ran.length - 1);
});

test("as many jobs are inserted as claimed as there are slots", async () => {
  const working = await startWorking({ concurrency: 1 });
  await untilOffered(working);
  expect((await working.through("evt_two", "invoice.paid")).toSorted()).toEqual([
    "ready running done",
    "running done",
  ]);
});

test("a job with a key waits for it", async () => {
  const working = await startWorking();
  await untilOffered(working);
  expect(await working.through("evt_key", "charge.succeeded")).toEqual(["waiting ready running done"]);
});

test("nothing is inserted as claimed into a paused queue", async () => {
  const working = await startWorking({ pollMs: 50 });
  const { server, pool, states, ran, through } = working;
  await untilOffered(working);
  await pool.query("insert into ukemi.queues (name, paused) values ('default', true)");
  ran.length = 0;
  for (const id of ["evt_1", "evt_2"]) {
    expect(await deliver(server.url, id)).toMatchObject({ status: 204 });
    expect(await states(id)).toEqual(["ready"]);
  }
  expect(ran).toEqual([]);
  await pool.query("update ukemi.queues set paused = false");
  await untilDrained(pool);
  expect(ran.toSorted()).toEqual(["evt_1", "evt_2"]);
  expect(await through("evt_3")).toEqual(["running done"]);
});

test("a job does not overtake an older one that is ready", async () => {
  const working = await startWorking();
  await untilOffered(working);
  const { pool, through } = working;
  await insertJobs(pool, { count: 1, handler: "a" });
  // somebody else is about to take the older one
  const other = await pool.connect();
  await other.query("begin; select from ukemi.jobs where state = 'ready' for update");
  expect(await through("evt_younger")).toEqual(["ready running done"]);
  await other.query(
    "update ukemi.jobs set state = 'done', finished_at = ukemi.now() where state = 'ready'; commit",
  );
  other.release();
  expect(await through("evt_after")).toEqual(["running done"]);
});

test("after a commit whose answer was lost the job is given back, and runs exactly once", async () => {
  const { url, pool } = await createDatabase();
  const { url: database, proxy } = await proxyDatabase(url);
  const states = await watchStates(pool);
  const ran: unknown[] = [];
  const timing = { commitDeadlineMs: 500, pollMs: 1000 };
  const { ukemi, url: door } = await startTestServer({ database, directUrl: url, ...timing });
  ukemi.on("stripe", "payment_intent.succeeded", ({ event }) => void ran.push(event.id));
  await ukemi.work();

  /** Returns the states that the job came through. */
  async function loseAnswer(eventId: string): Promise<string[]> {
    await proxy.set("lose answers");
    let answered = false;
    const told = deliver(door, eventId).finally(() => (answered = true));
    // a lane that had to connect first is not heard either: then nothing is committed
    const committed = async () => (await states(eventId)).length === 1;
    await until(async () => answered || (await committed()), "the commit that nobody hears of");
    expect(await told).toMatchObject({ status: 503 });
    expect(ran).not.toContain(eventId);
    await proxy.set("pass");
    await untilDrained(pool);
    const known = await committed();
    // the sender, who was told nothing, sends it again
    const again = await deliver(door, eventId);
    expect(again).toMatchObject({ status: 204, ...(known ? { duplicate: true } : {}) });
    await untilDrained(pool);
    return states(eventId);
  }

  const sent = ["evt_0"];
  await deliver(door, "evt_0"); // opens the connections
  const lost = async () => {
    sent.push(`evt_${sent.length}`);
    const [line] = await loseAnswer(sent.at(-1)!);
    return line === "running ready running done"; // else a claim was under way, and nothing could be handed over
  };
  await until(lost, "a job to be inserted as claimed while answers are lost");
  expect(ran).toEqual(sent);
  for (const job of await untilDrained(pool)) {
    expect(job).toMatchObject({ state: "done", attempt: 1, recoveries: 0 });
  }
});

/** Commits of these events take their time, as a synchronous standby would make them. */
const slowCommit = (seconds: number) => (pool: Pool) =>
  pool.query(`
    create function slowly() returns trigger language plpgsql as $$
      begin perform pg_sleep(${seconds}); return null; end $$;
    create constraint trigger slowly after insert on ukemi.events initially deferred
      for each row when (new.event_id like 'evt_slow%') execute function slowly()`);

test("a commit that comes true only after it was given up is no crash: the job runs exactly once", async () => {
  const timing = { commitDeadlineMs: 500, pollMs: 1000, leaseMs: 4000 };
  const working = await startWorking(timing, { prepare: slowCommit(1.5) });
  await untilOffered(working);
  const { server, pool, states, ran } = working;
  let count = 0;
  const late = async () => {
    const eventId = `evt_slow_${(count += 1)}`;
    expect(await deliver(server.url, eventId)).toMatchObject({ status: 503 });
    await until(async () => (await states(eventId)).length === 1, "the commit to come true");
    const [line] = await states(eventId);
    await untilDrained(pool);
    expect(ran.filter((id) => id === eventId)).toHaveLength(1);
    return line!.startsWith("running"); // else a claim was under way, and nothing could be handed over
  };
  await until(late, "a job to be inserted as claimed by a slow commit", 30_000);
  for (const job of await readJobs(pool)) {
    expect(job).toMatchObject({ state: "done", attempt: 1, recoveries: 0 });
  }
});

test("a worker that loses its session while a job is stored for it does not run it as its own", async () => {
  /** Runs until it is known whose it is: a worker's that lives, or one's whose jobs were taken from it. */
  const hold = (pool: Pool) =>
    until(async () => {
      const { rows } = await pool.query<{ known: boolean }>(`
        select j.recoveries > 0 or w.ended_at is null as known
        from ukemi.jobs j join ukemi.workers w on w.id = j.worker`);
      return rows.some(({ known }) => known);
    }, "the job to be a living worker's");
  const working = await startWorking({ pollMs: 1000 }, { prepare: slowCommit(1), hold });
  await untilOffered(working);
  const { pool, through } = working;
  const ended = through("evt_slow", "customer.created");
  await until(
    async () =>
      (await pool.query("select from pg_stat_activity where wait_event = 'PgSleep'")).rowCount === 1,
    "the commit to be under way",
  );
  await pool.query(`
    select pg_terminate_backend(l.pid) from pg_locks l join pg_database d on d.oid = l.database
    where l.locktype = 'advisory' and l.objsubid = 2 and d.datname = current_database()`);
  const gone = "select from ukemi.workers where ended_at is not null";
  await until(async () => (await pool.query(gone)).rowCount === 1, "the worker to register anew");
  await ended;
  expect((await readJobs(pool)).at(-1)).toMatchObject({ state: "done", attempt: 1, recoveries: 0 });
});

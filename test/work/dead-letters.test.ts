// Dead letters: found, understood, replayed once, dropped, and all of it on record.
import { expect, test } from "vitest";
import { terminal } from "../../src/index.ts";
import { chooseDead, replayJobs } from "../../src/storage/replay.ts";
import { transaction } from "../../src/storage/postgres.ts";
import { createDatabase } from "../support/database.ts";
import {
  HANDLER,
  makeDead,
  MANDATE,
  operateOn,
  readAudit,
  readOutcomes,
  refuseAudit,
  register,
  removeBodies,
} from "../support/dead.ts";
import { until } from "../support/until.ts";
import { makeUkemi, readJobs, storeElsewhere, untilDrained } from "../support/work.ts";

const numbered = (count: number, prefix = "evt") =>
  Array.from({ length: count }, (_, index) => `${prefix}_${String(index).padStart(4, "0")}`);

test("replays a dead letter with all its attempts before it, and says by whom and why", async () => {
  const { url, pool } = await createDatabase();
  const { ukemi } = makeUkemi(url);
  let mended = false;
  ukemi.on(
    "stripe",
    "payment_intent.succeeded",
    ({ event, job }) => {
      event.link({ billing: "b1" });
      if (!mended) throw new TypeError("no such customer");
      expect(job.attempt).toBe(1);
    },
    { retry: { retries: 1, delaysMs: [5] } },
  );
  await ukemi.work();
  await storeElsewhere(url, ["evt_1"], { tenant: "org_1", refs: [{ kind: "payment_intent", id: "pi_1" }] });
  const [dead] = await untilDrained(pool);
  expect(dead).toMatchObject({ state: "dead", attempt: 2 });
  await pool.query("update ukemi.event_outcomes set billing_id = 'b0'");
  mended = true;
  const id = Number(dead!.id);
  const result = await operateOn(pool).dead.replay({ ids: [id] }, MANDATE);
  expect(result).toEqual({ changed: 1, skipped: 0, skips: [] });
  const [job] = await untilDrained(pool);
  expect(job).toMatchObject({ state: "done", attempt: 1, death: null });
  const { rows } = await pool.query("select status, error_message, billing_id from ukemi.webhook_events");
  expect(rows).toEqual([{ status: "success", error_message: null, billing_id: "b1" }]);
  expect((await readAudit(pool)).filter((row) => row.action === "job.replayed")).toEqual([
    {
      actor: "test:jane",
      role: "operator",
      action: "job.replayed",
      target: String(id),
      tenant: "org_1",
      details: {
        reason: "the cause is mended",
        handler: HANDLER,
        queue: "default",
        event: expect.any(String),
        event_id: "evt_1",
        type: "payment_intent.succeeded",
        refs: [{ kind: "payment_intent", id: "pi_1" }],
        death: "exhausted",
        error_class: "TypeError",
      },
    },
  ]);
});

test("keeps our own ids of an event that is pending again", async () => {
  const store = await createDatabase();
  await register(store.pool);
  await makeDead(store, ["evt_1"]);
  await store.pool.query("update ukemi.event_outcomes set billing_id = 'b1', office_id = 'o1'");
  await operateOn(store.pool).dead.replay({ all: true }, MANDATE);
  const { rows } = await store.pool.query(
    "select status, error_message, processed_at, billing_id, office_id from ukemi.event_outcomes",
  );
  expect(rows).toEqual([
    { status: "pending", error_message: null, processed_at: null, billing_id: "b1", office_id: "o1" },
  ]);
});

test("replays no job twice when several operators replay the same ones at once", async () => {
  const store = await createDatabase();
  await register(store.pool);
  const ids = numbered(450);
  await makeDead(store, ids);
  const { ukemi } = makeUkemi(store.url);
  const runs: string[] = [];
  // dead again at once: a second replay that comes late must not take it for the first death
  ukemi.on("stripe", "payment_intent.succeeded", ({ event }) => {
    runs.push(event.id);
    throw terminal("still broken");
  });
  await ukemi.work();
  const { dead } = operateOn(store.pool);
  const results = await Promise.all(
    [1, 2, 3].map(() => dead.replay({ filter: { queue: "default" } }, MANDATE)),
  );
  expect(results.reduce((sum, result) => sum + result.changed, 0)).toBe(ids.length);
  await untilDrained(store.pool);
  expect(runs.toSorted()).toEqual(ids);
  const audit = await readAudit(store.pool);
  expect(audit.filter((row) => row.action === "job.replayed")).toHaveLength(ids.length);
  const skips = results.flatMap((result) => result.skips.map((skip) => skip.reason));
  for (const reason of skips) expect(["not_dead", "died_again"]).toContain(reason);
});

test("waits for another's change of the same job, and then leaves it alone", async () => {
  const store = await createDatabase();
  await register(store.pool);
  const ids = await makeDead(store, ["evt_1", "evt_2"]);
  const { dead } = operateOn(store.pool);
  const other = await store.pool.connect();
  await other.query("begin");
  await other.query(
    "update ukemi.jobs set state = 'cancelled', death = null, finished_at = ukemi.now() where id = $1",
    [ids.get("evt_1")],
  );
  const replaying = dead.replay({ filter: { queue: "default" } }, MANDATE);
  await until(
    async () =>
      (
        await store.pool.query(
          "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
        )
      ).rowCount === 1,
    "the replay waits",
  );
  await other.query("commit");
  other.release();
  expect(await replaying).toMatchObject({
    changed: 1,
    skips: [{ id: ids.get("evt_1"), reason: "not_dead" }],
  });
});

test("leaves alone what died again after it was chosen", async () => {
  const store = await createDatabase();
  await register(store.pool);
  const ids = await makeDead(store, ["evt_1"]);
  const chosen = await chooseDead(store.pool, { handler: HANDLER });
  await operateOn(store.pool).dead.replay({ all: true }, MANDATE);
  await makeDead(store, []);
  const changed = await transaction(store.pool, (client) => replayJobs(client, { ...chosen, ...MANDATE }));
  expect(changed).toEqual({ count: 0, keys: [], skips: [{ id: ids.get("evt_1"), reason: "died_again" }] });
});

test.each(["replay", "drop"] as const)("changes nothing when the audit of a %s fails", async (act) => {
  const store = await createDatabase();
  await register(store.pool);
  await makeDead(store, ["evt_1", "evt_2"]);
  const before = await readJobs(store.pool);
  await refuseAudit(store.pool, act === "replay" ? "job.replayed" : "job.dropped");
  await expect(operateOn(store.pool).dead[act]({ all: true }, MANDATE)).rejects.toThrow("the audit is full");
  expect(await readJobs(store.pool)).toEqual(before);
  expect(await readOutcomes(store.pool)).toEqual({ evt_1: "failed", evt_2: "failed" });
  expect(await readAudit(store.pool)).toEqual([]);
});

test("replays one that died by terminal when an operator says so", async () => {
  const { url, pool } = await createDatabase();
  const { ukemi } = makeUkemi(url);
  let mended = false;
  ukemi.on("stripe", "payment_intent.succeeded", () => {
    if (!mended) throw terminal("no such office");
  });
  await ukemi.work();
  await storeElsewhere(url, ["evt_1"]);
  expect((await untilDrained(pool))[0]).toMatchObject({ state: "dead", death: "terminal" });
  mended = true;
  await operateOn(pool).dead.replay({ filter: { event: "evt_1" } }, MANDATE);
  expect((await untilDrained(pool))[0]).toMatchObject({ state: "done", attempt: 1 });
});

test("replays a thousand by filter in one commit, and every one runs once", async () => {
  const store = await createDatabase();
  await register(store.pool);
  const ids = numbered(1000);
  await makeDead(store, ids);
  const { ukemi } = makeUkemi(store.url);
  const runs: string[] = [];
  ukemi.on("stripe", "payment_intent.succeeded", ({ event }) => void runs.push(event.id));
  await ukemi.work();
  const { dead } = operateOn(store.pool);
  expect(await dead.preview({ filter: { handler: HANDLER } })).toEqual({
    count: 1000,
    without_body: 0,
    groups: [{ handler: HANDLER, error_class: "TypeError", count: 1000, without_body: 0, workers: 1 }],
  });
  const result = await dead.replay({ filter: { handler: HANDLER } }, MANDATE);
  expect(result).toEqual({ changed: 1000, skipped: 0, skips: [] });
  await untilDrained(store.pool);
  expect(runs.toSorted()).toEqual(ids);
  const { rows } = await store.pool.query(
    "select status, count(*)::int from ukemi.event_outcomes group by 1",
  );
  expect(rows).toEqual([{ status: "success", count: 1000 }]);
});

test("a tenant's filter touches no other tenant", async () => {
  const store = await createDatabase();
  await register(store.pool);
  await makeDead(store, ["evt_a1", "evt_a2"], { tenant: "org_a" });
  await makeDead(store, ["evt_b"], { tenant: "org_b" });
  await makeDead(store, ["evt_none"]);
  const { dead } = operateOn(store.pool);
  expect(await dead.preview({ filter: { tenant: "org_a" } })).toMatchObject({ count: 2 });
  expect(await dead.replay({ filter: { tenant: "org_a" } }, MANDATE)).toMatchObject({ changed: 2 });
  expect(await dead.drop({ filter: { tenant: "org_c" } }, MANDATE)).toMatchObject({ changed: 0 });
  expect(await readOutcomes(store.pool)).toEqual({
    evt_a1: "pending",
    evt_a2: "pending",
    evt_b: "failed",
    evt_none: "failed",
  });
});

test("a change of up to a thousand is one transaction: all of it or nothing", async () => {
  const store = await createDatabase();
  await register(store.pool);
  const ids = await makeDead(store, numbered(1000));
  const { dead } = operateOn(store.pool);
  // the last of them cannot be changed: none is
  await store.pool.query(`
    create function refuse_job() returns trigger language plpgsql as $$ begin raise exception 'not this one'; end $$;
    create trigger refuse_job before update on ukemi.jobs
      for each row when (old.id = ${Math.max(...ids.values())}) execute function refuse_job()`);
  await expect(dead.replay({ all: true }, MANDATE)).rejects.toThrow("not this one");
  expect((await readJobs(store.pool)).every((job) => job.state === "dead")).toBe(true);
  expect(await readAudit(store.pool)).toEqual([]);
  await store.pool.query("drop function refuse_job cascade");
  await makeDead(store, ["evt_more"]);
  for (const act of ["replay", "drop"] as const) {
    await expect(dead[act]({ all: true }, MANDATE)).rejects.toMatchObject({
      code: "invalid_parameter",
      message: expect.stringContaining("matches more than 1000 dead letters") as string,
    });
  }
  expect((await readJobs(store.pool)).every((job) => job.state === "dead")).toBe(true);
  expect(await dead.replay({ ids: [...ids.values()] }, MANDATE)).toMatchObject({ changed: 1000, skipped: 0 });
});

test("a caller bound to tenants sees and changes only theirs, also by id", async () => {
  const store = await createDatabase();
  await register(store.pool);
  const mine = await makeDead(store, ["evt_a"], { tenant: "org_a" });
  const others = await makeDead(store, ["evt_b"], { tenant: "org_b" });
  const nobodys = await makeDead(store, ["evt_none"]);
  const { dead, jobs } = operateOn(store.pool);
  const bound = { tenants: ["org_a"] };
  expect((await dead.list({}, bound)).items.map((item) => item.event_id)).toEqual(["evt_a"]);
  expect((await dead.list({ tenant: "org_b" }, bound)).items).toEqual([]);
  expect(await dead.groups({}, bound)).toMatchObject([{ count: 1 }]);
  expect(await dead.preview({ all: true }, bound)).toMatchObject({ count: 1 });
  expect(await jobs.show(mine.get("evt_a")!, bound)).toMatchObject({ event_id: "evt_a" });
  for (const id of [others.get("evt_b")!, nobodys.get("evt_none")!, 999_999]) {
    expect(await jobs.show(id, bound)).toBeUndefined();
    for (const act of ["replay", "drop"] as const) {
      expect(await dead[act]({ ids: [id] }, MANDATE, bound)).toEqual({
        changed: 0,
        skipped: 1,
        skips: [{ id, reason: "unknown" }],
      });
    }
  }
  expect(await dead.drop({ all: true }, MANDATE, { tenants: [] })).toMatchObject({ changed: 0 });
  expect(await dead.drop({ all: true }, MANDATE, bound)).toMatchObject({ changed: 1 });
  expect(await readOutcomes(store.pool)).toEqual({ evt_a: "skipped", evt_b: "failed", evt_none: "failed" });
});

test("says which bodies are gone before a replay, and skips those; a drop takes them", async () => {
  const store = await createDatabase();
  await register(store.pool);
  const ids = await makeDead(store, ["evt_1", "evt_2", "evt_3"]);
  await removeBodies(store.pool, ["evt_2"]);
  const { dead, jobs } = operateOn(store.pool);
  expect(await dead.preview({ all: true })).toMatchObject({ count: 3, without_body: 1 });
  expect((await jobs.show(ids.get("evt_2")!))?.has_body).toBe(false);
  expect(await dead.replay({ all: true }, MANDATE)).toEqual({
    changed: 2,
    skipped: 1,
    skips: [{ id: ids.get("evt_2"), reason: "no_body" }],
  });
  expect(await readOutcomes(store.pool)).toEqual({ evt_1: "pending", evt_2: "failed", evt_3: "pending" });
  expect(await dead.drop({ all: true }, MANDATE)).toMatchObject({ changed: 1, skipped: 0 });
});

test("drops what is dead and nothing else, with the reason on the event", async () => {
  const store = await createDatabase();
  await register(store.pool);
  const ids = await makeDead(store, ["evt_1"]);
  await storeElsewhere(store.url, ["evt_2"]);
  const alive = Number((await readJobs(store.pool)).find((job) => job.event_id === "evt_2")!.id);
  const { dead } = operateOn(store.pool);
  const chosen = { ids: [ids.get("evt_1")!, alive, 999_999] };
  expect(await dead.drop(chosen, { actor: "test:jane", reason: "a test payment" })).toEqual({
    changed: 1,
    skipped: 2,
    skips: [
      { id: alive, reason: "not_dead" },
      { id: 999_999, reason: "unknown" },
    ],
  });
  expect((await readJobs(store.pool)).map((job) => [job.event_id, job.state, job.death])).toEqual([
    ["evt_1", "cancelled", null],
    ["evt_2", "ready", null],
  ]);
  const { rows } = await store.pool.query(
    "select status, error_message from ukemi.webhook_events where event_id = 'evt_1'",
  );
  expect(rows).toEqual([{ status: "skipped", error_message: "dropped: a test payment" }]);
  expect(await dead.drop(chosen, MANDATE)).toMatchObject({ changed: 0, skipped: 3 });
  expect(await dead.replay(chosen, MANDATE)).toMatchObject({ changed: 0, skipped: 3 });
  expect(await readAudit(store.pool)).toMatchObject([
    { action: "job.dropped", target: String(ids.get("evt_1")), details: { event_id: "evt_1" } },
  ]);
  expect((await store.pool.query("select from ukemi.failed_webhook_events")).rowCount).toBe(0);
});

test("an event stays failed while another of its jobs is dead", async () => {
  const store = await createDatabase();
  await register(store.pool);
  await register(store.pool, { name: "second", pattern: "payment_intent.*" });
  await makeDead(store, ["evt_1"]);
  const { dead } = operateOn(store.pool);
  await dead.replay({ filter: { handler: HANDLER } }, MANDATE);
  expect(await readOutcomes(store.pool)).toEqual({ evt_1: "failed" });
  await dead.drop({ filter: { handler: "second" } }, MANDATE);
  expect(await readOutcomes(store.pool)).toEqual({ evt_1: "pending" });
  const { ukemi } = makeUkemi(store.url);
  ukemi.on("stripe", "payment_intent.succeeded", () => {});
  await ukemi.work();
  await untilDrained(store.pool);
  expect(await readOutcomes(store.pool)).toEqual({ evt_1: "success" });
});

test("two dead jobs of one event that are replayed at once leave it pending", async () => {
  const store = await createDatabase();
  await register(store.pool);
  await register(store.pool, { name: "second", pattern: "payment_intent.*" });
  const events = numbered(40);
  await makeDead(store, events);
  const { dead } = operateOn(store.pool);
  await Promise.all([HANDLER, "second"].map((handler) => dead.replay({ filter: { handler } }, MANDATE)));
  expect(await readOutcomes(store.pool)).toEqual(Object.fromEntries(events.map((id) => [id, "pending"])));
});

test("jobs of one key that are replayed run one at a time, and in order", async () => {
  const store = await createDatabase();
  await register(store.pool, { keyBy: "tenant", ordered: true });
  const events = numbered(250);
  for (const batch of [events.slice(0, 120), events.slice(120)]) {
    await makeDead(store, batch, { tenant: "org_1" });
  }
  // they died in another order than they came
  await store.pool.query("update ukemi.jobs set finished_at = finished_at - id * interval '1 s'");
  const { ukemi } = makeUkemi(store.url);
  let running = 0;
  let most = 0;
  const runs: string[] = [];
  ukemi.on(
    "stripe",
    "payment_intent.succeeded",
    async ({ event }) => {
      running += 1;
      most = Math.max(most, running);
      runs.push(event.id);
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
    },
    { key: "tenant", ordered: true },
  );
  await ukemi.work();
  await operateOn(store.pool).dead.replay({ all: true }, MANDATE);
  await untilDrained(store.pool);
  expect(most).toBe(1);
  const made = (await readJobs(store.pool)).map((job) => job.event_id);
  expect(runs).toEqual(made);
});

test("what killed its workers is claimed alone when it is replayed", async () => {
  const store = await createDatabase();
  await register(store.pool);
  await makeDead(store, ["evt_crashed"], { death: "crashed" });
  await makeDead(store, ["evt_other"]);
  await operateOn(store.pool).dead.replay({ all: true }, MANDATE);
  expect((await readJobs(store.pool)).map((job) => [job.event_id, job.recoveries])).toEqual([
    ["evt_crashed", 1],
    ["evt_other", 0],
  ]);
});

test("a sender's resend revives once, audited, and not what died by terminal", async () => {
  const { url, pool } = await createDatabase();
  const { ukemi } = makeUkemi(url);
  ukemi.on(
    "stripe",
    "payment_intent.succeeded",
    ({ event }) => {
      throw event.id === "evt_terminal" ? terminal("never") : new Error("broken");
    },
    { retry: { retries: 0, delaysMs: [] } },
  );
  await ukemi.work();
  await storeElsewhere(url, ["evt_1", "evt_terminal"]);
  await untilDrained(pool);
  const revivals = async () =>
    (
      await pool.query<{ event_id: string; revivals: number; state: string }>(
        "select event_id, revivals, state from ukemi.jobs j join ukemi.events e on e.id = j.event order by 1",
      )
    ).rows;
  for (let resend = 0; resend < 3; resend++) {
    await storeElsewhere(url, ["evt_1", "evt_terminal"]);
    await untilDrained(pool);
  }
  expect(await revivals()).toEqual([
    { event_id: "evt_1", revivals: 1, state: "dead" },
    { event_id: "evt_terminal", revivals: 0, state: "dead" },
  ]);
  const revived = (await readAudit(pool)).filter((row) => row.action === "job.revived");
  expect(revived).toMatchObject([{ actor: "sender", details: { handler: HANDLER } }]);
  // an operator's replay gives the sender no second chance
  await operateOn(pool).dead.replay({ filter: { event: "evt_1" } }, MANDATE);
  await untilDrained(pool);
  await storeElsewhere(url, ["evt_1"]);
  expect(await revivals()).toMatchObject([{ revivals: 1, state: "dead" }, { revivals: 0 }]);
});

test("lists newest first by every filter, and pages without missing or repeating one while others die", async () => {
  const store = await createDatabase();
  await register(store.pool);
  await register(store.pool, { name: "charges", pattern: "charge.*", queue: "slow" });
  await makeDead(store, ["evt_1"], { tenant: "org_1", refs: [{ kind: "payment_intent", id: "pi_1" }] });
  await makeDead(store, ["evt_2"], { type: "charge.failed", errorClass: "RangeError" });
  const { dead } = operateOn(store.pool);
  const found = async (filter: Parameters<typeof dead.list>[0]) =>
    (await dead.list(filter)).items.map((item) => item.event_id);
  expect(await found({})).toEqual(["evt_2", "evt_1"]);
  expect(await found({ handler: "charges" })).toEqual(["evt_2"]);
  expect(await found({ queue: "slow" })).toEqual(["evt_2"]);
  expect(await found({ type: "payment_intent.succeeded" })).toEqual(["evt_1"]);
  expect(await found({ source: "stripe", errorClass: "RangeError" })).toEqual(["evt_2"]);
  expect(await found({ source: "other" })).toEqual([]);
  expect(await found({ tenant: "org_1" })).toEqual(["evt_1"]);
  expect(await found({ ref: "pi_1" })).toEqual(["evt_1"]);
  expect(await found({ event: "evt_1" })).toEqual(["evt_1"]);
  const [first] = (await dead.list({ event: "evt_1" })).items;
  expect(await found({ event: first!.event! })).toEqual(["evt_1"]);
  expect(await found({ ids: [first!.id] })).toEqual(["evt_1"]);
  expect(await found({ since: new Date(Date.now() + 60_000) })).toEqual([]);
  expect(await found({ until: new Date(Date.now() - 60_000) })).toEqual([]);

  // many that died in the same statement, and some at the very same microsecond
  await makeDead(store, numbered(30));
  await store.pool.query(
    "update ukemi.jobs set finished_at = date_trunc('second', finished_at) where id % 2 = 0",
  );
  const seen: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await dead.list({ errorClass: "TypeError" }, { limit: 7, cursor });
    seen.push(...page.items.map((item) => item.event_id!));
    cursor = page.cursor;
    await makeDead(store, [`evt_new_${seen.length}`]);
  } while (cursor !== undefined);
  const old = seen.filter((id) => !id.startsWith("evt_new"));
  expect(old.toSorted()).toEqual(["evt_1", ...numbered(30)].toSorted());
  expect(new Set(seen).size).toBe(seen.length);
});

test("groups by error class and handler, with a sample", async () => {
  const store = await createDatabase();
  await register(store.pool);
  await makeDead(store, ["evt_1", "evt_2", "evt_3"]);
  const ids = await makeDead(store, ["evt_4"], { errorClass: "RangeError", tenant: "org_1" });
  const { dead } = operateOn(store.pool);
  const groups = await dead.groups();
  expect(groups.map(({ error_class, handler, count }) => [error_class, handler, count])).toEqual([
    ["TypeError", HANDLER, 3],
    ["RangeError", HANDLER, 1],
  ]);
  expect(groups[1]).toMatchObject({
    sample_id: ids.get("evt_4"),
    sample_message: `RangeError of job ${ids.get("evt_4")}`,
    oldest_at: expect.any(Date),
    newest_at: expect.any(Date),
  });
  expect(await dead.groups({ tenant: "org_1" })).toHaveLength(1);
});

test("shows one with its event, every try and everything that was done to it", async () => {
  const { url, pool } = await createDatabase();
  const { ukemi } = makeUkemi(url);
  ukemi.on(
    "stripe",
    "payment_intent.succeeded",
    () => {
      throw new TypeError("no such customer: jane@example.com");
    },
    { retry: { retries: 1, delaysMs: [5] } },
  );
  await ukemi.work();
  await storeElsewhere(url, ["evt_1"], { refs: [{ kind: "payment_intent", id: "pi_1" }] });
  const [job] = await untilDrained(pool);
  const { dead, jobs } = operateOn(pool);
  await dead.replay({ ids: [Number(job!.id)] }, MANDATE);
  await untilDrained(pool);
  const shown = await jobs.show(Number(job!.id));
  expect(shown).toMatchObject({
    id: Number(job!.id),
    state: "dead",
    death: "exhausted",
    handler: HANDLER,
    queue: "default",
    event_id: "evt_1",
    refs: [{ kind: "payment_intent", id: "pi_1" }],
    attempts: 2,
    has_body: true,
    received_at: expect.any(Date),
    outcome: { status: "failed", error_message: "no such customer: [address]", billing_id: null },
  });
  expect(shown!.tries.map(({ number, outcome }) => [number, outcome])).toEqual([
    [1, "retry"],
    [2, "dead"],
    [1, "retry"],
    [2, "dead"],
  ]);
  expect(shown!.tries[0]).toMatchObject({
    error_class: "TypeError",
    error_stack: expect.stringContaining("at "),
  });
  expect(shown!.acts.map(({ actor, action, reason }) => [actor, action, reason])).toEqual([
    ["ukemi", "job.dead", null],
    ["test:jane", "job.replayed", "the cause is mended"],
    ["ukemi", "job.dead", null],
  ]);
  expect(await jobs.show(999_999)).toBeUndefined();
});

test("refuses a change without a reason, and one that would mean everything by mistake", async () => {
  const store = await createDatabase();
  await register(store.pool);
  await makeDead(store, ["evt_1"]);
  const { dead } = operateOn(store.pool);
  const refused = { code: "invalid_parameter" };
  await expect(dead.replay({ all: true }, { actor: "jane", reason: "  " })).rejects.toMatchObject(refused);
  await expect(dead.drop({ all: true }, { actor: "", reason: "x" })).rejects.toMatchObject(refused);
  await expect(dead.drop({ filter: {} }, MANDATE)).rejects.toMatchObject(refused);
  await expect(dead.drop({ filter: { tenant: undefined } as never }, MANDATE)).rejects.toMatchObject(refused);
  await expect(dead.drop({ filter: { tenant: "" } }, MANDATE)).rejects.toMatchObject(refused);
  await expect(dead.drop({ ids: [] }, MANDATE)).rejects.toMatchObject(refused);
  await expect(dead.drop({ ids: [1.5] }, MANDATE)).rejects.toMatchObject(refused);
  await expect(dead.drop({ ids: numbered(1001).map((_, i) => i + 1) }, MANDATE)).rejects.toMatchObject(
    refused,
  );
  await expect(dead.list({}, { cursor: "x" })).rejects.toMatchObject(refused);
  expect(await readOutcomes(store.pool)).toEqual({ evt_1: "failed" });
});

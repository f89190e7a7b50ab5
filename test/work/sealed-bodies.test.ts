// Bodies sealed at rest: nobody reads them in the tables, every reader with the key does, and no key costs no event.
import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { createOperate } from "../../src/operate/operate.ts";
import { createKeyring } from "../../src/storage/keyring.ts";
import { transaction, type Pool } from "../../src/storage/postgres.ts";
import { tablesWith } from "../support/canary.ts";
import { runCli } from "../support/cli.ts";
import type { Alert } from "../../src/observe/alerts.ts";
import { createDatabase } from "../support/database.ts";
import { MANDATE, readAudit, refuseAudit } from "../support/dead.ts";
import { post } from "../support/letter-box.ts";
import { startTestServer } from "../support/in-process.ts";
import { until } from "../support/until.ts";
import { makeUkemi, readJobs, untilDrained } from "../support/work.ts";

const masterKey = (name: string) => `${name}:${randomBytes(32).toString("base64")}`;

/** So far the clock is moved to be in the next month. */
const MONTH_SECONDS = 32 * 86_400;

const BODY_CANARY = "canary-hanako-in-the-body";
const HEADER_CANARY = "canary-taro-in-the-headers";

const SECRET_EVENT = {
  metadata: { note: BODY_CANARY },
  headers: { "x-note": HEADER_CANARY },
};

async function tamper(pool: Pool, statement: string): Promise<void> {
  await transaction(pool, async (client) => {
    await client.query("set local session_replication_role = replica");
    await client.query("alter table ukemi.event_bodies disable trigger user");
    await client.query(statement);
  });
}

const bodies = async (pool: Pool) =>
  (
    await pool.query<{ event_id: string; key_id: string | null }>(
      `select e.event_id, b.key_id from ukemi.events e join ukemi.event_bodies b on b.event = e.id order by e.id`,
    )
  ).rows;

test("seals bodies and headers, and opens them for every reader", async () => {
  const { url, pool } = await createDatabase();
  const place = makeUkemi(url, { bodyKeys: [masterKey("a")] });
  const { ukemi } = place;
  const seen: [string, string, unknown][] = [];
  let fails = true;
  ukemi.on("stripe", "payment_intent.succeeded", ({ event, received }) => {
    seen.push(["queue", received.body.toString(), received.headers["x-note"]]);
    if (event.id === "evt_fails" && fails) throw new Error("not today");
  });
  ukemi.on(
    "stripe",
    "charge.succeeded",
    ({ received }) => void seen.push(["inline", received.body.toString(), received.headers["x-note"]]),
    { queue: "inline" },
  );
  // before anybody works: it is claimed from the table, not handed over in memory
  await ukemi.start();
  expect(await post(place, { id: "evt_1", ...SECRET_EVENT })).toEqual({ status: 204, duplicate: false });
  expect(await tablesWith(pool, BODY_CANARY)).toEqual([]);
  await ukemi.work();
  await until(() => seen.length === 1, "the claimed job to run");
  await post(place, { id: "evt_fails", ...SECRET_EVENT });
  await post(place, { id: "evt_inline", type: "charge.succeeded", ...SECRET_EVENT });
  await until(
    async () => (await readJobs(pool)).some((job) => job.state === "dead"),
    "the failing job to die",
    30_000,
  );
  const failed = seen.length;
  fails = false;
  expect(await ukemi.operate.dead.replay({ all: true }, MANDATE)).toMatchObject({ changed: 1 });
  await untilDrained(pool);
  expect(seen.length).toBe(failed + 1);
  expect(new Set(seen.map(([how]) => how))).toEqual(new Set(["queue", "inline"]));
  for (const [, body, header] of seen) {
    expect(body).toContain(BODY_CANARY);
    expect(header).toBe(HEADER_CANARY);
  }
  const shown = await ukemi.operate.bodies.show("evt_1");
  expect(shown).toMatchObject({ event_id: "evt_1", state: "kept", erased_at: null });
  expect(shown!.data_key).toMatch(/^\d{4}-\d\d$/);
  expect(shown!.body).toContain(BODY_CANARY);
  expect(shown!.headers).toMatchObject({ "x-note": HEADER_CANARY });
  // and what lies in the tables tells nothing, though its digest and length are those of the plain body
  expect(await tablesWith(pool, BODY_CANARY)).toEqual([]);
  expect(await tablesWith(pool, HEADER_CANARY)).toEqual([]);
  const { rows } = await pool.query(
    `select e.body_bytes = length(b.body) - 29 as same_length, sha256($1) = e.body_sha256 as same_digest
     from ukemi.events e join ukemi.event_bodies b on b.event = e.id where e.event_id = 'evt_1'`,
    [Buffer.from(shown!.body_base64!, "base64")],
  );
  expect(rows).toEqual([{ same_length: true, same_digest: true }]);
  expect((await pool.query("select distinct payload from ukemi.webhook_events")).rows).toEqual([
    { payload: null },
  ]);
});

test("the words of the body are found where it is not sealed: the search can fail", async () => {
  const { url, pool } = await createDatabase();
  const place = makeUkemi(url);
  await post(place, { id: "evt_1", ...SECRET_EVENT });
  await post(place, { id: "evt_2", ...SECRET_EVENT, secret: "whsec_another" });
  await until(
    async () => (await tablesWith(pool, BODY_CANARY)).includes("rejections"),
    "the rejection to be kept",
  );
  expect(await tablesWith(pool, BODY_CANARY)).toEqual(["event_bodies", "rejections"]);
  expect(await tablesWith(pool, HEADER_CANARY)).toEqual(["event_bodies", "rejections"]);
});

test("a refused request leaves no content in the quarantine either", async () => {
  const { url, pool } = await createDatabase();
  const place = makeUkemi(url, { bodyKeys: [masterKey("a")] });
  expect(await post(place, { id: "evt_1", ...SECRET_EVENT, secret: "whsec_another" })).toMatchObject({
    status: 400,
  });
  const read = () =>
    pool.query<{ reason: string; header: string; sample: number; body_bytes: number }>(
      `select reason, headers::json ->> 'x-note' as header, length(body_sample) as sample, body_bytes
       from ukemi.rejections`,
    );
  await until(async () => (await read()).rowCount === 1, "the rejection to be kept");
  expect((await read()).rows[0]).toMatchObject({ reason: "wrong_secret", header: "[not kept]", sample: 0 });
  expect((await read()).rows[0]!.body_bytes).toBeGreaterThan(100);
  expect(await tablesWith(pool, BODY_CANARY)).toEqual([]);
  expect(await tablesWith(pool, HEADER_CANARY)).toEqual([]);
});

test("refuses to start without the key, or with another of its name, and says which", async () => {
  const { url, pool } = await createDatabase();
  const [a, b] = [masterKey("a"), masterKey("b")];
  const place = makeUkemi(url, { bodyKeys: [a] });
  await post(place, { id: "evt_1" });
  const month = (await bodies(pool))[0]!.key_id!;
  for (const [bodyKeys, why] of [
    [[], 'bodyKeys has no key named "a"'],
    [[b], 'bodyKeys has no key named "a"'],
    [["plain", b], 'bodyKeys has no key named "a"'],
    [[masterKey("a")], 'the key named "a" in bodyKeys is not the one that sealed it'],
  ] as const) {
    const other = makeUkemi(url, { bodyKeys, commitDeadlineMs: 500 });
    other.ukemi.on("stripe", "*", () => {});
    await expect(other.ukemi.work()).rejects.toMatchObject({ code: "body_sealed" });
    await expect(other.ukemi.start()).rejects.toMatchObject({
      code: "body_sealed",
      message: `The data key ${month} cannot be opened: ${why}.`,
    });
    // an embedded receiver that nobody started tells the sender to come again; nothing is stored in plain
    expect(await post(other, { id: "evt_2" })).toMatchObject({ status: 503 });
    for (const key of [a, b]) expect(JSON.stringify(other.lines())).not.toContain(key.split(":")[1]);
  }
  expect(await bodies(pool)).toHaveLength(1);
}, 120_000);

test("a job whose key is missing waits without burning an attempt, and is told of once", async () => {
  const { url, pool } = await createDatabase();
  const [a, b] = [masterKey("a"), masterKey("b")];
  const alerts: Alert[] = [];
  const poor = makeUkemi(url, { bodyKeys: [a], onAlert: (alert) => void alerts.push(alert) });
  const runs: string[] = [];
  poor.ukemi.on("stripe", "*", ({ event }) => void runs.push((event as { id: string }).id));
  await poor.ukemi.work();
  // a month later somebody who has a newer master key makes the month's data key
  await pool.query("update ukemi.clock set shift = '32 days'");
  const rich = makeUkemi(url, { bodyKeys: [b, a] });
  expect(await post(rich, { id: "evt_1", shiftSeconds: MONTH_SECONDS })).toMatchObject({ status: 204 });
  expect(await post(rich, { id: "evt_2", shiftSeconds: MONTH_SECONDS })).toMatchObject({ status: 204 });
  await until(
    async () => (await pool.query("select from ukemi.jobs where returns > 0")).rowCount === 2,
    "both jobs to be given back",
  );
  // the receiver that cannot open the month's key goes on with the last one
  await poor.ukemi.store().keyring.renew(poor.ukemi.store().duties);
  await poor.ukemi.store().keyring.renew(poor.ukemi.store().duties);
  expect(poor.lines().filter((line) => String(line.msg).startsWith("the month's data key"))).toHaveLength(1);
  expect(await post(poor, { id: "evt_3", shiftSeconds: MONTH_SECONDS })).toMatchObject({ status: 204 });
  await until(() => runs.includes("evt_3"), "the event under the last key to be worked on");
  await until(
    async () => {
      await pool.query("update ukemi.jobs set run_at = ukemi.now() where state = 'scheduled'");
      return (await pool.query("select from ukemi.jobs where returns > 1")).rowCount === 2;
    },
    "both to be tried again",
    30_000,
  );
  // however often they come back, what is written of it has an end
  // (also of the one that is in the worker's hands right now)
  await pool.query("update ukemi.jobs set returns = 20 where returns > 0");
  const returned = (times: number) =>
    until(async () => {
      await pool.query("update ukemi.jobs set run_at = ukemi.now() where state = 'scheduled'");
      return (await pool.query("select from ukemi.jobs where returns > $1", [times])).rowCount === 2;
    }, `both to come back more than ${times} times`);
  const written = async () => (await pool.query("select from ukemi.attempts")).rowCount;
  await returned(20);
  const soFar = await written();
  await returned(22);
  expect(await written()).toBe(soFar);
  expect(alerts).toMatchObject([
    { kind: "body_sealed", message: expect.stringContaining('bodyKeys has no key named "b"') as unknown },
  ]);
  expect(runs).toEqual(["evt_3"]);
  const waiting = (await readJobs(pool)).filter((job) => job.event_id !== "evt_3");
  expect(waiting.map(({ attempt, death }) => ({ attempt, death }))).toEqual([
    { attempt: 0, death: null },
    { attempt: 0, death: null },
  ]);
  // whoever has the key can do it
  rich.ukemi.on("stripe", "*", ({ event }) => void runs.push((event as { id: string }).id));
  await poor.ukemi.stop();
  await rich.ukemi.work();
  await pool.query("update ukemi.jobs set run_at = ukemi.now() where state = 'scheduled'");
  await untilDrained(pool);
  expect(runs.toSorted()).toEqual(["evt_1", "evt_2", "evt_3"]);
}, 120_000);

test("a body that was changed, or changed places, ends dead at once; restored, it can be replayed", async () => {
  const { url, pool } = await createDatabase();
  const place = makeUkemi(url, { bodyKeys: [masterKey("a")] });
  const { ukemi } = place;
  const runs: string[] = [];
  ukemi.on("stripe", "*", ({ event }) => void runs.push((event as { id: string }).id));
  await ukemi.start();
  for (const id of ["evt_fine", "evt_flipped", "evt_swap_1", "evt_swap_2", "evt_key"])
    await post(place, { id });
  await pool.query("create table backup as select * from ukemi.event_bodies");
  const of = (id: string) => `(select id from ukemi.events where event_id = '${id}')`;
  await tamper(
    pool,
    `update ukemi.event_bodies set body = set_byte(body, 30, get_byte(body, 30) # 1) where event = ${of("evt_flipped")};
     update ukemi.event_bodies set key_id = '1999-01' where event = ${of("evt_key")};
     update ukemi.event_bodies t set body = s.body, headers = s.headers from backup s
     where (t.event = ${of("evt_swap_1")} and s.event = ${of("evt_swap_2")})
       or (t.event = ${of("evt_swap_2")} and s.event = ${of("evt_swap_1")})`,
  );
  await expect(ukemi.operate.bodies.show("evt_swap_1")).rejects.toMatchObject({ code: "body_altered" });
  await ukemi.work();
  const jobs = await untilDrained(pool);
  expect(runs).toEqual(["evt_fine"]);
  for (const job of jobs.filter(({ event_id }) => event_id !== "evt_fine")) {
    expect(job).toMatchObject({ state: "dead", death: "terminal", error_class: "UkemiError body_altered" });
  }
  await tamper(
    pool,
    `update ukemi.event_bodies t set body = s.body, headers = s.headers, key_id = s.key_id
     from backup s where s.event = t.event`,
  );
  expect(await ukemi.operate.dead.replay({ all: true }, MANDATE)).toMatchObject({ changed: 4 });
  await untilDrained(pool);
  expect(runs).toHaveLength(5);
});

test("serve refuses to start, and doctor says why", async () => {
  const { url } = await createDatabase();
  const a = masterKey("a");
  await makeUkemi(url, { bodyKeys: [a] }).ukemi.start();
  const said = 'bodyKeys has no key named "a"';
  const serve = await runCli(["serve"], { DATABASE_URL: url, UKEMI_PORT: "0" });
  expect(serve.code).toBe(1);
  expect(serve.output).toContain(said);
  expect(serve.output).toContain("UKEMI_BODY_KEYS");
  const wrong = await runCli(["doctor"], { DATABASE_URL: url });
  expect(wrong.code).toBe(1);
  expect(wrong.output).toContain(said);
  const right = await runCli(["doctor"], { DATABASE_URL: url, UKEMI_BODY_KEYS: a });
  expect(right.output).toContain("sealed, with data keys under the master key a");
  expect(right.output).toMatch(/bodyKeys\s+\(1 set, hidden\)/);
  expect(right.output).not.toContain(a.split(":")[1]);
  const malformed = await runCli(["doctor"], { DATABASE_URL: url, UKEMI_BODY_KEYS: `${a}x` });
  expect(malformed.code).toBe(2);
  expect(malformed.output).toContain("UKEMI_BODY_KEYS (key 1 of the list) must have a key of 32 bytes");
});

test("two processes that make the month's key at once agree on one", async () => {
  const { pool } = await createDatabase();
  const [a, b] = [masterKey("a"), masterKey("b")];
  const rings = Array.from({ length: 4 }, (_, index) => createKeyring(index % 2 ? [a, b] : [b, a]));
  await Promise.all(rings.map((ring) => ring.load(pool)));
  expect((await pool.query("select from ukemi.data_keys")).rowCount).toBe(1);
  const content = { body: Buffer.from("{}"), headers: "{}" };
  for (const from of rings) {
    for (const to of rings) {
      expect(await to.open(pool, "event", from.seal("event", content))).toEqual(content);
    }
  }
});

test("takes a new key with a new month, and opens the bodies of all", async () => {
  const { url, pool } = await createDatabase();
  const place = makeUkemi(url, { bodyKeys: [masterKey("a")] });
  const { ukemi } = place;
  await post(place, { id: "evt_1", ...SECRET_EVENT });
  await pool.query("update ukemi.clock set shift = '32 days'");
  await ukemi.store().keyring.renew(ukemi.store().duties);
  await post(place, { id: "evt_2", shiftSeconds: MONTH_SECONDS, ...SECRET_EVENT });
  const ids = (await bodies(pool)).map((row) => row.key_id);
  expect(new Set(ids).size).toBe(2);
  expect((await ukemi.operate.bodies.keys()).map((key) => [key.id, key.wrapped_by, key.opens])).toEqual(
    ids.map((id) => [id, "a", true]),
  );
  for (const id of ["evt_1", "evt_2"]) {
    expect((await ukemi.operate.bodies.show(id))!.body).toContain(BODY_CANARY);
  }
});

test("a receiver goes on with the last key when the month's cannot be made", async () => {
  const { url, pool } = await createDatabase();
  const place = makeUkemi(url, { bodyKeys: [masterKey("a")] });
  await place.ukemi.start();
  await pool.query("update ukemi.clock set shift = '32 days'");
  await pool.query("alter table ukemi.data_keys rename to data_keys_away");
  await place.ukemi.store().keyring.renew(place.ukemi.store().duties);
  expect(await post(place, { id: "evt_1", shiftSeconds: MONTH_SECONDS })).toMatchObject({ status: 204 });
  await pool.query("alter table ukemi.data_keys_away rename to data_keys");
  expect((await bodies(pool))[0]!.key_id).toBe((await place.ukemi.operate.bodies.keys())[0]!.id);
});

test("a master key is replaced while events come in, and the old one is needed no more", async () => {
  const { url, pool } = await createDatabase();
  const [old, young] = [masterKey("old"), masterKey("young")];
  const before = makeUkemi(url, { bodyKeys: [old] });
  const after = makeUkemi(url, { bodyKeys: [young, old] });
  const runs = new Set<string>();
  for (const { ukemi } of [before, after]) {
    ukemi.on("stripe", "*", ({ event }) => void runs.add((event as { id: string }).id));
    await ukemi.work();
  }
  let sent = 0;
  const enough = new AbortController();
  const told: number[] = [];
  const senders = [before, after, before, after].map(async (place) => {
    while (!enough.signal.aborted)
      told.push((await post(place, { id: `evt_${sent++}`, ...SECRET_EVENT })).status);
  });
  await until(() => sent > 100, "events to come in");
  const { bodies: hands } = after.ukemi.operate;
  expect(await hands.rewrap(MANDATE)).toEqual({ wrapped_by: "young", changed: 1, data_keys: 1 });
  expect(await hands.rewrap(MANDATE)).toEqual({ wrapped_by: "young", changed: 0, data_keys: 1 });
  const then = sent;
  await until(() => sent > then + 100, "more events to come in");
  enough.abort();
  await Promise.all(senders);
  expect(told.every((status) => status === 204)).toBe(true);
  await untilDrained(pool);
  expect(runs.size).toBe(sent);
  await Promise.all([before.ukemi.stop(), after.ukemi.stop()]);
  const next = makeUkemi(url, { bodyKeys: [young] });
  await next.ukemi.start();
  expect((await next.ukemi.operate.bodies.show("evt_0"))!.body).toContain(BODY_CANARY);
  await expect(makeUkemi(url, { bodyKeys: [old] }).ukemi.start()).rejects.toMatchObject({
    code: "body_sealed",
  });
  expect((await readAudit(pool)).filter((row) => row.action === "bodies.rewrapped")).toMatchObject([
    { ...actor(), target: "young", details: { from: ["old"], reason: MANDATE.reason } },
    { ...actor(), target: "young", details: { from: [], data_keys: [] } },
  ]);
}, 120_000);

const actor = () => ({ actor: MANDATE.actor, role: "operator" });

test("a re-wrap that is killed, or not audited, has changed nothing", async () => {
  const { url, pool } = await createDatabase();
  const [old, young] = [masterKey("old"), masterKey("young")];
  const first = makeUkemi(url, { bodyKeys: [old] });
  await first.ukemi.start();
  await pool.query("update ukemi.clock set shift = '32 days'");
  const place = makeUkemi(url, { bodyKeys: [young, old] });
  await place.ukemi.start();
  await pool.query("update ukemi.clock set shift = '64 days'");
  await place.ukemi.store().keyring.renew(place.ukemi.store().duties);
  const keys = async () =>
    (await pool.query("select id, wrapped, wrapped_by from ukemi.data_keys order by id")).rows;
  const were = await keys();
  expect(were.map((row) => (row as { wrapped_by: string }).wrapped_by)).toEqual(["old", "young", "young"]);
  // it stands between the update and the audit when its backend dies
  const client = await pool.connect();
  await client.query("begin; lock table ukemi.audit_log in exclusive mode");
  const { bodies: hands } = place.ukemi.operate;
  const killed = hands.rewrap(MANDATE).catch((error: unknown) => error);
  await until(
    async () =>
      (
        await pool.query(
          `select pg_terminate_backend(pid) from pg_stat_activity
           where datname = current_database() and wait_event_type = 'Lock' and query like '%bodies.rewrapped%'`,
        )
      ).rowCount === 1,
    "the re-wrap to be killed",
  );
  expect(await killed).toBeInstanceOf(Error);
  await client.query("rollback");
  client.release();
  expect(await keys()).toEqual(were);
  await refuseAudit(pool, "bodies.rewrapped");
  await expect(hands.rewrap(MANDATE)).rejects.toThrow("the audit is full");
  expect(await keys()).toEqual(were);
  await pool.query("drop trigger refuse_audit on ukemi.audit_log");
  // all or none: one key that cannot be opened keeps the others as they are
  await expect(
    makeUkemi(url, { bodyKeys: [masterKey("third"), old] }).ukemi.operate.bodies.rewrap(MANDATE),
  ).rejects.toMatchObject({ code: "body_sealed" });
  for (const bodyKeys of [[], ["plain", old]]) {
    const hand = makeUkemi(url, { bodyKeys: bodyKeys.length ? [...bodyKeys, young] : [] }).ukemi.operate;
    await expect(hand.bodies.rewrap(MANDATE)).rejects.toThrow();
  }
  expect(await keys()).toEqual(were);
  expect(await hands.rewrap(MANDATE)).toEqual({ wrapped_by: "young", changed: 1, data_keys: 3 });
});

test("turned on later and off again, old bodies stay as they are and all are read", async () => {
  const { url, pool } = await createDatabase();
  const a = masterKey("a");
  const runs: string[] = [];
  const stages = [[], [a], ["plain", a]];
  for (const [index, bodyKeys] of stages.entries()) {
    const place = makeUkemi(url, { bodyKeys });
    await place.ukemi.start();
    expect(await post(place, { id: `evt_${index}`, ...SECRET_EVENT })).toMatchObject({ status: 204 });
    await place.ukemi.stop();
  }
  expect((await bodies(pool)).map((row) => row.key_id !== null)).toEqual([false, true, false]);
  const last = makeUkemi(url, { bodyKeys: ["plain", a] });
  last.ukemi.on("stripe", "*", ({ received }) => void runs.push(received.body.toString()));
  await last.ukemi.work();
  await last.ukemi.operate.events.route({ since: new Date(0) }, MANDATE);
  await untilDrained(pool);
  expect(runs).toHaveLength(3);
  for (const body of runs) expect(body).toContain(BODY_CANARY);
  const { rows } = await pool.query<{ sealed: boolean }>(
    "select payload is null as sealed from ukemi.webhook_events order by id",
  );
  expect(rows.map((row) => row.sealed)).toEqual([false, true, false]);
});

test("data keys cannot be deleted", async () => {
  const { url, pool } = await createDatabase();
  await startTestServer({ database: url, bodyKeys: [masterKey("a")] });
  await expect(pool.query("delete from ukemi.data_keys")).rejects.toThrow("append-only");
  await expect(pool.query("truncate ukemi.data_keys")).rejects.toThrow("append-only");
});

test("seals what was stored before, while it is read, and no byte of it changes", async () => {
  const { url, pool } = await createDatabase();
  const plain = makeUkemi(url);
  const ids = Array.from({ length: 12 }, (_, index) => `evt_${index}`);
  for (const id of ids) await post(plain, { id, ...SECRET_EVENT });
  await plain.ukemi.stop();
  const before = await pool.query<{ event: string; body: Buffer; headers: string; received: string }>(
    "select event, body, headers, received_at::text as received from ukemi.event_bodies order by event",
  );
  await expect(makeUkemi(url).ukemi.operate.bodies.seal(MANDATE)).rejects.toMatchObject({
    code: "invalid_option",
  });
  const place = makeUkemi(url, { bodyKeys: [masterKey("a")] });
  const { ukemi } = place;
  await post(place, { id: "evt_sealed", ...SECRET_EVENT });
  await refuseAudit(pool, "bodies.sealed");
  await expect(ukemi.operate.bodies.seal(MANDATE)).rejects.toThrow("the audit is full");
  expect((await bodies(pool)).filter((row) => row.key_id === null)).toHaveLength(12);
  await pool.query("drop trigger refuse_audit on ukemi.audit_log");
  const runs: string[] = [];
  ukemi.on("stripe", "*", ({ received }) => void runs.push(received.body.toString()));
  await ukemi.work();
  const [sealed] = await Promise.all([
    ukemi.operate.bodies.seal(MANDATE),
    ukemi.operate.events.route({ since: new Date(0) }, MANDATE),
  ]);
  expect(sealed).toEqual({ sealed: 12, effects: 0, addresses: 0, stopped: false });
  expect(await ukemi.operate.bodies.seal(MANDATE)).toEqual({
    sealed: 0,
    effects: 0,
    addresses: 0,
    stopped: false,
  });
  expect(await tablesWith(pool, BODY_CANARY)).toEqual([]);
  expect(await tablesWith(pool, HEADER_CANARY)).toEqual([]);
  await untilDrained(pool);
  expect(runs).toHaveLength(13);
  for (const body of runs) expect(body).toContain(BODY_CANARY);
  const after = await pool.query<{ event: string; received: string }>(
    "select event, received_at::text as received from ukemi.event_bodies order by event",
  );
  const times = new Map(after.rows.map((row) => [row.event, row.received]));
  for (const row of before.rows) {
    const shown = await ukemi.operate.bodies.show(row.event);
    expect(Buffer.from(shown!.body_base64!, "base64").equals(row.body)).toBe(true);
    expect(shown!.headers).toEqual(JSON.parse(row.headers));
    expect(times.get(row.event)).toBe(row.received);
  }
});

test("what a sealing would do is counted however long it takes: a read's limit of time is not for it", async () => {
  const { pool } = await createDatabase();
  const operate = createOperate({
    open: () => Promise.resolve(pool),
    bodyKeys: [masterKey("a")],
    readTimeoutMs: 1,
  });
  const holder = await pool.connect();
  await holder.query("begin");
  await holder.query("lock table ukemi.event_bodies in access exclusive mode");
  const counting = operate.bodies.previewSeal();
  counting.catch(() => {});
  await new Promise((resolve) => setTimeout(resolve, 300));
  await holder.query("rollback");
  holder.release();
  expect(await counting).toEqual({ plain: 0, effects: 0, addresses: 0 });
});

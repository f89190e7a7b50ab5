// Promise 11 at the API: two tenants with the same ids see and change nothing of each other's.
import { expect, test } from "vitest";
import { createClient } from "../../src/client/client.ts";
import { countEvents } from "../../src/operate/statistics-round.ts";
import { createDatabase } from "../support/database.ts";
import { makeDead, readAudit, register } from "../support/dead.ts";
import { startTestServer } from "../support/in-process.ts";
import { makeToken } from "../support/token.ts";
import { until } from "../support/until.ts";

const REFS = [{ kind: "payment_intent", id: "pi_shared" }];

/** The same event id and ref for two tenants and for nobody, each with a canary that only its owner may read. */
async function start() {
  const store = await createDatabase();
  const server = await startTestServer({ database: store.url });
  await register(store.pool);
  const dead = new Map<string, number>();
  for (const tenant of ["org_1", "org_2", null]) {
    const account = tenant ?? "";
    const body = Buffer.from(`{"id":"evt_1","canary":"canary of ${tenant}"}`);
    await makeDead(store, ["evt_1"], { tenant, account, refs: REFS, body, errorClass: `Canary${tenant}` });
    const { rows } = await store.pool.query<{ id: string }>(
      "select j.id from ukemi.jobs j where j.tenant is not distinct from $1",
      [tenant],
    );
    dead.set(String(tenant), Number(rows[0]!.id));
  }
  const secret = await makeToken(server.ukemi, { scope: "operate", tenants: ["org_1"] });
  return {
    ...store,
    ukemi: server.ukemi,
    dead,
    client: createClient({ url: server.url, token: secret }),
    url: server.url,
    secret,
  };
}

test("a bound token reads only what is its own, whatever it asks for", async () => {
  const { client, dead, pool } = await start();
  await pool.query(
    `insert into ukemi.audit_log (actor, role, action, target, tenant)
     values ('h', 'handler', 'paid', 'org_1', 'org_1'), ('h', 'handler', 'paid', 'org_2', 'org_2'),
       ('h', 'handler', 'paid', 'none', null)`,
  );
  const answers = [
    await client.listEvents(),
    await client.listEvents({ ref: "pi_shared" }),
    await client.getEvent({ id: "evt_1" }),
    await client.listJobs(),
    await client.listJobs({ event: "evt_1" }),
    await client.listDead(),
    await client.listDead({ ref: "pi_shared", event: "evt_1" }),
    await client.listDead({ ids: [...dead.values()].join(",") }),
    await client.groupDead(),
    await client.getJob({ id: String(dead.get("org_1")) }),
    await client.listAudit(),
    Buffer.from(await client.getEventBody({ id: "evt_1" })).toString(),
    await client.replayDead({ filter: { ref: "pi_shared" }, dry_run: true }),
  ];
  for (const answer of answers) {
    const text = JSON.stringify(answer);
    expect(text).toMatch(/org_1/);
    expect(text).not.toMatch(/org_2|of null|Canarynull|"none"/);
  }
  const { rows } = await pool.query<{ id: string }>(
    "select id from ukemi.events where tenant is distinct from 'org_1'",
  );
  for (const { id } of rows) await expect(client.getEvent({ id })).rejects.toMatchObject({ status: 404 });
  for (const owner of ["org_2", "null"]) {
    const id = String(dead.get(owner));
    await expect(client.getJob({ id })).rejects.toMatchObject({ status: 404 });
    await expect(client.getDead({ id })).rejects.toMatchObject({ status: 404 });
  }
  for (const list of [client.listEvents, client.listJobs, client.listDead, client.listAudit]) {
    await expect(list({ tenant: "org_2" })).rejects.toMatchObject({ status: 403, code: "forbidden" });
  }
});

test("a bound token changes only what is its own, by id, by filter and by all", async () => {
  const { client, dead, pool } = await start();
  const states = async () => {
    const { rows } = await pool.query<{ owner: string; state: string }>(
      "select coalesce(tenant, 'null') as owner, state from ukemi.jobs order by id",
    );
    return Object.fromEntries(rows.map(({ owner, state }) => [owner, state]));
  };
  const ids = [...dead.values()];
  const foreign = await client.dropDead({ ids: [dead.get("org_2")!, dead.get("null")!], reason: "not mine" });
  expect(foreign).toMatchObject({
    changed: 0,
    skipped: 2,
    skips: [{ reason: "unknown" }, { reason: "unknown" }],
  });
  expect(await client.replayDead({ ids, reason: "mine and others'" })).toMatchObject({
    changed: 1,
    skipped: 2,
  });
  expect(await states()).toEqual({ org_1: "ready", org_2: "dead", null: "dead" });
  await pool.query(
    "update ukemi.jobs set state = 'dead', death = 'exhausted', finished_at = ukemi.now() where tenant = 'org_1'",
  );
  await client.dropDead({ all: true, reason: "all of mine" });
  expect(await states()).toEqual({ org_1: "cancelled", org_2: "dead", null: "dead" });
  await client.replayDead({ filter: { ref: "pi_shared" }, reason: "again" });
  expect(await states()).toEqual({ org_1: "cancelled", org_2: "dead", null: "dead" });
  const audit = await readAudit(pool);
  expect(audit.filter(({ tenant }) => tenant !== null && tenant !== "org_1")).toEqual([]);
});

test("operations, counts and erasures of a bound token touch and show only what is its own", async () => {
  const { ukemi, url, pool, client, dead } = await start();
  const root = createClient({ url, token: await makeToken(ukemi, { scope: "admin" }) });
  const theirs = await root.createOperation({
    kind: "drop",
    ids: [dead.get("org_2")!],
    name: "canary of org_2",
    reason: "theirs",
  });
  await countEvents(pool, { recentMs: 0 });
  const mine = await client.createOperation({ kind: "drop", all: true, name: "mine", reason: "all of mine" });
  expect(mine).toMatchObject({ total: 1, tenants: ["org_1"] });
  await until(async () => (await client.getOperation({ id: mine.id })).state === "done", "it to be done");
  expect((await client.listOperations()).items.map(({ id }) => id)).toEqual([mine.id]);
  expect((await client.listOperationItems({ id: mine.id })).items.map(({ job }) => job)).toEqual([
    dead.get("org_1"),
  ]);
  for (const call of [
    () => client.getOperation({ id: theirs.id }),
    () => client.listOperationItems({ id: theirs.id }),
    () => client.abortOperation({ id: theirs.id, reason: "not mine" }),
    () => client.resumeOperation({ id: theirs.id, reason: "not mine" }),
  ])
    await expect(call()).rejects.toMatchObject({ status: 404 });
  expect((await client.countTypes()).items).toMatchObject([{ received: 1 }]);
  expect((await root.countTypes()).items).toMatchObject([{ received: 3 }]);

  const eraser = createClient({ url, token: await makeToken(ukemi, { scope: "admin", tenants: ["org_1"] }) });
  expect(await eraser.eraseBodies({ ref: "pi_shared", reason: "a request" })).toMatchObject({ bodies: 1 });
  const { rows } = await pool.query<{ tenant: string | null; kept: boolean }>(
    `select e.tenant, b.event is not null as kept
     from ukemi.events e left join ukemi.event_bodies b on b.event = e.id order by e.tenant`,
  );
  expect(rows).toEqual([
    { tenant: "org_1", kept: false },
    { tenant: "org_2", kept: true },
    { tenant: null, kept: true },
  ]);
});

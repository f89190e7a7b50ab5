// /api/v1/effects: the ledger as an operator sees it, and what he decides.
import { expect, onTestFinished, test } from "vitest";
import { createClient } from "../../src/client/client.ts";
import { planEffect } from "../../src/storage/effects-plan.ts";
import { readAudit } from "../support/dead.ts";
import { answerWith, hangUp, insertEffect, readStates, startLedger } from "../support/ledger.ts";
import { makeToken } from "../support/token.ts";
import { until } from "../support/until.ts";
import { storeElsewhere, untilDrained } from "../support/work.ts";

const TYPE = "payment_intent.succeeded";

async function start(...given: Parameters<typeof startLedger>) {
  const world = await startLedger(...given);
  return { ...world, client: createClient({ url: world.url }) };
}

/** An effect that is held, by a worker's own doing. */
async function startHeld() {
  let isDeaf = true;
  const world = await start((response, request, call) =>
    isDeaf ? hangUp(response, request, call) : answerWith(response, 200),
  );
  await world.ukemi.work();
  const { id } = await world.ukemi.effects.http(null, { url: world.peer.url, body: "x", dedupe: "k" });
  await untilDrained(world.pool);
  return { ...world, id, mend: () => (isDeaf = false) };
}

test("lists effects by what people ask for, newest first, and shows no intent", async () => {
  const { client, pool } = await start();
  const old = await insertEffect(pool, {
    state: "failed",
    reason: "SMTP 550: no such mailbox",
    tenant: "org_1",
  });
  const repeated = await insertEffect(pool, {
    state: "suppressed",
    suppressed_by: old,
    dedupe_key: `key:${old}`,
    tenant: "org_1",
  });
  const sent = await insertEffect(pool, {
    target: "taro@example.jp",
    receipt: '{"response":"250 OK"}',
    feedback: "bounced",
    feedback_at: new Date(),
  });
  const call = await insertEffect(pool, {
    kind: "http",
    target: "POST https://api.example.com/",
    state: "held",
    destination: "https://api.example.com",
  });
  const ids = async (query: Parameters<typeof client.listEffects>[0]) =>
    (await client.listEffects(query)).items.map(({ id }) => id);
  expect(await ids({})).toEqual([call, sent, repeated, old]);
  expect(await ids({ to: " JANE@example.com" })).toEqual([repeated, old]);
  expect(await ids({ target: "JANE@example.com" })).toEqual([]);
  expect(await ids({ kind: "http" })).toEqual([call]);
  expect(await ids({ state: "failed" })).toEqual([old]);
  expect(await ids({ state: "done" })).toEqual([sent]);
  expect(await ids({ tenant: "org_1" })).toEqual([repeated, old]);
  expect(await ids({ dedupe: `key:${old}` })).toEqual([repeated, old]);
  expect(await ids({ dedupe: `key:${old}`, tenant: "org_2" })).toEqual([]);
  expect(await ids({ dedupe: `key:${sent}`, kind: "email" })).toEqual([sent]);
  expect(await ids({ destination: "https://api.example.com" })).toEqual([call]);
  expect(await ids({ since: new Date(Date.now() - 60_000).toISOString() })).toHaveLength(4);
  expect(await ids({ until: new Date(Date.now() - 60_000).toISOString() })).toEqual([]);
  expect(await ids({ event: "evt_unknown" })).toEqual([]);
  const first = await client.listEffects({ limit: 3 });
  expect((await client.listEffects({ limit: 3, cursor: first.cursor })).items.map(({ id }) => id)).toEqual([
    old,
  ]);
  const [item] = (await client.listEffects({ to: "taro@example.jp" })).items;
  expect(item).toMatchObject({
    template: "receipt",
    locale: "en",
    accepted_as: "250 OK",
    feedback: "bounced",
  });
  expect(JSON.stringify([await client.listEffects(), await client.getEffect({ id: sent })])).not.toContain(
    "1234",
  );
});

test("an effect of an event is found by both ids, and shown with its event and its job", async () => {
  const { client, ukemi, store, pool, peer } = await start();
  ukemi.on("stripe", TYPE, async ({ effects }) => void (await effects.http({ url: peer.url, dedupe: "a" })));
  await ukemi.work();
  await storeElsewhere(store.url, ["evt_1"]);
  await peer.saw(1);
  await untilDrained(pool);
  const event = await client.getEvent({ id: "evt_1" });
  const [effect] = (await client.listEffects({ event: "evt_1" })).items;
  expect((await client.listEffects({ event: event.id })).items).toEqual([effect]);
  const brief = { id: effect!.id, kind: "http", state: "done", target: effect!.target };
  expect(event.effects).toEqual([brief]);
  expect((await client.getJob({ id: String(event.jobs[0]!.id) })).effects).toEqual([brief]);
  expect(await client.getJob({ id: String(effect!.job) })).toMatchObject({
    kind: "effect",
    effects: [brief],
  });
  expect(await client.getEffect({ id: effect!.id })).toMatchObject({
    event_id: "evt_1",
    receipt: { status: 200 },
    attempts: [{ number: 1, result: "done", repeats: false, duration_ms: expect.any(Number) }],
    followers: [],
  });
});

test("a call whose lease has lapsed is shown as uncertain, and found as such", async () => {
  const { client, pool, ukemi } = await start();
  const gone = await insertEffect(pool, { state: "sending", attempt: 1, begun_at: new Date() });
  let release = () => {};
  const held = new Promise<void>((resolve) => (release = resolve));
  const calling = ukemi.effects.callNow("session:1", () => held.then(() => ({ client_secret: "cs_1" })), {
    timeoutMs: 60_000,
  });
  await until(async () => (await client.listEffects({ state: "sending" })).items.length === 1, "the call");
  expect((await client.listEffects({ state: "uncertain" })).items.map(({ id }) => id)).toEqual([gone]);
  const [call] = (await client.listEffects({ kind: "call" })).items;
  await expect(client.resolveEffect({ id: call!.id, as: "done", reason: "x" })).rejects.toMatchObject({
    status: 409,
    code: "effect_in_progress",
  });
  await pool.query("update ukemi.clock set shift = '2 minutes'");
  expect((await client.listEffects({ state: "uncertain" })).items).toHaveLength(2);
  await expect(client.resolveEffect({ id: call!.id, as: "again", reason: "x" })).rejects.toMatchObject({
    status: 400,
  });
  release();
  await calling;
  const shown = await client.getEffect({ id: call!.id });
  expect(shown).toMatchObject({ state: "done", receipt: null });
  expect(JSON.stringify(shown)).not.toContain("cs_1");
});

test("held, and resolved as done: what waited for it begins, and all of it is audited", async () => {
  const { client, id, pool, ukemi, peer, mend } = await startHeld();
  const next = await ukemi.effects.http(null, { url: `${peer.url}/next`, dedupe: "next", after: id });
  expect(await client.getEffect({ id: next.id })).toMatchObject({ waits_for: `effect ${id}, which is held` });
  expect(await client.getEffect({ id })).toMatchObject({ state: "held", followers: [{ id: next.id }] });
  mend();
  expect(await client.resolveEffect({ id, as: "done", reason: "the peer has it" })).toMatchObject({
    state: "done",
  });
  await untilDrained(pool);
  expect(await readStates(pool)).toEqual({ [id]: "done", [next.id]: "done" });
  expect(peer.seen.map(({ path }) => path)).toEqual(["/", "/next"]);
  expect((await readAudit(pool)).filter(({ action }) => action === "effect.resolved")).toMatchObject([
    {
      actor: "api:local",
      role: "operator",
      target: id,
      details: { reason: "the peer has it", as: "done", before: "held", after: "done" },
    },
  ]);
  expect(await client.getEffect({ id })).toMatchObject({
    acts: expect.arrayContaining([
      expect.objectContaining({ action: "effect.resolved", reason: "the peer has it" }),
    ]),
  });
  for (const as of ["done", "again", "failed"] as const)
    await expect(client.resolveEffect({ id, as, reason: "twice" })).rejects.toMatchObject({
      status: 409,
      code: "effect_settled",
    });
});

test("resolved as failed, it is not tried again", async () => {
  const { client, id, pool, peer } = await startHeld();
  await client.resolveEffect({ id, as: "failed", reason: "the peer never had it" });
  await untilDrained(pool);
  expect(await client.getEffect({ id })).toMatchObject({ state: "failed", reason: "the peer never had it" });
  expect(peer.seen).toHaveLength(1);
});

test("resolved as again, it is tried with the same key, and marked as a repetition", async () => {
  const { client, id, pool, peer, mend } = await startHeld();
  mend();
  const before = await client.getEffect({ id });
  const { job, state } = await client.resolveEffect({ id, as: "again", reason: "the peer does not have it" });
  expect(state).toBe("uncertain");
  expect(job).not.toBe(before.job);
  await untilDrained(pool);
  expect(peer.seen.map(({ key }) => key)).toEqual([id, id]);
  expect(await client.getEffect({ id })).toMatchObject({
    state: "done",
    uncertainties: 1,
    attempts: [
      { result: "uncertain", repeats: false },
      { result: "done", repeats: true },
    ],
  });
});

test("twenty who resolve it at once: one decides", async () => {
  const { client, id, pool, mend, peer } = await startHeld();
  mend();
  const words = ["again", "failed", "done"] as const;
  const tries = await Promise.allSettled(
    Array.from({ length: 20 }, (_, index) =>
      client.resolveEffect({ id, as: words[index % 3]!, reason: `try ${index}` }),
    ),
  );
  const won = tries.filter(({ status }) => status === "fulfilled");
  expect(won).toHaveLength(1);
  for (const lost of tries)
    if (lost.status === "rejected") expect(lost.reason).toMatchObject({ status: 409 });
  await untilDrained(pool);
  expect((await readAudit(pool)).filter(({ action }) => action === "effect.resolved")).toHaveLength(1);
  const wasAgain =
    (won[0] as PromiseFulfilledResult<{ job: number | null; state: string }>).value.state === "uncertain";
  expect(peer.seen).toHaveLength(wasAgain ? 2 : 1);
});

test("a call begun by a worker that is gone for good can be resolved, and its dead letter goes with it", async () => {
  const { client, pool, ukemi, peer } = await start();
  const { id } = await ukemi.effects.http(null, { url: peer.url, dedupe: "k" });
  await pool.query(
    "update ukemi.effects set state = 'sending', attempt = 1, begun_at = ukemi.now() where id = $1",
    [id],
  );
  await pool.query(
    "insert into ukemi.effect_attempts (effect, number, started_at) values ($1, 1, ukemi.now())",
    [id],
  );
  expect(await client.getEffect({ id })).toMatchObject({ state: "uncertain" });
  await expect(client.resolveEffect({ id, as: "done", reason: "x" })).rejects.toMatchObject({
    code: "effect_in_progress",
  });
  await pool.query("update ukemi.jobs set state = 'dead', death = 'crashed', finished_at = ukemi.now()");
  const { job } = await client.resolveEffect({ id, as: "again", reason: "not there" });
  const { rows } = await pool.query("select id, state from ukemi.jobs order by id");
  expect(rows).toEqual([
    { id: expect.any(String), state: "cancelled" },
    { id: String(job), state: "ready" },
  ]);
  await ukemi.work();
  await untilDrained(pool);
  expect(await client.getEffect({ id })).toMatchObject({
    state: "done",
    uncertainties: 1,
    attempts: [{ result: "uncertain" }, { result: "done", repeats: true }],
  });
});

test("cancels what has not begun, with its job and what waits for it, once", async () => {
  const { client, pool, ukemi, peer } = await start();
  const first = await ukemi.effects.http(null, { url: peer.url, dedupe: "1" });
  const second = await ukemi.effects.http(null, { url: peer.url, dedupe: "2", after: first });
  const third = await ukemi.effects.http(null, { url: peer.url, dedupe: "3", after: second });
  const other = await ukemi.effects.http(null, { url: peer.url, dedupe: "other" });
  expect(await client.cancelEffect({ id: first.id, reason: "the order was void" })).toEqual({
    id: first.id,
    state: "cancelled",
    followers: [second.id, third.id],
  });
  await expect(client.cancelEffect({ id: first.id, reason: "twice" })).rejects.toMatchObject({
    status: 409,
    code: "effect_settled",
  });
  expect(
    (await readAudit(pool)).map(({ action, target, details }) => [
      action,
      target,
      (details as { with?: string }).with,
    ]),
  ).toEqual([
    ["effect.cancelled", first.id, undefined],
    ["effect.cancelled", second.id, first.id],
    ["effect.cancelled", third.id, second.id],
  ]);
  await ukemi.work();
  await untilDrained(pool);
  expect(await readStates(pool)).toEqual({
    [first.id]: "cancelled",
    [second.id]: "cancelled",
    [third.id]: "cancelled",
    [other.id]: "done",
  });
  expect(peer.seen).toHaveLength(1);
  await expect(client.cancelEffect({ id: other.id, reason: "too late" })).rejects.toMatchObject({
    code: "effect_settled",
  });
});

test("one that is being carried out cannot be cancelled; between two tries it can", async () => {
  let release = () => {};
  const { client, pool, ukemi, peer } = await start((response) => {
    release = () => answerWith(response, 503);
  }, {});
  await ukemi.work();
  const { id } = await ukemi.effects.http(null, { url: peer.url, dedupe: "k" });
  await peer.saw(1);
  await expect(client.cancelEffect({ id, reason: "now" })).rejects.toMatchObject({
    status: 409,
    code: "effect_in_progress",
  });
  release();
  await until(async () => (await client.getEffect({ id })).next_at !== null, "the wait for the next try");
  await client.cancelEffect({ id, reason: "between" });
  await untilDrained(pool);
  expect(await readStates(pool)).toEqual({ [id]: "cancelled" });
  expect(peer.seen).toHaveLength(1);
});

test("a worker that begins at the same moment: either it is cancelled, or it is carried out", async () => {
  const { client, pool, ukemi, peer } = await start();
  const planned = [];
  for (let index = 0; index < 60; index += 1)
    planned.push(await ukemi.effects.http(null, { url: peer.url, dedupe: String(index) }));
  const working = ukemi.work();
  const results = await Promise.allSettled(
    planned.map(({ id }) => client.cancelEffect({ id, reason: "a race" })),
  );
  await working;
  await untilDrained(pool);
  const states = await readStates(pool);
  for (const [index, result] of results.entries()) {
    const state = states[planned[index]!.id];
    if (result.status === "fulfilled") expect(state).toBe("cancelled");
    else {
      expect(result.reason).toMatchObject({ status: 409 });
      expect(state).toBe("done");
    }
  }
  const sent = peer.seen.map(({ key }) => key!).toSorted();
  expect(sent).toEqual(
    Object.keys(states)
      .filter((id) => states[id] === "done")
      .toSorted(),
  );
});

test("an effect that is locked by a worker's beginning is decided after it", async () => {
  const { client, pool, ukemi, peer } = await start();
  const { id } = await ukemi.effects.http(null, { url: peer.url, dedupe: "k" });
  const worker = await pool.connect();
  await worker.query("begin");
  await worker.query("select from ukemi.effects where id = $1 for update", [id]);
  const cancelling = client.cancelEffect({ id, reason: "at once" }).catch((error: unknown) => error);
  await until(
    async () =>
      (
        await pool.query(
          "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()",
        )
      ).rowCount === 1,
    "it to wait for the lock",
  );
  await worker.query("update ukemi.effects set state = 'sending', attempt = 1 where id = $1", [id]);
  await worker.query(
    `update ukemi.jobs set state = 'running', lease_until = ukemi.now() + interval '1 minute', lease_token = gen_random_uuid(),
       worker = gen_random_uuid()`,
  );
  await worker.query("commit");
  worker.release();
  expect(await cancelling).toMatchObject({ status: 409, code: "effect_in_progress" });
});

test("another tenant's token sees and changes nothing", async () => {
  const { pool, ukemi, url } = await start();
  const mine = await insertEffect(pool, { tenant: "org_1", state: "held", dedupe_key: "same" });
  const theirs = await insertEffect(pool, { tenant: "org_2", state: "held", dedupe_key: "same" });
  const nobodys = await insertEffect(pool, { state: "planned", dedupe_key: "same" });
  const bound = createClient({
    url,
    token: await makeToken(ukemi, { scope: "operate", tenants: ["org_1"] }),
  });
  for (const query of [{}, { to: "jane@example.com" }, { dedupe: "same" }, { state: "held" as const }])
    expect((await bound.listEffects(query)).items.map(({ id }) => id)).toEqual([mine]);
  await expect(bound.listEffects({ tenant: "org_2" })).rejects.toMatchObject({ status: 403 });
  for (const id of [theirs, nobodys]) {
    await expect(bound.getEffect({ id })).rejects.toMatchObject({ status: 404 });
    await expect(bound.resolveEffect({ id, as: "done", reason: "x" })).rejects.toMatchObject({ status: 404 });
    await expect(bound.cancelEffect({ id, reason: "x" })).rejects.toMatchObject({ status: 404 });
  }
  expect(await readStates(pool)).toEqual({ [mine]: "held", [theirs]: "held", [nobodys]: "planned" });
  expect(await bound.resolveEffect({ id: mine, as: "done", reason: "mine" })).toMatchObject({
    state: "done",
  });
});

test("names what is wrong, and changes nothing", async () => {
  const { url, client, pool } = await start();
  const id = await insertEffect(pool, { state: "held" });
  const post = async (path: string, body: unknown, headers = {}) => {
    const response = await fetch(`${url}/api/v1${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
    });
    return [response.status, ((await response.json()) as { detail?: string }).detail ?? ""] as const;
  };
  expect(await post(`/effects/${id}/resolve`, { as: "perhaps", reason: "x" })).toEqual([
    400,
    expect.stringContaining("done, failed, again"),
  ]);
  expect(await post(`/effects/${id}/resolve`, { as: "done" })).toEqual([
    400,
    expect.stringContaining('"reason"'),
  ]);
  expect(await post(`/effects/${id}/resolve`, { as: "done", reason: " " })).toEqual([
    400,
    expect.stringContaining('"reason"'),
  ]);
  expect(await post(`/effects/${id}/cancel`, {})).toEqual([400, expect.stringContaining('"reason"')]);
  expect((await post("/effects/1/resolve", { as: "done", reason: "x" }))[0]).toBe(404);
  expect((await post("/effects/1/cancel", { reason: "x" }))[0]).toBe(404);
  await expect(client.getEffect({ id: "x" })).rejects.toMatchObject({ status: 404 });
  for (const query of ["kind=letter", "state=lost", "cursor=5", "colour=red", "to=%00"])
    expect((await fetch(`${url}/api/v1/effects?${query}`)).status, query).toBe(400);
  expect(await readStates(pool)).toEqual({ [id]: "held" });
  const key = { "idempotency-key": "one" };
  expect((await post(`/effects/${id}/resolve`, { as: "done", reason: "x" }, key))[0]).toBe(200);
  expect((await post(`/effects/${id}/resolve`, { as: "done", reason: "x" }, key))[0]).toBe(200);
  expect((await readAudit(pool)).filter(({ action }) => action === "effect.resolved")).toHaveLength(1);
});

test("the preview of a replay says which effects would run, and which are done for good", async () => {
  const { client, ukemi, store, pool, peer, url } = await start((response, request) =>
    answerWith(response, request.url === "/refused" ? 422 : 200),
  );
  ukemi.on("stripe", TYPE, async ({ effects }) => {
    await effects.http({ url: `${peer.url}/taken`, dedupe: "a" });
    await effects.http({ url: `${peer.url}/refused`, dedupe: "b" });
  });
  await ukemi.work();
  await storeElsewhere(store.url, ["evt_1"], { tenant: "org_1" });
  await until(
    async () => (await client.listEffects()).items.filter(({ ended_at }) => ended_at !== null).length === 2,
    "both to end",
  );
  await untilDrained(pool);
  await pool.query("update ukemi.jobs set state = 'dead', death = 'exhausted' where kind = 'handler'");
  const preview = await client.replayDead({ all: true, dry_run: true });
  expect(preview).toMatchObject({
    count: 2,
    effects: {
      would_run: {
        count: 1,
        items: [{ kind: "http", state: "failed", target: expect.stringContaining("/refused") }],
      },
      done: { count: 1, items: [{ kind: "http", state: "done", target: expect.stringContaining("/taken") }] },
    },
  });
  expect(await client.dropDead({ all: true, dry_run: true })).not.toHaveProperty("effects");
  const theirs = createClient({
    url,
    token: await makeToken(ukemi, { scope: "operate", tenants: ["org_2"] }),
  });
  expect(await theirs.replayDead({ all: true, dry_run: true })).toMatchObject({
    effects: { would_run: { count: 0, items: [] }, done: { count: 0, items: [] } },
  });
});

test("does not look through history: pages, targets and dedupe keys are found by indexes", async () => {
  const { pool } = await start();
  const intent = {
    kind: "http",
    amount: null,
    currency: null,
    intent: "{}",
    destination: "x",
    onUncertain: "hold",
    maxAttempts: 1,
    event: null,
    cause: null,
    handler: null,
    after: null,
    cancelled: "no",
  } as const;
  for (const tenant of ["a", "b", null])
    await planEffect(pool, { ...intent, tenant, dedupeKey: "k", target: "t" });
  await pool.query(
    `insert into ukemi.effects (id, kind, tenant, dedupe_key, state, target, intent, destination, on_uncertain, max_attempts,
       planned_at, ended_at)
     select gen_random_uuid(), 'http', 'org_' || n % 50, 'k' || n, 'done', 't' || n, '{}', 'x', 'hold', 1, now(), now()
     from generate_series(1, 20000) as n`,
  );
  await pool.query("analyze ukemi.effects");
  const { listEffects } = await import("../../src/storage/effect-list.ts");
  const plans: string[] = [];
  // so few rows some servers rather read from end to end: what is asked here is whether they have to
  const planner = await pool.connect();
  onTestFinished(() => planner.release(true));
  await planner.query("set enable_seqscan = off");
  const explaining = {
    query: async (text: string, values: unknown[]) => {
      const { rows } = await planner.query<{ "QUERY PLAN": string }>(`explain ${text}`, values);
      plans.push(rows.map((row) => row["QUERY PLAN"]).join("\n"));
      return pool.query(text, values);
    },
  } as unknown as typeof pool;
  for (const filter of [
    {},
    { to: "t9" },
    { state: "held" },
    { state: "uncertain" },
    { dedupe: "k9" },
    { tenant: "org_7" },
  ] as const)
    await listEffects(explaining, filter, { limit: 50 });
  for (const plan of plans) expect(plan).not.toMatch(/Seq Scan on effects/);
  expect((await listEffects(pool, { dedupe: "k9" }, { limit: 5 })).items).toHaveLength(1);
});

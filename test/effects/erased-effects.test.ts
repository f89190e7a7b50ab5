// The erasure of one subject reaches what was sent because of its events; that it was sent stays, and is not sent again.
import { randomBytes, randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { countEffects, eraseEffects, lockEffects } from "../../src/storage/erasure-effects.ts";
import type { Queryable } from "../../src/storage/postgres.ts";
import { tablesWith } from "../support/canary.ts";
import { createDatabase } from "../support/database.ts";
import { MANDATE, readAudit } from "../support/dead.ts";
import { answerWith, hangUp, startLedger } from "../support/ledger.ts";
import { RECEIPT, startMailWorld } from "../support/mail-world.ts";
import { until } from "../support/until.ts";
import { storeElsewhere, untilDrained } from "../support/work.ts";

const TYPE = "payment_intent.succeeded";
const ADDRESS = "canary-hanako@example.net";
const NAME = "canary-name-in-the-mail";
const SECRET = "canary-body-of-the-call";

test.each([
  ["as it was", []],
  ["sealed", [`a:${randomBytes(32).toString("base64")}`]],
])("to whom and what goes, where it lies %s; when, its receipt and its key stay", async (_, bodyKeys) => {
  const { ukemi, url, pool, inbox } = await startMailWorld({}, { bodyKeys });
  const mail = { to: ADDRESS, data: { ...RECEIPT, name: NAME }, dedupe: "receipt:1" };
  for (const name of ["one", "two"]) {
    ukemi.on("stripe", TYPE, async ({ effects }) => void (await effects.email("receipt", mail)), { name });
  }
  await ukemi.work();
  await storeElsewhere(url, ["evt_1"]);
  await untilDrained(pool);
  const { bodies, effects } = ukemi.operate;
  const before = (await effects.list({ to: ADDRESS })).items;
  expect(before.map(({ state }) => state).toSorted()).toEqual(["done", "suppressed"]);
  expect(await bodies.previewErase({ event: "evt_1" })).toMatchObject({ effects: 2, unfinished: 0, dead: 0 });
  expect(await bodies.erase({ event: "evt_1" }, MANDATE)).toMatchObject({ events: 1, effects: 2 });
  for (const canary of [ADDRESS, NAME]) expect(await tablesWith(pool, canary), canary).toEqual([]);
  expect((await effects.list({ to: ADDRESS })).items).toEqual([]);
  const sent = before.find(({ state }) => state === "done")!;
  const shown = await effects.show(sent.id);
  const { accepted_as, ended_at, dedupe } = sent;
  expect(shown).toMatchObject({
    state: "done",
    accepted_as,
    ended_at,
    dedupe,
    target: "erased",
    content: "erased",
  });
  expect(accepted_as).toContain("250");
  // the same act under the same key is not done again, and nobody can say any more that it was for another
  for (const to of [ADDRESS, "somebody@example.net"]) {
    const again = await ukemi.effects.email(null, "receipt", { ...mail, to });
    expect(again).toEqual({ id: sent.id, suppressed: true });
  }
  await untilDrained(pool);
  expect(inbox.mails).toHaveLength(1);
  const audits = (await readAudit(pool)).filter(({ action }) => action === "bodies.erased");
  expect(audits).toMatchObject([{ actor: MANDATE.actor, details: { events: 1 } }]);
  // what was intended since under the erased key goes with the next erasure, and it has an end
  expect(await bodies.erase({ event: "evt_1" }, MANDATE)).toMatchObject({ events: 0, effects: 2 });
  expect(await bodies.erase({ event: "evt_1" }, MANDATE)).toMatchObject({ events: 0, effects: 0 });
});

/** An event with one effect that failed and one that is held, by a worker's own doing, and one that waits for the latter. */
async function startUnfinished() {
  const world = await startLedger((response, request, call) =>
    request.url === "/failed" ? answerWith(response, 422) : hangUp(response, request, call),
  );
  const { ukemi, peer, pool, store } = world;
  ukemi.on("stripe", TYPE, async ({ effects }) => {
    await effects.http({ url: `${peer.url}/failed`, body: SECRET, dedupe: "failed" });
    const held = await effects.http({ url: `${peer.url}/held`, body: SECRET, dedupe: "held" });
    await effects.http({ url: `${peer.url}/waits`, body: SECRET, dedupe: "waits", after: held });
  });
  await ukemi.work();
  await storeElsewhere(store.url, ["evt_1"]);
  await untilDrained(pool);
  return world;
}

test("what is unfinished, held or can be replayed is erased only when asked for, and then never carried out", async () => {
  const { ukemi, pool, peer } = await startUnfinished();
  const { bodies, effects, dead } = ukemi.operate;
  const preview = await bodies.previewErase({ event: "evt_1" });
  expect(preview).toMatchObject({ effects: 3, unfinished: 2, dead: 1 });
  await expect(bodies.erase({ event: "evt_1" }, MANDATE)).rejects.toMatchObject({ code: "body_needed" });
  expect(await tablesWith(pool, SECRET)).toEqual(["effects"]);
  const request = { event: "evt_1", includeUnfinished: true };
  expect(await bodies.erase(request, MANDATE)).toMatchObject({ effects: 3, left_unfinished: 0 });
  expect(await tablesWith(pool, SECRET)).toEqual([]);
  const states = new Map((await effects.list()).items.map((item) => [item.dedupe, item]));
  expect([...states].map(([key, { state, content }]) => [key, state, content])).toEqual([
    ["waits", "cancelled", "erased"],
    ["held", "held", "erased"],
    ["failed", "failed", "erased"],
  ]);
  // a person can still say what became of it, but not that it shall be tried again
  const held = states.get("held")!.id;
  await expect(effects.resolve(held, "again", MANDATE)).rejects.toMatchObject({
    code: "effect_content_removed",
  });
  expect(await effects.resolve(held, "done", MANDATE)).toMatchObject({ state: "done" });
  const calls = peer.seen.length;
  expect(await dead.replay({ all: true }, MANDATE)).toMatchObject({ changed: 1 });
  const jobs = await untilDrained(pool);
  expect(jobs.filter(({ state }) => state === "dead")).toMatchObject([
    { death: "terminal", error_class: "ContentErased" },
  ]);
  expect(await effects.show(states.get("failed")!.id)).toMatchObject({ state: "failed" });
  expect(peer.seen).toHaveLength(calls);
});

test("an effect in a worker's hands is left, with its event, and erased when it has ended", async () => {
  let answer = () => {};
  const world = await startLedger((response) => {
    answer = () => answerWith(response, 200);
  });
  const { ukemi, peer, pool, store } = world;
  ukemi.on("stripe", TYPE, async ({ effects }) => {
    await effects.http({ url: peer.url, body: SECRET, dedupe: "k" });
  });
  await ukemi.work();
  await storeElsewhere(store.url, ["evt_1"]);
  await peer.saw(1);
  await until(
    async () =>
      (await pool.query("select from ukemi.jobs where state <> 'done' and kind <> 'effect'")).rowCount === 0,
    "the handler to end",
  );
  const { bodies } = ukemi.operate;
  const request = { event: "evt_1", includeUnfinished: true };
  expect(await bodies.erase(request, MANDATE)).toMatchObject({ events: 0, effects: 0, left_running: 1 });
  answer();
  await untilDrained(pool);
  expect(await bodies.erase(request, MANDATE)).toMatchObject({ events: 1, effects: 1, left_running: 0 });
  expect(await tablesWith(pool, SECRET)).toEqual([]);
});

test("what an operation wrote down of the peer's words goes too", async () => {
  const world = await startLedger((response) =>
    answerWith(response, 422, { type: "about:blank", title: SECRET }),
  );
  const { ukemi, peer, pool, store } = world;
  ukemi.on("stripe", TYPE, async ({ effects }) => {
    await effects.http({ url: peer.url, dedupe: "k" });
  });
  await ukemi.work();
  await storeElsewhere(store.url, ["evt_1"]);
  await untilDrained(pool);
  const { operations, bodies } = ukemi.operate;
  const made = await operations.create({ kind: "replay", name: "n", all: true }, MANDATE);
  await until(async () => (await operations.show(made.id)).state === "done", "the operation to end");
  expect(await tablesWith(pool, SECRET)).toContain("operation_items");
  await bodies.erase({ event: "evt_1", includeUnfinished: true }, MANDATE);
  expect(await tablesWith(pool, SECRET)).toEqual([]);
});

test("an erasure reads what is the subject's, not the ledger", async () => {
  const { pool } = await createDatabase();
  await pool.query(
    `insert into ukemi.effects (id, kind, dedupe_key, state, target, intent, destination, on_uncertain, max_attempts,
       planned_at, ended_at)
     select gen_random_uuid(), 'http', n::text, 'done', 't', '{}', 'd', 'hold', 3, ukemi.now(), ukemi.now()
     from generate_series(1, 20000) as n`,
  );
  await pool.query("analyze ukemi.effects");
  const client = await pool.connect();
  const plans: string[] = [];
  const explaining = {
    async query(text: string, values: unknown[] = []) {
      const { rows } = await client.query<{ "QUERY PLAN": string }>(
        `explain (analyze, costs off, timing off, summary off) ${text}`,
        values,
      );
      plans.push(rows.map((row) => row["QUERY PLAN"]).join("\n"));
      return client.query(text, values);
    },
  } as unknown as Queryable;
  await client.query("begin");
  await client.query("set local enable_seqscan = off");
  const events = [randomUUID(), randomUUID()];
  await lockEffects(explaining, events);
  await countEffects(explaining, events);
  await eraseEffects(explaining, events, MANDATE);
  await client.query("rollback");
  client.release();
  expect(plans.length).toBeGreaterThanOrEqual(7);
  for (const plan of plans) {
    expect(plan).not.toMatch(/Seq Scan on effects/);
    const read = [...plan.matchAll(/(?:rows=|Rows Removed by Filter: )([\d.]+)/g)].map(([, n]) => Number(n));
    expect(Math.max(...read), plan).toBeLessThanOrEqual(200);
  }
});

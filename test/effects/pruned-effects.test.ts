// Retention of the ledger: what ended effects held goes, that they were and under which key stays for ever.
import { expect, test } from "vitest";
import { UkemiError } from "../../src/errors.ts";
import { removeCalls, removeContents } from "../../src/storage/retention-effects.ts";
import type { Pool, Queryable } from "../../src/storage/postgres.ts";
import { createDatabase } from "../support/database.ts";
import { MANDATE, operateOn, readAudit } from "../support/dead.ts";
import { answerWith, hangUp, insertEffect, startLedger } from "../support/ledger.ts";
import { countRows, letPass, LIMITS, retentionOn } from "../support/retention.ts";
import { makeUkemi, untilDrained } from "../support/work.ts";

const readEffects = async (pool: Pool) =>
  (
    await pool.query<{ key: string; state: string; intent: string; receipt: string | null; pruned: boolean }>(
      `select dedupe_key as key, state, intent, receipt, pruned_at is not null as pruned
       from ukemi.effects order by id`,
    )
  ).rows;

/** One that is done, one that failed for good and can be replayed, one that is held, one that waits. */
async function startOld() {
  const world = await startLedger((response, request, call) => {
    if (request.url === "/done") return answerWith(response, 200, { order: 17 });
    if (request.url === "/failed") return answerWith(response, 422);
    return hangUp(response, request, call);
  });
  const { ukemi, pool, peer } = world;
  await ukemi.work();
  const plan = (what: string, path = what) =>
    ukemi.effects.http(null, { url: `${peer.url}/${path}`, body: "secret", dedupe: what });
  for (const what of ["done", "failed", "held"]) await plan(what);
  await untilDrained(pool);
  await ukemi.stop();
  await insertEffect(pool, { state: "planned", dedupe_key: "planned" });
  return { ...world, plan: (what: string, path = what) => planElsewhere(world, what, path) };
}

function planElsewhere({ store, peer }: Awaited<ReturnType<typeof startLedger>>, what: string, path: string) {
  const { ukemi } = makeUkemi(store.url, { http: { allow: [peer.url] } });
  return ukemi.effects.http(null, { url: `${peer.url}/${path}`, body: "secret", dedupe: what });
}

test("what ended effects held goes after its days; what may still be needed stays", async () => {
  const { pool, plan } = await startOld();
  const before = await readEffects(pool);
  expect(before.map(({ key, state }) => [key, state])).toEqual([
    ["done", "done"],
    ["failed", "failed"],
    ["held", "held"],
    ["planned", "planned"],
  ]);
  await letPass(pool, 89);
  expect((await retentionOn(pool).preview()).effects).toEqual({ count: 0, exact: true });
  expect(await retentionOn(pool).prune(MANDATE)).toMatchObject({ effects: 0 });
  await letPass(pool, 2);
  expect(await retentionOn(pool, { effectDays: 0 }).prune(MANDATE)).toMatchObject({ effects: 0 });
  const retention = retentionOn(pool);
  expect(await retention.preview()).toMatchObject({ effect_days: 90, effects: { count: 1, exact: true } });
  expect(await retention.prune(MANDATE)).toMatchObject({ effects: 1 });
  expect(await readEffects(pool)).toEqual([
    { ...before[0], intent: "{}", receipt: null, pruned: true },
    ...before.slice(1),
  ]);
  expect(await retention.preview()).toMatchObject({ effects: { count: 0 }, effect_attempts: { count: 0 } });
  const audits = (await readAudit(pool)).filter(({ target }) => target === "rows");
  expect(audits.at(-1)).toMatchObject({ details: { effects: 1, effect_days: 90 } });
  // the key is known for what it is, as it was on the first day
  expect(await plan("done")).toMatchObject({ suppressed: true });
  await expect(plan("done", "elsewhere")).rejects.toMatchObject({ code: "effect_conflict" });
  const { effects, dead } = operateOn(pool);
  const [again, shown] = (await effects.list({ dedupe: "done" })).items;
  expect(again).toMatchObject({ state: "suppressed", content: "kept" });
  expect(shown).toMatchObject({
    state: "done",
    content: "pruned",
    content_removed_at: expect.any(Date) as Date,
  });
  expect(await effects.show(shown!.id)).toMatchObject({ receipt: null, attempts: [], content: "pruned" });
  // a dead letter is whole, however old, and loses what it held only when it was dropped
  expect((await dead.previewEffects({ all: true })).would_run.count).toBe(1);
  await dead.drop({ all: true }, MANDATE);
  expect(await retention.prune(MANDATE)).toMatchObject({ effects: 1 });
});

test("a failed effect that is replayed after months is carried out whole", async () => {
  const world = await startOld();
  const { pool, peer, store } = world;
  await letPass(pool, 200);
  await retentionOn(pool).prune(MANDATE);
  const { ukemi } = makeUkemi(store.url, { http: { allow: [peer.url] } });
  await ukemi.work();
  expect(await ukemi.operate.dead.replay({ all: true }, MANDATE)).toMatchObject({ changed: 1 });
  await peer.saw(4);
  expect(peer.seen.at(-1)).toMatchObject({ path: "/failed", body: "secret" });
});

test("calls go by the days of attempts, hourly counts after two; a mail's receipt stays", async () => {
  const { pool } = await startOld();
  const receipt = '{"response":"250 2.0.0 Ok: queued as 4bXk2T1"}';
  const mail = await insertEffect(pool, { receipt });
  await pool.query("insert into ukemi.destination_hours values ('d', ukemi.now(), 1)");
  await letPass(pool, 31);
  await pool.query("insert into ukemi.destination_hours values ('d', ukemi.now() - interval '1 day', 1)");
  const calls = await countRows(pool, "effect_attempts");
  const retention = retentionOn(pool);
  const gone = { effects: { count: 0 }, effect_attempts: { count: 1 }, destination_hours: { count: 1 } };
  expect(await retention.preview()).toMatchObject(gone);
  expect(await retention.prune(MANDATE)).toMatchObject({
    effects: 0,
    effect_attempts: 1,
    destination_hours: 1,
  });
  expect(await countRows(pool, "effect_attempts")).toBe(calls - 1);
  expect(await countRows(pool, "destination_hours")).toBe(1);
  await letPass(pool, 60);
  await retention.prune(MANDATE);
  expect(await operateOn(pool).effects.show(mail)).toMatchObject({
    content: "pruned",
    template: null,
    target: "jane@example.com",
    accepted_as: "250 2.0.0 Ok: queued as 4bXk2T1",
  });
});

test("a call whose result was removed is not made again, and says why there is no result", async () => {
  const { url, pool } = await createDatabase();
  const { callNow } = makeUkemi(url).ukemi.effects;
  await callNow("checkout:1", () => Promise.resolve({ url: "https://pay.example/1" }));
  await letPass(pool, 91);
  expect(await retentionOn(pool).prune(MANDATE)).toMatchObject({ effects: 1 });
  const again = callNow("checkout:1", () => Promise.reject(new Error("a second call")));
  await expect(again).rejects.toSatisfy(
    (error) => error instanceof UkemiError && error.code === "effect_content_removed",
  );
});

test("what the longest of several processes keeps is kept by all", async () => {
  const { pool } = await createDatabase();
  await insertEffect(pool);
  await pool.query("insert into ukemi.effect_limits values (400, ukemi.now() + interval '91 days')");
  await letPass(pool, 91);
  const retention = retentionOn(pool);
  expect(await retention.preview()).toMatchObject({ effect_days: 400, longer_elsewhere: ["effect_days"] });
  expect(await retention.prune(MANDATE)).toMatchObject({ effects: 0 });
});

test("reads what is old and still there, not all that ever was", async () => {
  const { pool } = await createDatabase();
  await pool.query(
    `insert into ukemi.effects (id, kind, dedupe_key, state, target, intent, destination, on_uncertain, max_attempts,
       planned_at, ended_at, pruned_at)
     select gen_random_uuid(), 'http', n::text, 'done', 't', '{}', 'd', 'hold', 3, ukemi.now(), ukemi.now(),
       case when n > 150 then ukemi.now() end
     from generate_series(1, 20000) as n`,
  );
  await pool.query(
    `insert into ukemi.effect_attempts (effect, number, started_at, ended_at, result)
     select id, 1, ukemi.now(), case when dedupe_key::int <= 150 then ukemi.now() end, null from ukemi.effects`,
  );
  await letPass(pool, 200);
  await pool.query("analyze ukemi.effects, ukemi.effect_attempts");
  const run = {
    id: crypto.randomUUID(),
    actor: "test",
    role: "system",
    reason: "x",
    limits: LIMITS,
  } as const;
  const client = await pool.connect();
  const plans: string[] = [];
  const explaining = {
    async query(text: string, values: unknown[] = []) {
      if (/^\s*with looked/.test(text)) {
        const { rows } = await client.query<{ "QUERY PLAN": string }>(
          `explain (analyze, costs off, timing off, summary off) ${text}`,
          values,
        );
        plans.push(rows.map((row) => row["QUERY PLAN"]).join("\n"));
        return { rows: [{ looked: 0, removed: 0, attempts: 0, last: null }], rowCount: 1 };
      }
      if (/^\s*update ukemi.retention/.test(text)) return { rows: [], rowCount: 1 };
      return client.query(text, values);
    },
  } as unknown as Queryable;
  await client.query("begin");
  await removeContents(explaining, run, { after: "", days: 90 });
  await removeCalls(explaining, run, { after: "", days: 30 });
  await client.query("rollback");
  client.release();
  expect(plans[0]).toContain("effects_to_prune");
  expect(plans[1]).toContain("effect_attempts_old");
  for (const plan of plans) {
    expect(plan).not.toContain("Seq Scan");
    const most = Math.max(
      ...[...plan.matchAll(/rows=([\d.]+) loops=(\d+)/g)].map(([, n, m]) => Number(n) * Number(m)),
    );
    expect(most, plan).toBeLessThanOrEqual(200);
  }
});

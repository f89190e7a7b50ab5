// /api/v1/destinations: whom effects go to, and what an operator's word does to what waits.
import { expect, test } from "vitest";
import { createClient } from "../../src/client/client.ts";
import { readAudit } from "../support/dead.ts";
import { answerWith, startLedger } from "../support/ledger.ts";
import { makeToken } from "../support/token.ts";
import { until } from "../support/until.ts";
import { untilDrained } from "../support/work.ts";

async function start(...given: Parameters<typeof startLedger>) {
  const world = await startLedger(...given);
  const client = createClient({ url: world.url });
  const listed = async () =>
    (await client.listDestinations()).items.find(({ name }) => name === world.peer.url);
  return { ...world, client, listed };
}

test("paused, nothing goes there; resumed, what waited goes out at once", async () => {
  const { client, ukemi, pool, peer, listed } = await start();
  const reason = "they move their servers";
  expect(await client.listDestinations()).toEqual({ items: [] });
  await expect(client.pauseDestination({ name: peer.url, minutes: 60, reason })).rejects.toMatchObject({
    status: 404,
  });
  await ukemi.effects.http(null, { url: peer.url, dedupe: "a" });
  expect(await listed()).toMatchObject({
    paused_until: null,
    open: false,
    waiting: 1,
    sending: 0,
    calls_day: null,
  });
  const { paused_until } = await client.pauseDestination({ name: peer.url, minutes: 60, reason });
  expect(new Date(paused_until).getTime()).toBeGreaterThan(Date.now() + 3_000_000);
  expect(await client.pauseDestination({ name: peer.url, minutes: 5, reason: "shorter" })).toEqual({
    name: peer.url,
    paused_until,
  });
  await ukemi.work();
  await until(
    async () => (await pool.query("select from ukemi.jobs where state = 'scheduled'")).rowCount === 1,
    "it to wait",
  );
  expect(await listed()).toMatchObject({ paused_until, pause_reason: reason, waiting: 1 });
  expect((await client.listEffects()).items[0]).toMatchObject({
    state: "planned",
    waits_for: `${peer.url}: ${reason}`,
  });
  expect(peer.seen).toEqual([]);
  expect(await client.resumeDestination({ name: peer.url, reason: "moved" })).toEqual({
    name: peer.url,
    changed: true,
    woken: 1,
  });
  await untilDrained(pool);
  expect(peer.seen).toHaveLength(1);
  expect(await client.resumeDestination({ name: peer.url, reason: "twice" })).toMatchObject({
    changed: false,
    woken: 0,
  });
  const acts = (await readAudit(pool)).filter(({ role }) => role === "operator");
  expect(acts.map(({ action, target, actor }) => [action, target, actor])).toEqual([
    ["destination.paused", peer.url, "api:local"],
    ["destination.paused", peer.url, "api:local"],
    ["destination.resumed", peer.url, "api:local"],
    ["destination.resumed", peer.url, "api:local"],
  ]);
});

test("one that refuses us is open; resumed when the password is right again, everything goes out", async () => {
  let isLocked = true;
  const { client, ukemi, pool, peer, listed } = await start((response) =>
    answerWith(response, isLocked ? 401 : 200),
  );
  await ukemi.work();
  for (const dedupe of ["a", "b", "c"]) await ukemi.effects.http(null, { url: peer.url, dedupe });
  await until(
    async () =>
      (
        await pool.query(
          "select from ukemi.jobs where state = 'scheduled' and run_at > ukemi.now() + interval '5 s'",
        )
      ).rowCount === 3,
    "all to wait for the next trial",
  );
  expect(await listed()).toMatchObject({
    open: true,
    open_reason: expect.stringContaining("401"),
    waiting: 3,
  });
  isLocked = false;
  expect(await client.resumeDestination({ name: peer.url, reason: "a new token" })).toMatchObject({
    changed: true,
    woken: 3,
  });
  await untilDrained(pool);
  expect((await client.listEffects({ state: "done" })).items).toHaveLength(3);
  expect(await listed()).toMatchObject({ open: false, failures: 0, waiting: 0 });
});

test("a try that is put off after a failure of its own is not brought forward", async () => {
  const { client, ukemi, pool, peer } = await start((response) => answerWith(response, 503));
  await ukemi.work();
  await ukemi.effects.http(null, { url: peer.url, dedupe: "a" });
  await until(async () => (await client.listEffects()).items[0]!.waits_for === "its next try", "the wait");
  const queues = await pool.query(
    "update ukemi.jobs set run_at = ukemi.now() + interval '1 h' where state = 'scheduled'",
  );
  expect(queues.rowCount).toBe(1);
  expect(await client.resumeDestination({ name: peer.url, reason: "x" })).toMatchObject({ woken: 0 });
});

test("not for tokens that are bound to tenants; names and spans are checked", async () => {
  const { client, ukemi, peer, url } = await start();
  await ukemi.effects.http(null, { url: peer.url, dedupe: "a", tenant: "org_1" });
  const token = await makeToken(ukemi, { scope: "operate", tenants: ["org_1"] });
  const bound = createClient({ url, token });
  await expect(bound.listDestinations()).rejects.toMatchObject({ status: 403 });
  await expect(bound.resumeDestination({ name: peer.url, reason: "x" })).rejects.toMatchObject({
    status: 403,
  });
  const root = createClient({ url, token: await makeToken(ukemi, { scope: "operate" }) });
  for (const minutes of [0, -1, 1.5, 43_201])
    await expect(root.pauseDestination({ name: peer.url, minutes, reason: "x" })).rejects.toMatchObject({
      status: 400,
    });
  await expect(root.resumeDestination({ name: "https://exmaple.com", reason: "x" })).rejects.toMatchObject({
    status: 404,
    message: expect.stringContaining(peer.url),
  });
  await expect(client.listDestinations()).rejects.toMatchObject({ status: 401 });
});

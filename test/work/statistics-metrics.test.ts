// What the engine counts: every way in which a job ends, comes back, or is given up.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { terminal } from "../../src/index.ts";
import { surround } from "../../src/operate/transaction.ts";
import { sampleEvent } from "../../src/testing/sample-events.ts";
import { signStripe } from "../../src/testing/sign.ts";
import { createDatabase } from "../support/database.ts";
import { makeDead, MANDATE } from "../support/dead.ts";
import { SECRET, startServerProcess } from "../support/server.ts";
import { until } from "../support/until.ts";
import { makeUkemi, storeElsewhere, untilDrained } from "../support/work.ts";

test("counts replays, drops, revivals and routes, and shows the backlog of every queue", async () => {
  const { url, pool } = await createDatabase();
  const { ukemi } = makeUkemi(url);
  let broken = true;
  ukemi.on(
    "stripe",
    "payment_intent.succeeded",
    () => {
      if (broken) throw new Error("broken");
    },
    { retry: { retries: 0 } },
  );
  ukemi.on("stripe", "charge.failed", () => {
    throw terminal("never");
  });
  await storeElsewhere(url, ["evt_route_1", "evt_route_2"], { type: "charge.failed" });
  await ukemi.work();
  const metric = async (name: string) => {
    const lines = (await ukemi.metrics.registry.metrics()).split("\n");
    return Number(lines.find((line) => line.startsWith(`${name} `))?.slice(name.length));
  };
  const receive = ukemi.receiver("stripe");
  const deliver = async (id: string) => {
    const body = sampleEvent("payment_intent.succeeded", { id });
    const request = new Request("http://here/", { method: "POST", headers: signStripe(body, SECRET), body });
    expect((await receive(request)).status).toBe(204);
  };
  const changed = (act: string) => metric(`ukemi_jobs_changed_total{act="${act}"}`);
  await ukemi.operate.events.route({ since: new Date(0), type: "charge.failed" }, MANDATE);
  expect(await changed("routed")).toBe(2);

  for (const id of ["evt_1", "evt_2", "evt_3"]) await deliver(id);
  await untilDrained(pool);
  expect(
    await metric('ukemi_jobs_dead_total{queue="default",handler="stripe/charge.failed",death="terminal"}'),
  ).toBe(2);
  expect(
    await metric(
      'ukemi_jobs_dead_total{queue="default",handler="stripe/payment_intent.succeeded",death="exhausted"}',
    ),
  ).toBe(3);

  broken = false;
  // a sender's resend brings one back
  await deliver("evt_1");
  await untilDrained(pool);
  expect(await changed("revived")).toBe(1);
  const result = await ukemi.operate.dead.replay({ filter: { type: "payment_intent.succeeded" } }, MANDATE);
  expect(result.changed).toBe(2);
  await untilDrained(pool);
  expect(await changed("replayed")).toBe(2);
  expect(
    await metric(
      'ukemi_job_tries_total{queue="default",handler="stripe/payment_intent.succeeded",outcome="done"}',
    ),
  ).toBe(3);
  await ukemi.operate.queues.pause("default", MANDATE);
  await ukemi.operate.dead.drop({ all: true }, MANDATE);
  expect(await changed("dropped")).toBe(2);
  // what a round does is counted too, and what is rolled back is not
  await makeDead({ url, pool }, ["evt_10", "evt_11", "evt_12"]);
  const lost = surround(pool, async () => {
    await ukemi.operate.dead.drop({ all: true }, MANDATE);
    throw new Error("the answer could not be kept");
  });
  await expect(lost).rejects.toThrow("could not be kept");
  expect(await changed("dropped")).toBe(2);
  await ukemi.operate.operations.create({ kind: "drop", name: "x", all: true }, MANDATE);
  await until(async () => (await changed("dropped")) === 5, "the operation to be counted");
  await storeElsewhere(url, ["evt_9"]);
  // the answer may be some seconds old
  await until(
    async () => (await metric('ukemi_queue_jobs{queue="default",state="ready"}')) === 1,
    "the backlog to be seen",
  );
  expect(await metric('ukemi_queue_paused{queue="default"}')).toBe(1);
  expect(await metric('ukemi_queue_jobs{queue="default",state="dead"}')).toBe(0);
  expect(await metric('ukemi_queue_oldest_ready_seconds{queue="default"}')).toBeGreaterThan(0);
});

test("counts rounds that failed", async () => {
  const { url, pool } = await createDatabase();
  const { ukemi, lines } = makeUkemi(url);
  await pool.query("alter table ukemi.counting rename to counting_gone");
  await ukemi.start();
  await until(() => lines().some((line) => line.msg === "counting events failed"), "the round to fail");
  expect(await ukemi.metrics.registry.metrics()).toContain(
    'ukemi_round_faults_total{round="counting events"} 1',
  );
});

test("a running Ukemi counts its events by itself", async () => {
  const { url, pool } = await createDatabase();
  await storeElsewhere(url, ["evt_1", "evt_2"]);
  const { ukemi } = makeUkemi(url);
  await ukemi.start();
  const span = { since: new Date(Date.now() - 3_600_000), until: new Date(Date.now() + 3_600_000) };
  await until(
    async () => (await ukemi.operate.statistics.types(span)).counted_until !== null,
    "the first count to end",
  );
  expect((await ukemi.operate.statistics.types(span)).items).toMatchObject([
    { source: "stripe", type: "payment_intent.succeeded", received: 2, unrouted: 2, success_share: null },
  ]);
  expect((await pool.query("select from ukemi.stale_hours")).rowCount).toBe(0);
});

test("a process that only works answers for its health and its metrics on a port of its own, and for nothing else", async () => {
  const { url, pool } = await createDatabase();
  const folder = await mkdtemp(join(tmpdir(), "ukemi-metrics-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const config = join(folder, "ukemi.config.mjs");
  await writeFile(
    config,
    'export default { sources: {}, handlers: (ukemi) => { ukemi.task("note", () => {}); } };',
  );
  const worker = await startServerProcess(
    { DATABASE_URL: url },
    ["--config", config, "--metrics-port", "0"],
    "work",
  );
  onTestFinished(async () => void (await worker.kill("SIGKILL")));
  const get = (path: string) => fetch(`${worker.url}${path}`);
  expect((await get("/healthz")).status).toBe(200);
  expect((await get("/readyz?x")).status).toBe(200);
  expect((await get("/api/v1/queues")).status).toBe(404);
  expect((await get("/webhooks/stripe")).status).toBe(404);
  await pool.query(`
    insert into ukemi.jobs (queue, kind, subscription, state, max_attempts, policy, run_at, created_at)
    values ('default', 'task', 'note', 'ready', 1, 'quick', ukemi.now(), ukemi.now())`);
  await until(
    async () =>
      (await (await get("/metrics")).text()).includes(
        'ukemi_job_tries_total{queue="default",handler="note",outcome="done"} 1',
      ),
    "the job to be counted",
  );
  expect(await worker.kill("SIGTERM")).toBe(0);
});

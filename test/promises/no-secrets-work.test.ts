// Promise 9, for work: whatever handlers throw, nothing secret or personal of it is kept, logged, told or answered.
import { expect, onTestFinished, test } from "vitest";
import { terminal } from "../../src/index.ts";
import { startServer } from "../../src/server/server.ts";
import { sampleEvent } from "../../src/testing/sample-events.ts";
import { signStripe } from "../../src/testing/sign.ts";
import { keepError } from "../../src/work/kept-error.ts";
import { createDatabase } from "../support/database.ts";
import {
  CANARY,
  createLeakyTables,
  expectNoCanary,
  FIELDS,
  keptRows,
  leakAtCommit,
  LEAKS,
  SAID,
  type Leaking,
} from "../support/leaks.ts";
import { SECRET } from "../support/server.ts";
import { until } from "../support/until.ts";
import { makeUkemi, storeElsewhere, untilDrained } from "../support/work.ts";

const WAYS: typeof LEAKS = { ...LEAKS, atCommit: leakAtCommit };

const leak = (way: string, leaking: Leaking) => WAYS[way]!(leaking);

/** A Ukemi with its alerts, and everything that is kept or told of what it did. */
async function open() {
  const { url, pool } = await createDatabase();
  await createLeakyTables(pool);
  const alerts: unknown[] = [];
  const { ukemi, lines } = makeUkemi(url, { port: 0, onAlert: (alert) => void alerts.push(alert) });
  const everything = async () => [
    ...[...lines(), ...alerts].map((line) => JSON.stringify(line)),
    ...(await keptRows(pool)),
    ...(await ukemi.metrics.registry.metrics()).split("\n"),
  ];
  return { url, pool, ukemi, alerts, everything };
}

/** A server whose handler is inline; `post` tells the status, and notes the answer. */
async function serveInline() {
  const opened = await open();
  const { ukemi } = opened;
  ukemi.on(
    "stripe",
    "charge.succeeded",
    ({ tx, audit, event }) => leak(event.id, { tx, audit, content: { ...event, ...FIELDS } }),
    { queue: "inline" },
  );
  await ukemi.start();
  const server = await startServer(ukemi);
  onTestFinished(() => server.stop());
  const answers: string[] = [];
  async function post(id: string): Promise<number> {
    const body = sampleEvent("charge.succeeded", { id, metadata: { email: CANARY.address } });
    const request = { method: "POST", headers: signStripe(body, SECRET), body };
    const response = await fetch(`${server.url}/webhooks/stripe`, request);
    answers.push(JSON.stringify([...response.headers]), await response.text());
    return response.status;
  }
  return { ...opened, post, everything: async () => [...(await opened.everything()), ...answers] };
}

test("keeps canaries out of all that is kept or told of failed handlers and tasks", async () => {
  const { ukemi, url, pool, alerts, everything } = await open();
  const retry = { retry: { retries: 1, delaysMs: [10] } };
  ukemi.on(
    "stripe",
    "charge.succeeded",
    ({ tx, audit, event }) => leak(event.id, { tx, audit, content: event }),
    retry,
  );
  ukemi.task<{ way: string }>(
    "leak",
    ({ tx, audit, payload }) => leak(payload.way, { tx, audit, content: payload }),
    retry,
  );
  await ukemi.work();
  for (const way of Object.keys(WAYS)) {
    const body = Buffer.from(JSON.stringify({ id: way, data: FIELDS }));
    await storeElsewhere(url, [way], { type: "charge.succeeded", body });
    await ukemi.enqueue(null, "leak", { way, ...FIELDS });
  }
  const jobs = await untilDrained(pool);
  expect(jobs).toHaveLength(2 * Object.keys(WAYS).length);
  expect(jobs.filter(({ state }) => state !== "dead")).toEqual([]);
  await until(() => alerts.length === jobs.length, "an alert for each");
  expectNoCanary(await everything());
});

test("keeps canaries out of the answers of inline handlers, and out of all that is kept or told of them", async () => {
  const { post, alerts, everything } = await serveInline();
  const statuses: [string, number][] = [];
  for (const way of Object.keys(LEAKS)) statuses.push([way, await post(way)]);
  expect(statuses).toEqual(statuses.map(([way]) => [way, way === "terminal" ? 204 : 500]));
  await until(() => alerts.length === 1, "the alert of the one that is stored dead");
  expectNoCanary(await everything());
});

test("keeps canaries out where an inline handler's commit is refused with them: its own failure, answered with 500", async () => {
  const { post, pool, everything } = await serveInline();
  await post("message"); // so that something is redacted
  const status = await post("atCommit");
  expectNoCanary(await everything());
  expect(status).toBe(500);
  expect((await pool.query("select from ukemi.rejections")).rowCount).toBe(0);
});

test("keeps canaries out of the log when the alert hook itself fails with them", async () => {
  const { url, pool } = await createDatabase();
  const { ukemi, lines } = makeUkemi(url, { onAlert: () => Promise.reject(new Error(SAID)) });
  ukemi.task("leak", () => Promise.reject(terminal(SAID)));
  await ukemi.work();
  await ukemi.enqueue(null, "leak", {});
  await untilDrained(pool);
  await until(() => lines().some((line) => line.msg === "onAlert failed"), "the hook's failure to be logged");
  expectNoCanary(lines().map((line) => JSON.stringify(line)));
});

test("keeps no part of a canary at the place where a long message or stack is cut", () => {
  const found: string[] = [];
  for (let length = 0; length < 9000; length += 7) {
    const text = `${"a".repeat(length)} ${SAID}`;
    const { message, stack } = keepError(Object.assign(new Error(text), { stack: text }));
    for (const kept of [message, stack!]) if (/canary|40000566/.test(kept)) found.push(kept.slice(-60));
  }
  expect(found).toEqual([]);
});

test.each(["client_secret=", "access_token: ", "DB_PASSWORD=", '{"client_secret":"', '{\\"password\\":\\"'])(
  "keeps out what stands behind %s",
  (before) => {
    const { message, stack } = keepError(new Error(`refused ${before}canaryValue`));
    expect(`${message} ${stack}`).not.toContain("canaryValue");
  },
);

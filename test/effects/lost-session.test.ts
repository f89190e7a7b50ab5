// The worker's session is lost while calls are under way: what the peer answers is known all the same.
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { expect, onTestFinished, test } from "vitest";
import type { Pool } from "../../src/storage/postgres.ts";
import { createDatabase } from "../support/database.ts";
import { startPeer } from "../support/http-peer.ts";
import { until } from "../support/until.ts";
import { makeUkemi, untilDrained } from "../support/work.ts";

async function statesOf(pool: Pool): Promise<string[]> {
  const { rows } = await pool.query<{ state: string }>("select state from ukemi.effects order by dedupe_key");
  return rows.map(({ state }) => state);
}

/** A worker with three calls under way that the peer knows no key of, and whose answers it keeps back. */
async function withCallsUnderWay() {
  const waiting: ServerResponse[] = [];
  const peer = await startPeer((response) => void waiting.push(response));
  onTestFinished(() => peer.stop());
  const { url, pool } = await createDatabase();
  const { ukemi, lines } = makeUkemi(url, { http: { allow: [peer.url] }, drainTimeoutMs: 500 });
  await ukemi.work();
  for (const dedupe of ["1", "2", "3"]) await ukemi.effects.http(null, { url: peer.url, dedupe });
  await until(() => waiting.length === 3, "the calls to be under way");
  return { pool, ukemi, peer, waiting, lines };
}

const RESTARTED = `select pg_terminate_backend(pid) from pg_stat_activity
  where datname = current_database() and pid <> pg_backend_pid()`;

test("calls that are out when every connection is cut are done when the peer answers, and made once", async () => {
  const { pool, peer, waiting, lines } = await withCallsUnderWay();
  await pool.query(RESTARTED);
  const isBack = () => lines().filter(({ msg }) => msg === "worker started").length === 2;
  await until(isBack, "the worker to be back");
  // whoever has the jobs now finds calls that nobody makes, as far as he can see, and must not make them again
  await until(async () => (await statesOf(pool)).every((state) => state === "held"), "the doubts");
  for (const response of waiting) response.end();
  await until(
    async () => (await statesOf(pool)).every((state) => state === "done"),
    "the answers to be known",
  );
  await untilDrained(pool);
  expect(peer.seen).toHaveLength(3);
});

test("what the peer asks for meanwhile holds, and the call is made again when it may be", async () => {
  const { pool, waiting } = await withCallsUnderWay();
  await pool.query(RESTARTED);
  await until(async () => (await statesOf(pool)).every((state) => state === "held"), "the doubts");
  waiting[0]!.writeHead(429, { "retry-after": "600" }).end();
  await until(async () => (await statesOf(pool)).includes("planned"), "the refusal to be known");
  const { rows } = await pool.query(
    "select paused_until > now() + interval '9 minutes' as paused from ukemi.destinations",
  );
  expect(rows).toEqual([{ paused: true }]);
  expect(waiting).toHaveLength(3);
  for (const response of waiting.slice(1)) response.end();
  await until(
    async () => (await statesOf(pool)).filter((state) => state === "done").length === 2,
    "the answers",
  );
});

test("a worker that stops afterwards gives up the calls of the session that was lost, too", async () => {
  const { pool, ukemi, waiting, lines } = await withCallsUnderWay();
  await pool.query(RESTARTED);
  const isBack = () => lines().filter(({ msg }) => msg === "worker started").length === 2;
  await until(isBack, "the worker to be back");
  const closed = waiting.map((response) => once(response.req.socket, "close"));
  await Promise.all([ukemi.stop(), ...closed]);
  expect(new Set(await statesOf(pool))).toEqual(new Set(["held"]));
});

test("one that the peer refuses meanwhile stays with the person who was called, who knows why now", async () => {
  const { pool, ukemi, waiting } = await withCallsUnderWay();
  await pool.query(RESTARTED);
  await until(async () => (await statesOf(pool)).every((state) => state === "held"), "the doubts");
  for (const response of waiting) response.writeHead(422).end();
  const reasons = async () => {
    const { rows } = await pool.query<{ id: string; reason: string }>("select id, reason from ukemi.effects");
    return rows;
  };
  await until(async () => (await reasons()).every(({ reason }) => reason.includes("422")), "the reasons");
  expect(new Set(await statesOf(pool))).toEqual(new Set(["held"]));
  const [first] = await reasons();
  await ukemi.operate.effects.resolve(first!.id, "again", { actor: "test", reason: "they mended it" });
  await until(() => waiting.length === 4, "the call to be made again");
  waiting.at(-1)!.end();
  await until(async () => (await statesOf(pool)).includes("done"), "the answer to be known");
});

test("calls that are out when the worker stops are given up when its time is over, and doubted", async () => {
  const { pool, ukemi, peer, waiting } = await withCallsUnderWay();
  const closed = waiting.map((response) => once(response.req.socket, "close"));
  await ukemi.stop();
  await Promise.all(closed);
  expect(new Set(await statesOf(pool))).toEqual(new Set(["held"]));
  expect(peer.seen).toHaveLength(3);
});

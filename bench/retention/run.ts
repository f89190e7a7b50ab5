// How much pruning costs those who send: a store with a long past is pruned while events come in, and their latency is
// compared with that of the same minutes without pruning.
//
//   JITI_FS_CACHE=false npx jiti bench/retention/run.ts [--rows 10000000] [--seconds 60] [--minutes 30] [--rate 50] [--data FOLDER]
//
// Pruning and rest take turns; after so many minutes it stops, complete or not. Fills an embedded PostgreSQL in a temporary folder (about 3 GB a million rows while it fills), which is removed at the
// end; with --data the folder is kept, and a filled one is used as it is. Writes results.json beside this file.
import { randomUUID } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { cpus, tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { createLogger } from "../../src/observe/log.ts";
import { prune } from "../../src/operate/prune.ts";
import { DEFAULTS } from "../../src/options.ts";
import { startServer } from "../../src/server/server.ts";
import { stripe } from "../../src/sources/stripe.ts";
import { startEmbedded } from "../../src/storage/embedded/embedded.ts";
import { migrateStore } from "../../src/storage/open.ts";
import { openPool, type Pool } from "../../src/storage/postgres.ts";
import { createUkemi } from "../../src/ukemi.ts";
import { progressBar } from "../seed/progress.ts";
import { seed } from "../seed/seed.ts";
import { round, sendSteadily, summarise, type Measured, type SenderOptions } from "./sender.ts";

const { values } = parseArgs({
  options: {
    rows: { type: "string", default: "10000000" },
    seconds: { type: "string", default: "60" },
    minutes: { type: "string", default: "30" },
    rate: { type: "string", default: "50" },
    "body-bytes": { type: "string", default: "512" },
    "body-days": { type: "string", default: "90" },
    data: { type: "string" },
    "only-fill": { type: "boolean", default: false },
  },
});
const rows = Number(values.rows);
const seconds = Number(values.seconds);
const minutes = Number(values.minutes);
const perSecond = Number(values.rate);
const SECRET = "whsec_bench_0123456789abcdef";
const DAYS = 180;
/** Slices of pruning and of rest take turns, so that what else the machine does falls on both. */
const PRUNE_MS = 40_000;
const IDLE_MS = 20_000;

const tell = (line: string) => console.log(`${new Date().toISOString().slice(11, 19)} ${line}`);

const data = values.data ?? (await mkdtemp(join(tmpdir(), "ukemi-bench-")));
try {
  await prepare();
  if (!values["only-fill"]) await measure();
} finally {
  if (values.data === undefined) await rm(data, { recursive: true, force: true });
}

async function measure(): Promise<void> {
  const server = await startEmbedded({ data });
  const pool = openPool(server.url, { max: 3, name: "bench", queryTimeoutMs: 0 });
  const ukemi = createUkemi({
    database: server.url,
    port: 0,
    logger: createLogger("silent"),
    sources: { stripe: stripe({ secrets: [SECRET] }) },
  });
  ukemi.on("stripe", "payment_intent.succeeded", () => {});
  await ukemi.start();
  await ukemi.work();
  const http = await startServer(ukemi);
  const sender = { url: http.url, secret: SECRET, perSecond };

  const idle = (ms: number) => sendSteadily(sender, AbortSignal.timeout(ms));
  await idle(10_000); // warm
  tell(`preview: ${JSON.stringify(await timed(() => ukemi.operate.retention.preview()))}`);
  const before = [await idle(seconds * 1000)];
  tell(`idle before: ${JSON.stringify(summarise(before))}`);

  const between: Measured[] = [];
  const during: Measured[] = [];
  const removed = { jobs: 0, attempts: 0, bodies: 0, months: 0, seconds: 0 };
  let locks = { longestMs: 0, seen: 0 };
  let complete = false;
  const startedAt = performance.now();
  while (!complete && performance.now() - startedAt < minutes * 60_000) {
    const slice = await pruneFor(pool, sender);
    complete = !slice.result.stopped;
    during.push(slice.measured);
    locks = {
      longestMs: Math.max(locks.longestMs, slice.locks.longestMs),
      seen: locks.seen + slice.locks.seen,
    };
    removed.jobs += slice.result.jobs;
    removed.attempts += slice.result.attempts;
    removed.bodies += slice.result.bodies;
    removed.months += slice.result.months.length;
    removed.seconds += slice.seconds;
    between.push(await idle(IDLE_MS));
    tell(
      `${removed.jobs} jobs; pruning ${JSON.stringify(summarise(during.slice(-1)))}, idle ${JSON.stringify(summarise(between.slice(-1)))}`,
    );
  }
  const after = [await idle(seconds * 1000)];
  await http.stop();
  await ukemi.stop();
  await pool.end();
  await server.stop();

  const table = {
    idle_before: summarise(before),
    idle_between: summarise(between),
    while_pruning: summarise(during),
    idle_after: summarise(after),
  };
  const rowsRemoved = removed.jobs + removed.attempts + removed.bodies;
  console.table(table);
  const results = {
    rows,
    per_second: perSecond,
    machine: `${cpus().length} × ${cpus()[0]?.model ?? "?"}, ${Math.round(totalmem() / 2 ** 30)} GB`,
    ...table,
    p99_ratio_to_idle_before: round(table.while_pruning.p99 / table.idle_before.p99),
    p99_ratio_to_idle_between: round(table.while_pruning.p99 / table.idle_between.p99),
    p99_ratio_to_idle_after: round(table.while_pruning.p99 / table.idle_after.p99),
    longest_lock_wait_ms: locks.longestMs,
    lock_waits_seen: locks.seen,
    removed: { ...removed, seconds: round(removed.seconds) },
    rows_removed_per_second: Math.round(rowsRemoved / removed.seconds),
    complete,
  };
  console.log(JSON.stringify(results, null, 2));
  const file = new URL("results.json", import.meta.url);
  await writeFile(
    file,
    `${JSON.stringify({ measured_at: new Date().toISOString(), ...results }, null, 2)}\n`,
  );
}

/** Prunes for a while, from where the slice before ended, while events come in. */
async function pruneFor(pool: Pool, sender: SenderOptions) {
  const ended = new AbortController();
  const watched = watchLocks(pool, ended.signal);
  const sending = sendSteadily(sender, ended.signal);
  const startedAt = performance.now();
  await pool.query("update ukemi.retention set due_at = null");
  const answer = await prune(
    pool,
    {
      id: randomUUID(),
      actor: "bench",
      role: "system",
      reason: "to see what it costs",
      limits: { ...DEFAULTS, bodyDays: Number(values["body-days"]) },
    },
    { onlyDue: true },
    { signal: AbortSignal.timeout(PRUNE_MS) },
  );
  const took = (performance.now() - startedAt) / 1000;
  ended.abort();
  if (!answer.taken) throw new Error("somebody else prunes");
  return { result: answer.result, measured: await sending, locks: await watched, seconds: took };
}

async function prepare(): Promise<void> {
  const server = await startEmbedded({ data });
  await migrateStore(server.url);
  const pool = openPool(server.url, { max: 2, name: "bench fill", queryTimeoutMs: 0 });
  const { rows: filled } = await pool.query("select from ukemi.events limit 1");
  const past = { rows, days: DAYS, bodyBytes: Number(values["body-bytes"]), jobs: "finished" } as const;
  if (filled.length === 0) await seed(pool, past, progressBar("filling"));
  const size = await pool.query<{ size: string }>(
    "select pg_size_pretty(pg_database_size(current_database())) as size",
  );
  tell(`${rows} events, ${size.rows[0]!.size}`);
  await pool.end();
  await server.stop();
}

async function timed<T>(work: () => Promise<T>): Promise<{ ms: number; answer: T }> {
  const startedAt = performance.now();
  const answer = await work();
  return { ms: round(performance.now() - startedAt), answer };
}

/** Looks every 10 ms at who waits for a lock on a table, and how long. */
async function watchLocks(pool: Pool, ended: AbortSignal): Promise<{ longestMs: number; seen: number }> {
  let longestMs = 0;
  let seen = 0;
  while (!ended.aborted) {
    const { rows: waits } = await pool.query<{ ms: number | null }>(
      `select max(extract(epoch from clock_timestamp() - l.waitstart) * 1000)::float8 as ms
       from pg_locks l
       join pg_stat_activity a using (pid)
       where not l.granted and a.application_name = 'ukemi inbox'`,
    );
    const ms = waits[0]?.ms ?? 0;
    if (ms > 0) seen += 1;
    longestMs = Math.max(longestMs, ms);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return { longestMs: round(longestMs), seen };
}

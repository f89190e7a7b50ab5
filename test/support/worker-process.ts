// Worker processes that a test can kill, what their handlers write, and the log by which they are judged.
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished } from "vitest";
import type { Pool } from "../../src/storage/postgres.ts";
import { registerSubscription } from "../../src/storage/subscriptions.ts";
import type { UkemiOptions } from "../../src/ukemi.ts";
import { cleanEnv, SECRET } from "./server.ts";
import { readJobs, type JobRow } from "./work.ts";

const APP = fileURLToPath(new URL("worker-app.mjs", import.meta.url));

/** A worker process. */
export interface WorkerProcess {
  readonly child: ChildProcess;
  readonly pid: number;
  /** Everything it has written so far, both streams. */
  output(): string;
  /** How often it has registered. */
  registrations(): number;
  /** Sends the signal and waits for the end; resolves with the exit code, or null where a signal ended it. */
  kill(signal: NodeJS.Signals): Promise<number | null>;
  readonly ended: Promise<number | null>;
}

/** One line of what a handler noted before and after each step. */
export interface Note {
  /** `begin`, `wrote`, `end`; and where it waits at the gate `awake`, then `late` or `refused`. */
  readonly what: string;
  readonly event: string;
  readonly pid: number;
  /** By the machine's steady clock, the same for every process. */
  readonly at: number;
}

/** A place where workers work: a database, their handlers' tables and their log. */
export interface Workplace {
  readonly url: string;
  readonly pool: Pool;
  /** Starts a worker process and waits until it takes jobs. The end of the test kills it. */
  start(options?: WorkerProcessOptions): Promise<WorkerProcess>;
  /** Lets handlers go on that wait at the gate. */
  openGate(): void;
  notes(): Note[];
}

export interface WorkerProcessOptions {
  readonly ukemi?: Partial<UkemiOptions>;
  readonly env?: Readonly<Record<string, string>>;
  /** True where handlers share their commits. @default false */
  readonly shared?: boolean;
  /** True where the handler waits for none of its statements: they and its completion are one trip. */
  readonly sends?: boolean;
  /** Handlers of events whose id ends with `_held` wait here until the gate is opened. */
  readonly gate?: boolean;
  /** For a process that may die before it says that it has started. @default true */
  readonly wait?: boolean;
}

/** Makes the handlers' tables, which have no key that would hide a double run, and lets receivers know of the handler. */
export async function createWorkplace({ url, pool }: { url: string; pool: Pool }): Promise<Workplace> {
  const folder = await mkdtemp(join(tmpdir(), "ukemi-work-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const log = join(folder, "log");
  const gate = join(folder, "gate");
  writeFileSync(log, "");
  await pool.query(`
    create table counter (id integer primary key, n integer not null default 0);
    insert into counter select generate_series(0, 15);
    create table written (event text, pid integer);
    create table late (event text, pid integer)`);
  const type = "payment_intent.succeeded";
  await registerSubscription(pool, { name: `stripe/${type}`, source: "stripe", pattern: type });
  return {
    url,
    pool,
    openGate: () => writeFileSync(gate, ""),
    notes: () => readFileSync(log, "utf8").split("\n").slice(0, -1).map(readNote),
    start: (options = {}) =>
      startWorkerProcess(
        {
          DATABASE_URL: url,
          WORKER_LOG: log,
          WORKER_SECRET: SECRET,
          WORKER_OPTIONS: JSON.stringify(options.ukemi ?? {}),
          ...(options.shared ? { WORKER_SHARED: "on" } : {}),
          ...(options.sends ? { WORKER_SENDS: "on" } : {}),
          ...(options.gate ? { WORKER_GATE: gate } : {}),
          ...options.env,
        },
        options.wait ?? true,
      ),
  };
}

/** The clock of the notes. */
export function noteClock(): number {
  return Number(process.hrtime.bigint() / 1_000_000n);
}

function readNote(line: string): Note {
  const [what, event, pid, at] = line.split(" ");
  return { what: what!, event: event!, pid: Number(pid), at: Number(at) };
}

async function startWorkerProcess(env: Record<string, string>, wait: boolean): Promise<WorkerProcess> {
  const child = spawn(process.execPath, [APP], {
    env: { ...cleanEnv(), ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let output = "";
  const registrations = () => output.split('"worker started"').length - 1;
  const ended = once(child, "close").then(() => child.exitCode);
  const started = new Promise<void>((resolve, reject) => {
    const take = (chunk: Buffer) => {
      output += chunk.toString();
      if (registrations() > 0) resolve();
    };
    child.stdout.on("data", take);
    child.stderr.on("data", take);
    void ended.then((code) =>
      reject(new Error(`the worker ended (${code ?? child.signalCode}) before it had started:\n${output}`)),
    );
  });
  started.catch(() => {}); // seen where it is waited for
  if (wait) await started;
  return {
    child,
    pid: child.pid!,
    output: () => output,
    registrations,
    ended,
    kill(signal) {
      child.kill(signal);
      return ended;
    },
  };
}

/** Numbered ids; what is behind the number tells the handler what to do. */
export function eventIds(count: number, suffix: (index: number) => string = () => "", from = 0): string[] {
  return Array.from({ length: count }, (_, index) => `evt_${from + index}${suffix(from + index)}`);
}

/** What handlers wrote is there once for each event, by two counts of which neither could hide a double run. */
export async function expectWrittenOnce(
  { pool, notes }: Workplace,
  events: readonly string[],
): Promise<void> {
  const { rows } = await pool.query<{ event: string }>("select event from written order by event");
  expect(
    rows.map((row) => row.event),
    "one row for each event",
  ).toEqual([...events].toSorted());
  const sum = await pool.query<{ n: number }>("select sum(n)::int as n from counter");
  expect(sum.rows[0]!.n, "the sum of the counters").toBe(events.length);
  const ended = new Set(notes().flatMap(({ what, event }) => (what === "end" ? event : [])));
  expect(
    events.filter((event) => !ended.has(event)),
    "never ended by their handlers' own log",
  ).toEqual([]);
}

/** Every event has one job, which is done and took one attempt, whatever happened to its processes. */
export async function expectAllDone(pool: Pool, events: readonly string[]): Promise<JobRow[]> {
  const jobs = await readJobs(pool);
  const other = jobs.filter((job) => job.state !== "done" || job.attempt !== 1);
  expect(await explain(pool, other), "other than done at the first attempt").toEqual([]);
  expect(jobs.map((job) => String(job.event_id)).toSorted()).toEqual([...events].toSorted());
  return jobs;
}

/** Jobs as lines that a person can read in a failure, with what was tried. */
async function explain(pool: Pool, jobs: readonly JobRow[]): Promise<string[]> {
  const { rows } = await pool.query<{ job: string; tries: string }>(
    `select job::text, string_agg(concat_ws(' ', outcome, error_class, error_message), '; ' order by id) as tries
     from ukemi.attempts
     group by job`,
  );
  const tries = new Map(rows.map((row) => [row.job, row.tries]));
  return jobs.map(
    ({ id, event_id, state, attempt, recoveries, death }) =>
      `${event_id} ${state} ${death ?? ""} attempt ${attempt}, recoveries ${recoveries}: ${tries.get(id)}`,
  );
}

/** How many jobs there are for each number of recoveries, as text: `0: 180, 1: 20`. */
export function recoveriesOf(jobs: readonly JobRow[]): string {
  const counts = new Map<number, number>();
  for (const { recoveries } of jobs) counts.set(recoveries, (counts.get(recoveries) ?? 0) + 1);
  return [...counts]
    .toSorted(([a], [b]) => a - b)
    .map(([recoveries, count]) => `${recoveries}: ${count}`)
    .join(", ");
}

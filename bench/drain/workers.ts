// Who takes part in the drain contests, in the order of their tables; each begins with ours. One more row is one more entry.
import type { BarName } from "../bars.ts";

/** One row of a table. */
export interface Worker {
  readonly name: string;
  readonly file: string;
  readonly schema?: boolean;
  /** Somebody else's work: its file begins with its settings. */
  readonly peer?: boolean;
  readonly redis?: boolean;
  /** Runs on the Node of the machine, not on that of the others. */
  readonly machineNode?: boolean;
  readonly env?: Readonly<Record<string, string>>;
  /** How many jobs are stored before each run, where it is not the usual number. */
  readonly count?: number;
  readonly notes: string;
}

export interface Drain {
  readonly title: string;
  readonly effect: "update" | "none";
  /** More than most finish in the time. */
  readonly count: number;
  readonly workers: readonly [Worker, ...Worker[]];
  readonly bars: readonly {
    readonly bar: BarName;
    /** @default the first worker */
    readonly ours?: string;
    readonly theirs: string;
    /** The limit of the same. */
    readonly byHand?: string;
  }[];
}

const TRANSACTIONAL = "pg-boss transactional";
const OWN_COMMIT = { BENCH_CONCURRENCY: "32", BENCH_CONNECTIONS: "8" };
const SEND = "ukemi, tx.send";
const SHARED = "ukemi, sharedCommit";
const ONE_FLUSH = "limit: one-flush transaction by hand";
const LOCKED = "limit: 100 effects per commit by hand, no claim";
const NOOP_LOCKED = "limit: complete 500 by hand, no claim";
const GRAPHILE = "graphile-worker";

export const ONCE: Drain = {
  title: "Drain, exactly once: one UPDATE in each job's transaction",
  effect: "update",
  count: 50_000,
  workers: [
    {
      name: "ukemi",
      file: "./drain/ukemi.ts",
      schema: true,
      env: OWN_COMMIT,
      notes: "one commit for each job; concurrency 32 on 8 connections, logs and metrics on",
    },
    {
      name: "ukemi on this machine's Node",
      file: "./drain/ukemi.ts",
      schema: true,
      machineNode: true,
      env: OWN_COMMIT,
      notes: "the same",
    },
    {
      name: SEND,
      file: "./drain/ukemi.ts",
      schema: true,
      env: { ...OWN_COMMIT, BENCH_SEND: "on" },
      notes: "one commit for each job; the handler does not wait for its UPDATE (tx.send), the commit does",
    },
    {
      name: SHARED,
      file: "./drain/ukemi.ts",
      schema: true,
      env: { BENCH_CONCURRENCY: "400", BENCH_SHARED: "on", BENCH_SEND: "on" },
      notes: "sharedCommit and tx.send: up to 50 jobs in one commit, sent in one trip; concurrency 400",
    },
    {
      name: ONE_FLUSH,
      file: "./drain/limit-once.ts",
      schema: true,
      env: { BENCH_BATCH: "1x8" },
      notes: "one commit for each job, pipelined, 8 lanes",
    },
    {
      name: "limit: 100 effects per commit by hand",
      file: "./drain/limit-once.ts",
      schema: true,
      env: { BENCH_BATCH: "100x4" },
      notes: "one that fails takes 99 others with it; pipelined, 4 lanes",
    },
    {
      name: LOCKED,
      file: "./drain/limit-locked.ts",
      schema: true,
      env: { BENCH_BATCH: "100x4" },
      notes:
        "the same with row locks instead of a claim: nobody sees what runs, a crash counts against nobody",
    },
    {
      name: TRANSACTIONAL,
      file: "./drain/pg-boss.ts",
      peer: true,
      env: { BENCH_BATCH: "50x8", BENCH_TRANSACTIONAL: "on" },
      notes: "one commit for a batch of 50, 8 workers: one that fails takes 49 others with it",
    },
    {
      name: "pg-boss transactional, two each",
      file: "./drain/pg-boss.ts",
      peer: true,
      env: { BENCH_BATCH: "2x8", BENCH_TRANSACTIONAL: "on" },
      notes:
        "one commit for two jobs, 8 workers: nearest to ours by default; at one, it waits for its polling interval after each",
    },
    {
      name: "pg-boss, UPDATE outside",
      file: "./drain/pg-boss.ts",
      peer: true,
      env: { BENCH_BATCH: "500x2" },
      notes: "weaker promise: at least once; batches of 500, 2 workers",
    },
    {
      name: "graphile-worker, UPDATE outside",
      file: "./drain/graphile-worker.ts",
      peer: true,
      notes: "weaker promise: at least once; 24 jobs at once, local queue of 500, completions batched",
    },
    {
      name: "DBOS",
      file: "./drain/dbos.ts",
      peer: true,
      count: 10_000,
      notes: "a workflow with one transaction step; worker concurrency 100, polled every 20 ms",
    },
  ],
  bars: [
    { bar: "drainTransactional", ours: SEND, theirs: TRANSACTIONAL, byHand: ONE_FLUSH },
    { bar: "drainLimit", ours: SEND, theirs: ONE_FLUSH },
    { bar: "drainShared", ours: SHARED, theirs: TRANSACTIONAL, byHand: LOCKED },
  ],
};

export const NOOP: Drain = {
  title: "Drain, no-op handlers",
  effect: "none",
  count: 80_000,
  workers: [
    {
      name: "ukemi",
      file: "./drain/ukemi.ts",
      schema: true,
      env: { BENCH_CONCURRENCY: "100" },
      notes: "concurrency 100, logs and metrics on",
    },
    {
      name: "limit: claim and complete 500 by hand",
      file: "./drain/limit-noop.ts",
      schema: true,
      notes: "2 lanes",
    },
    {
      name: NOOP_LOCKED,
      file: "./drain/limit-locked.ts",
      schema: true,
      env: { BENCH_BATCH: "500x2" },
      notes: "row locks instead of a claim: nobody sees what runs, a crash counts against nobody",
    },
    {
      name: GRAPHILE,
      file: "./drain/graphile-worker.ts",
      peer: true,
      notes: "24 jobs at once, local queue of 500, completions batched",
    },
    {
      name: "pg-boss",
      file: "./drain/pg-boss.ts",
      peer: true,
      env: { BENCH_BATCH: "1000x2" },
      notes: "batches of 1000, 2 workers: one that fails takes its batch with it",
    },
    {
      name: "BullMQ",
      file: "./drain/bullmq.ts",
      peer: true,
      redis: true,
      notes: "Redis, appendfsync always; concurrency 200",
    },
  ],
  bars: [{ bar: "noopGraphile", theirs: GRAPHILE, byHand: NOOP_LOCKED }],
};

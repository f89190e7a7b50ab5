// What Prometheus may ask for. Labels are bounded: no id, no address, no text of a caller's choosing.
import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from "prom-client";
import type { Fault } from "../storage/faults.ts";
import type { Rescued } from "../storage/rescue.ts";
import type { Report } from "../work/execute.ts";
import type { Backlog } from "./backlog.ts";
import { createCallMetrics, createLedgerMetrics, type EffectMetrics } from "./effect-metrics.ts";
import { createReceiptMetrics, createRequestMetrics, SECONDS, type InboxMetrics } from "./inbox-metrics.ts";

export interface Metrics extends InboxMetrics, EffectMetrics {
  readonly registry: Registry;
  /** Rejections that the quarantine did not keep because too many came at once. */
  rejectionsDropped(count: number): void;
  databaseFault(fault: Fault): void;
  /** A try at a job has ended. */
  tried(report: Report): void;
  /** A job was taken over from a worker that is gone. */
  rescued(job: Pick<Rescued, "queue" | "handler" | "death">): void;
  /** Dead letters that were brought back or given up, and events that were given to handlers that came later. */
  changed(act: Act, count: number): void;
  /** A round of regular work failed. */
  roundFailed(round: string): void;
  /** An hour of a source's events was unusual. */
  anomaly(found: { readonly source: string; readonly kind: string }): void;
}

/** What can be done to jobs from outside. */
export type Act = "replayed" | "dropped" | "revived" | "routed";

export interface MetricsOptions {
  readonly version: string;
  /** How many verified events wait for a commit now. */
  readonly waiting: () => number;
  /** How many jobs run in this process now. */
  readonly running: () => number;
  /** How far the process clock is ahead of the database's, in milliseconds. */
  readonly skewMs: () => number | undefined;
  /** What waits in the database; never rejects, and never takes long. */
  readonly backlog?: () => Promise<Backlog | undefined>;
}

const QUEUE_STATES = ["ready", "scheduled", "waiting", "running", "dead"] as const;

/** Makes the metrics, each instance with its own registry. */
export function createMetrics(options: MetricsOptions): Metrics {
  const registers = [new Registry()];
  const registry = registers[0]!;
  collectDefaultMetrics({ register: registry });

  new Gauge({
    name: "ukemi_build_info",
    help: "Always 1; the labels say what is running.",
    labelNames: ["version", "node"],
    registers,
  }).set({ version: options.version, node: process.version }, 1);
  const { request } = createRequestMetrics(registers);
  const { receipt } = createReceiptMetrics(registers);
  new Gauge({
    name: "ukemi_inbox_waiting_events",
    help: "Verified events that wait for their commit.",
    registers,
    collect() {
      this.set(options.waiting());
    },
  });
  new Gauge({
    name: "ukemi_clock_skew_seconds",
    help: "How far the process clock is ahead of the database's.",
    registers,
    collect() {
      this.set((options.skewMs() ?? 0) / 1000);
    },
  });
  const dropped = new Counter({
    name: "ukemi_inbox_rejections_dropped_total",
    help: "Refused requests that the quarantine did not keep because too many came at once.",
    registers,
  });
  const faults = new Counter({
    name: "ukemi_db_faults_total",
    help: "Faults met while storing events: infrastructure (connection lost, disk full), contention (locks), refused.",
    labelNames: ["fault"],
    registers,
  });

  const anomalies = new Counter({
    name: "ukemi_event_anomalies_total",
    help: "Runs of hours in which a type of event came unusually often (high), rarely (low) or not at all (silent). Counted by the process that noticed.",
    labelNames: ["source", "kind"],
    registers,
  });
  const rounds = new Counter({
    name: "ukemi_round_faults_total",
    help: "Rounds of regular work that failed, and are made again.",
    labelNames: ["round"],
    registers,
  });

  const work = createWorkMetrics(registers, options.running);
  const calls = createCallMetrics(registers);
  const { backlog } = options;
  if (backlog) {
    createBacklogMetrics(registers, backlog);
    createLedgerMetrics(registers, async () => (await backlog())?.ledger);
  }

  return {
    registry,
    ...work,
    ...calls,
    receipt,
    request,
    rejectionsDropped: (count) => dropped.inc(count),
    databaseFault: (fault) => faults.inc({ fault }),
    roundFailed: (round) => rounds.inc({ round }),
    anomaly: ({ source, kind }) => anomalies.inc({ source, kind }),
  };
}

/** What waits, whoever works on it: every process shows the same. */
function createBacklogMetrics(registers: Registry[], backlog: () => Promise<Backlog | undefined>): void {
  const readQueues = async () => (await backlog())?.queues ?? [];
  new Gauge({
    name: "ukemi_operations",
    help: "Operations that have not come to their end: running, or stopped by themselves above their limit of failures.",
    labelNames: ["state"],
    registers,
    async collect() {
      const operations = (await backlog())?.operations;
      this.reset();
      for (const [state, count] of Object.entries(operations ?? {})) this.set({ state }, count);
    },
  });
  new Gauge({
    name: "ukemi_queue_jobs",
    help: "Jobs in the database that are not done, by state: ready, scheduled, waiting, running, dead.",
    labelNames: ["queue", "state"],
    registers,
    async collect() {
      const queues = await readQueues();
      this.reset();
      for (const queue of queues) {
        for (const state of QUEUE_STATES) this.set({ queue: queue.name, state }, queue[state]);
      }
    },
  });
  new Gauge({
    name: "ukemi_queue_oldest_ready_seconds",
    help: "How long the oldest ready job of a queue has been due; 0 where none is ready.",
    labelNames: ["queue"],
    registers,
    async collect() {
      const queues = await readQueues();
      this.reset();
      for (const queue of queues) this.set({ queue: queue.name }, queue.oldest_ready_seconds ?? 0);
    },
  });
  new Gauge({
    name: "ukemi_queue_paused",
    help: "1 where an operator has paused the queue.",
    labelNames: ["queue"],
    registers,
    async collect() {
      const queues = await readQueues();
      this.reset();
      for (const queue of queues) this.set({ queue: queue.name }, queue.paused ? 1 : 0);
    },
  });
}

/** What is counted of jobs. Handlers and queues are names of the application's own choosing, and few. */
function createWorkMetrics(
  registers: Registry[],
  running: () => number,
): Pick<Metrics, "tried" | "rescued" | "changed"> {
  const tries = new Counter({
    name: "ukemi_job_tries_total",
    help: "Tries at jobs by how they ended: done, retry, not_yet, dead, returned (no fault of the handler), lost (lease).",
    labelNames: ["queue", "handler", "outcome"],
    registers,
  });
  const dead = new Counter({
    name: "ukemi_jobs_dead_total",
    help: "Jobs that became dead letters, by the cause: exhausted, terminal, crashed, overdue.",
    labelNames: ["queue", "handler", "death"],
    registers,
  });
  const rescues = new Counter({
    name: "ukemi_jobs_rescued_total",
    help: "Jobs taken over from a worker that died or was not heard of.",
    labelNames: ["queue", "handler"],
    registers,
  });
  const seconds = new Histogram({
    name: "ukemi_job_duration_seconds",
    help: "From the start of a handler to the commit of its job.",
    labelNames: ["queue", "handler"],
    buckets: [...SECONDS, 30, 60],
    registers,
  });
  const waited = new Histogram({
    name: "ukemi_job_wait_seconds",
    help: "From the time at which a job was due to its claim.",
    labelNames: ["queue"],
    buckets: [...SECONDS, 30, 60, 300],
    registers,
  });
  const changed = new Counter({
    name: "ukemi_jobs_changed_total",
    help: "Jobs changed from outside: dead ones replayed or dropped by an operator, revived by a sender's resend; events routed to a handler that came later.",
    labelNames: ["act"],
    registers,
  });
  new Gauge({
    name: "ukemi_jobs_running",
    help: "Jobs that run in this process now.",
    registers,
    collect() {
      this.set(running());
    },
  });
  return {
    tried({ job: { queue, handler, waitedMs }, outcome, durationMs, death }) {
      tries.inc({ queue, handler, outcome });
      if (death !== undefined) dead.inc({ queue, handler, death });
      seconds.observe({ queue, handler }, durationMs / 1000);
      waited.observe({ queue }, Math.max(0, waitedMs) / 1000);
    },
    rescued({ queue, handler, death }) {
      rescues.inc({ queue, handler });
      if (death !== null) dead.inc({ queue, handler, death });
    },
    changed: (act, count) => changed.inc({ act }, count),
  };
}

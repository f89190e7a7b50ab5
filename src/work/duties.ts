// The regular duties of a worker: keep its leases alive, make ready what is due, take over from those that are gone.
import { sleep, steadyMs } from "../clock.ts";
import { moveDue, promoteStranded, rehomeJobs, type Home } from "../storage/due.ts";
import { holdStranded } from "../storage/effects-stranded.ts";
import { describeFault } from "../storage/faults.ts";
import { transaction, type Pool, type Queryable } from "../storage/postgres.ts";
import type { Presence } from "../storage/presence.ts";
import { holdsLock } from "../storage/workers.ts";
import { rescueJobs, type Rescued } from "../storage/rescue.ts";
import type { Bell } from "./bell.ts";
import type { Running } from "./running.ts";
import type { Tell } from "./worker.ts";

export interface DutyOptions {
  readonly worker: string;
  readonly duties: Pool;
  readonly presence: Presence;
  readonly running: Running;
  /** The handlers that this worker has, and their queues. */
  readonly homes: readonly Home[];
  readonly leaseMs: number;
  readonly pollMs: number;
  /** Work has become ready in these queues, for us and for others. */
  readonly onReady: (queues: readonly string[]) => void;
  readonly onRescue: (rescued: Rescued) => void;
  /** Jobs that must run alone are there. */
  readonly wakeAlone: () => void;
  /** Rings when a job is to be tried again later. */
  readonly due: Bell;
  readonly tell: Tell;
}

const HEARTBEATS_PER_LEASE = 6;
/** A session that is silent for so long is given up; the leases have time left then. */
const SILENCE_PART = 1 / 2;
const SILENCE_MS_MAX = 10_000;
const RESCUE_MS = 400;
/** A process that freezes in the middle of a rescue keeps the others from theirs for no longer than this. */
const FROZEN_MS = 1000;
const STRANDED_MS = 2000;

/** Does all of them until the signal fires. Never rejects: what failed is tried again the next time. */
export async function runDuties(options: DutyOptions, ended: AbortSignal): Promise<void> {
  const every = async (name: string, duty: () => Promise<number>, bell?: Bell) => {
    while (!ended.aborted) {
      let pauseMs = options.pollMs;
      try {
        pauseMs = await duty();
      } catch (error) {
        if (!ended.aborted) options.tell("debug", `${name} failed`, { error: describeFault(error) });
      }
      await (bell ? bell.wait(pauseMs) : sleep(pauseMs, ended));
    }
  };
  ended.addEventListener("abort", () => options.due.ring(), { once: true });
  await Promise.all([
    every("extending leases", () => extend(options)),
    every("making due jobs ready", () => makeReady(options), options.due),
    every("taking over lost jobs", () => rescue(options)),
    every("finding stranded jobs", () => findStranded(options)),
  ]);
}

/** Our own clock has the last word: where the database could not be asked in time, the lease counts as lost. */
async function extend(options: DutyOptions): Promise<number> {
  const { running, worker, leaseMs, tell } = options;
  const lapsed = running.stopLapsed();
  if (lapsed.length > 0)
    tell("warn", "leases lapsed: the database could not be reached", { jobs: lapsed.length });
  const leases = running.leases();
  const askedAt = steadyMs();
  const silenceMs = Math.min(SILENCE_MS_MAX, leaseMs * SILENCE_PART);
  const kept = await options.presence.extend(leases, running.tokens(), silenceMs);
  for (const job of running.extended(leases, kept, askedAt)) {
    tell("warn", "a lease was lost: its handler is stopped", { job: job.id, handler: job.handler, worker });
  }
  return leaseMs / HEARTBEATS_PER_LEASE;
}

async function makeReady({ duties, pollMs, onReady }: DutyOptions): Promise<number> {
  const due = await moveDue(duties);
  if (due.queues.length > 0) onReady(due.queues);
  return Math.min(pollMs, due.nextMs ?? pollMs);
}

/** One process at a time looks for the dead; the others need not. */
async function rescue({ duties, onRescue, onReady, wakeAlone }: DutyOptions): Promise<number> {
  const rescueAlone = async (client: Queryable) =>
    (await holdsLock(client, "ukemi.rescue")) ? rescueJobs(client) : [];
  const rescued = await transaction(duties, rescueAlone, FROZEN_MS);
  for (const job of rescued) onRescue(job);
  if (rescued.length === 0) return RESCUE_MS;
  onReady([...new Set(rescued.map((job) => job.queue))]);
  wakeAlone();
  return RESCUE_MS;
}

/** Jobs whose key nobody holds, or whose handler has moved to another queue; effects whose job has died under a call. The longer it takes, the rarer it is done. */
async function findStranded({ duties, worker, homes, onReady }: DutyOptions): Promise<number> {
  const startedAt = steadyMs();
  const queues = await transaction(duties, async (client) => {
    if (!(await holdsLock(client, "ukemi.stranded"))) return [];
    await holdStranded(client);
    return [...(await rehomeJobs(client, worker, homes)), ...(await promoteStranded(client))];
  });
  if (queues.length > 0) onReady(queues);
  return Math.max(STRANDED_MS, 20 * (steadyMs() - startedAt));
}

// How a try may end, done to the database and to the model: by one who holds the lease, or by one who lost it.
import { uuidv7 } from "../../src/storage/ids.ts";
import { expect } from "vitest";
import { transaction } from "../../src/storage/postgres.ts";
import { giveBack, giveBackClaim } from "../../src/storage/give-back.ts";
import { LeaseLost, settleDone, settleManyDone } from "../../src/storage/settle.ts";
import { settleFailed, type Failure } from "../../src/storage/settle-failed.ts";
import { extendLeases } from "../../src/storage/leases.ts";
import { compare, LEASE_MS, type World } from "./job-world.ts";
import * as model from "./job-model.ts";
import { MINUTE, type ModelJob } from "./job-model.ts";

export type Ending =
  | "done"
  | "done many"
  | "fail"
  | "wait"
  | "die"
  | "give back"
  | "give back later"
  | "extend"
  | "unclaim";
type Lease = World["leases"][number];
type RunAt = (now: number) => number;

const error = { class: "Error", message: "failed", stack: null };
const trail = { audits: [], links: new Map<string, string>() };
const tryOf = (worker: string) => ({ durationMs: 1, worker, traceId: null });
const WITHIN_MINUTES = 20;

/** Ends the try as asked. One who lost the lease must be told so, and must change nothing. */
export async function end(world: World, lease: Lease, ending: Ending): Promise<void> {
  const held = model.heldBy(world.model, lease.job);
  switch (ending) {
    case "done":
      expect(await finishInTransaction(world, lease)).toBe(held !== undefined);
      if (held) model.finish(world.model, held);
      return compare(world);
    case "done many": {
      // only for jobs that are their event's only one; the others take the way of a transaction
      if (lease.job.siblings > 1) return end(world, lease, "done");
      const lost = await settleManyDone(world.pool, lease.worker, [
        { job: lease.job, attempt: tryOf(lease.worker) },
      ]);
      expect(lost.has(lease.job.id)).toBe(held === undefined);
      if (held) model.finish(world.model, held);
      return compare(world);
    }
    case "fail":
    case "wait":
    case "die":
      return fail(world, lease, ending);
    case "give back":
    case "give back later":
      return returnLease(world, lease, ending === "give back" ? 0 : 3);
    case "extend": {
      const kept = await extendLeases(world.pool, lease.worker, {
        leases: [lease.job],
        tokens: world.leases.map(({ job }) => job.token),
        before: uuidv7(Date.now()),
        leaseMs: LEASE_MS,
      });
      expect(kept.has(lease.job.id)).toBe(held !== undefined);
      return compare(world, { leased: held ? [held.id] : [] });
    }
    case "unclaim": {
      const { token } = lease.job;
      await giveBackClaim(world.pool, lease.worker, token);
      for (const job of model.listJobs(world.model)) if (job.token === token) model.leave(job, "ready");
      return compare(world);
    }
  }
}

/** A handler's own write beside the completion: one goes with the other. */
async function finishInTransaction({ pool }: World, { job, worker }: Lease): Promise<boolean> {
  try {
    await transaction(pool, async (client) => {
      await client.query("insert into written values ($1)", [job.id]);
      const run = (text: string, values: unknown[]) => client.query(text, values);
      await settleDone(run, job, { trail, attempt: tryOf(worker), within: null });
    });
    return true;
  } catch (fault) {
    if (fault instanceof LeaseLost) return false;
    throw fault;
  }
}

async function fail(world: World, { job, worker }: Lease, ending: "fail" | "wait" | "die"): Promise<void> {
  const held = model.heldBy(world.model, job);
  const failure = failureOf(ending, job);
  const since = held?.notYetSince ?? null;
  try {
    const death = await settleFailed(world.pool, job, failure, tryOf(worker));
    expect(held, "a lost lease was settled").toBeDefined();
    expect(death).toBe(expectedDeath(world, failure, since));
  } catch (fault) {
    if (!(fault instanceof LeaseLost)) throw fault;
    expect(held, "a lease was lost").toBeUndefined();
  }
  if (!held) return compare(world);
  const death = expectedDeath(world, failure, since);
  world.model.attempts += 1;
  if (failure.next !== "wait") held.attempt += 1;
  held.notYetSince = failure.next === "wait" ? (since ?? world.model.now) : null;
  if (death !== null) model.die(world.model, held, death);
  else model.postpone(held);
  await compare(world, death === null ? { runAt: new Map([[held.id, nextRun(failure, since)]]) } : {});
}

/** As a worker judges: the last try of all is a death. */
function failureOf(ending: "fail" | "wait" | "die", job: Lease["job"]): Failure {
  if (ending === "wait") return { next: "wait", withinMs: WITHIN_MINUTES * 60_000, error };
  if (ending === "die") return { next: "die", death: "terminal", error };
  if (job.attempt + 1 >= job.maxAttempts) return { next: "die", death: "exhausted", error };
  return { next: "retry", delayMs: 120_000, error };
}

function expectedDeath({ model: { now } }: World, failure: Failure, since: number | null): ModelJob["death"] {
  if (failure.next === "die") return failure.death;
  return failure.next === "wait" && since !== null && since + WITHIN_MINUTES * MINUTE <= now
    ? "overdue"
    : null;
}

function nextRun(failure: Failure, since: number | null): RunAt {
  if (failure.next === "retry") return (now) => now + failure.delayMs * 1000;
  return (now) => {
    const waited = now - (since ?? now);
    const pause = Math.max(1_000_000, Math.min(MINUTE, waited));
    return Math.min(now + pause, (since ?? now) + WITHIN_MINUTES * MINUTE);
  };
}

async function returnLease(world: World, { job }: Lease, delayMinutes: number): Promise<void> {
  const held = model.heldBy(world.model, job);
  const back = { reason: "the worker was stopped", delayMs: delayMinutes * 60_000 };
  const given = await giveBack(world.pool, [job], back);
  expect(given.has(job.id)).toBe(held !== undefined);
  if (!held) return compare(world);
  if (held.started) world.model.attempts += 1;
  if (delayMinutes === 0) model.leave(held, "ready");
  else model.postpone(held);
  const later: RunAt = (now) => now + delayMinutes * MINUTE;
  await compare(world, delayMinutes === 0 ? {} : { runAt: new Map([[held.id, later]]) });
}

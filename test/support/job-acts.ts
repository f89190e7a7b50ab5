// Acts on jobs, each done to the database through the storage functions and to the model, and compared afterwards.
import { expect } from "vitest";
import { claimJobs, startAlone, type Job } from "../../src/storage/claim.ts";
import { moveDue, promoteStranded } from "../../src/storage/due.ts";
import { enqueueTask } from "../../src/storage/enqueue.ts";
import { storeEvents, type SlotOffer } from "../../src/storage/events.ts";
import { uuidv7 } from "../../src/storage/ids.ts";
import { reviveJobs } from "../../src/storage/revive.ts";
import { endWorker } from "../../src/storage/workers.ts";
import { rescueJobs } from "../../src/storage/rescue.ts";
import { WORKER_LOCKS } from "../../src/storage/live-workers.ts";
import * as model from "./job-model.ts";
import { MINUTE, type Model, type ModelJob } from "./job-model.ts";
import { ALL_HANDLERS, compare, HANDLERS, hire, LEASE_MS, readNow, type World } from "./job-world.ts";
import { newEvent } from "./store.ts";

export interface NewTaskAct {
  readonly queue: string;
  readonly handler: string;
  readonly tenant: string | null;
  readonly key: string | null;
  readonly ordered: boolean;
  readonly priority: number;
  readonly maxAttempts: number;
  readonly delayMinutes: number;
}

/** Asks for so many of the same. */
export async function enqueue(
  world: World,
  { delayMinutes, ...task }: NewTaskAct,
  count: number,
): Promise<void> {
  const rest = {
    policy: "quick",
    dedupeKey: null,
    runAt: null,
    delayMs: delayMinutes * 60_000,
    payload: "null",
  };
  const state = delayMinutes > 0 ? "scheduled" : task.key === null ? "ready" : "waiting";
  const runAt = new Map<string, (now: number) => number>();
  for (let made = 0; made < count; made += 1) {
    const { id } = await enqueueTask(world.pool, { ...task, ...rest });
    addJob(world, { id, ...task, event: null, immediate: delayMinutes === 0, state });
    runAt.set(id, (now) => now + delayMinutes * MINUTE);
  }
  await compare(world, { runAt });
}

function addJob({ model: { jobs } }: World, made: Partial<ModelJob> & Pick<ModelJob, "id">): void {
  const blank = {
    attempt: 0,
    recoveries: 0,
    revivals: 0,
    death: null,
    keyHeld: false,
    started: false,
    token: null,
    worker: null,
    runAt: 0,
    leaseUntil: 0,
    notYetSince: null,
  };
  jobs.set(made.id, { ...blank, ...made } as ModelJob);
}

/** Stores an event, with or without slots of a worker into which its jobs may be inserted. */
export async function store(
  world: World,
  event: { type: keyof typeof HANDLERS; ref: string; slots: number; worker: number },
): Promise<void> {
  const { pool, model: expected, workers, events, leases } = world;
  const refs = [{ kind: "payment_intent", id: event.ref }];
  const stored = newEvent(uuidv7(Date.now()), { type: event.type, refs });
  const worker = workers[event.worker]!.id;
  const token = uuidv7(Date.now());
  const names = HANDLERS[event.type].toSorted().slice(0, event.slots);
  const takers = (events: readonly unknown[]) => events.map(() => names);
  const offer: SlotOffer = {
    worker,
    token,
    leaseMs: LEASE_MS,
    queues: ["one"],
    handlers: ALL_HANDLERS,
    takers,
  };
  const busy = model
    .listJobs(expected)
    .some((job) => job.queue === "one" && job.state === "ready" && job.recoveries === 0);
  const open = event.type === "plain" && !busy && !expected.paused.has("one") ? event.slots : 0;
  const { claimed } = await storeEvents({ query: pool.query.bind(pool), pooled: true }, [stored], offer);
  const { rows } = await pool.query<{ id: string; handler: string }>(
    "select id, subscription as handler from ukemi.jobs where event = $1 order by id",
    [stored.id],
  );
  const inTurn = rows.toSorted((a, b) => (a.handler < b.handler ? -1 : 1));
  const taken = new Set(inTurn.slice(0, open).map(({ id }) => id));
  expect(new Set(claimed.map(({ id }) => id))).toEqual(taken);
  for (const { id, handler } of rows) {
    const key = event.type === "plain" ? null : event.ref;
    addJob(world, {
      id,
      handler,
      key,
      queue: "one",
      tenant: null,
      ordered: event.type === "ordered",
      priority: 0,
      maxAttempts: 2,
      event: stored.id,
      immediate: true,
      state: key === null ? "ready" : "waiting",
    });
    if (taken.has(id)) start(expected, id, token, worker);
  }
  events.push(stored.id);
  leases.push(...claimed.map((job) => ({ job, worker })));
  await compare(world, {
    runAt: new Map(rows.map(({ id }) => [id, (now: number) => now])),
    leased: [...taken],
  });
}

function start(expected: Model, id: string, token: string, worker: string): void {
  const job = expected.jobs.get(id)!;
  model.lease(job, token, worker);
  job.started = true;
}

export async function claim(
  world: World,
  request: { queue: string; most: number; alone: boolean; worker: number; handlers?: readonly string[] },
): Promise<Job[]> {
  const { pool, model: expected, workers, leases } = world;
  const worker = workers[request.worker]!.id;
  const asked = { ...request, handlers: request.handlers ?? ALL_HANDLERS, worker, token: uuidv7(Date.now()) };
  const found = model.claimable(expected, asked);
  const jobs = await claimJobs(pool, { ...asked, leaseMs: LEASE_MS, afterTenant: "" });
  const taken = jobs.map(({ id }) => expected.jobs.get(id)!);
  const left = found.filter((job) => !taken.includes(job));
  expect(
    taken.filter((job) => !found.includes(job)),
    "not to be claimed",
  ).toEqual([]);
  expect(jobs.length, "claimed").toBe(Math.min(request.alone ? 1 : request.most, found.length));
  for (const job of taken) {
    expect(
      left.filter((other) => other.priority > job.priority),
      "passed over by priority",
    ).toEqual([]);
    const stream = ({ tenant, handler, priority }: ModelJob) => `${tenant ?? ""}/${handler}/${priority}`;
    const older = left.filter((other) => stream(other) === stream(job) && model.byAge(other, job) < 0);
    expect(older, "passed over by a younger one").toEqual([]);
    expect(before(expected, job), "out of order").toEqual([]);
    model.lease(job, asked.token, worker);
    job.started = !request.alone;
  }
  leases.push(...jobs.map((job) => ({ job, worker })));
  await compare(world, { leased: jobs.map(({ id }) => id) });
  return jobs;
}

/** Jobs that an ordered one must not run before: older ones of its key that have not ended, if neither was brought back. */
function before(expected: Model, job: ModelJob): ModelJob[] {
  const plain = (other: ModelJob) => other.ordered && other.immediate && other.revivals === 0;
  if (!plain(job)) return [];
  return model
    .listJobs(expected)
    .filter(
      (other) =>
        plain(other) &&
        other.queue === job.queue &&
        other.key === job.key &&
        Number(other.id) < Number(job.id) &&
        !["done", "dead"].includes(other.state),
    );
}

export async function beginAlone(world: World, { job }: World["leases"][number]): Promise<void> {
  const held = model.heldBy(world.model, job);
  expect(await startAlone(world.pool, job, LEASE_MS)).toBe(held !== undefined);
  if (held) held.started = true;
  await compare(world, { leased: held ? [held.id] : [] });
}

export async function pause(world: World, queue: string, paused: boolean): Promise<void> {
  await world.pool.query(
    "insert into ukemi.queues (name, paused) values ($1, $2) on conflict (name) do update set paused = $2",
    [queue, paused],
  );
  if (paused) world.model.paused.add(queue);
  else world.model.paused.delete(queue);
}

/** Lets time pass on the database's clock, and nothing else happen. */
export async function pass(world: World, minutes: number): Promise<void> {
  await world.pool.query("update ukemi.clock set shift = shift + $1 * interval '1 minute'", [minutes]);
  world.model.now = await readNow(world.pool);
}

export async function makeDue(world: World): Promise<void> {
  await moveDue(world.pool);
  model.moveDue(world.model);
  await compare(world);
}

export async function sweepKeys(world: World): Promise<void> {
  await promoteStranded(world.pool);
  model.promote(world.model, () => true);
  await compare(world);
}

export async function takeOver(world: World, missed?: string): Promise<void> {
  await rescueJobs(world.pool);
  model.rescue(world.model, missed);
  await compare(world);
}

export async function stopWorker(world: World, index: number): Promise<void> {
  const { id, number } = world.workers[index]!;
  await endWorker(world.pool, id, "stopped");
  await world.session.query("select pg_advisory_unlock($1, $2)", [WORKER_LOCKS, number]);
  model.endWorker(world.model, id);
  world.model.ended.add(id);
  world.workers[index] = await hire(world);
  await compare(world);
}

/** Its session goes; others find out, wait a moment in case it comes back, and then take its jobs. */
export async function killWorker(world: World, index: number): Promise<void> {
  const { id, number } = world.workers[index]!;
  await world.session.query("select pg_advisory_unlock($1, $2)", [WORKER_LOCKS, number]);
  await takeOver(world, id);
  await pass(world, 1);
  world.model.ended.add(id);
  await takeOver(world);
  world.workers[index] = await hire(world);
}

export async function revive(world: World, event: string): Promise<void> {
  const dead = model.listJobs(world.model).filter((job) => job.event === event && job.state === "dead");
  await reviveJobs(world.pool, [event]);
  model.revive(world.model, event);
  const back = dead.filter((job) => job.state !== "dead");
  await compare(world, { runAt: new Map(back.map(({ id }) => [id, (now) => now])) });
}

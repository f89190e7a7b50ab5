// A worker: registers, claims jobs while it has free slots, runs them, and keeps its leases alive until it is stopped.
import { inTime } from "../clock.ts";
import type { Kinds } from "../effects/effects.ts";
import { describeFault } from "../storage/faults.ts";
import type { Keyring } from "../storage/keyring.ts";
import { closePool, openPool, type Pool } from "../storage/postgres.ts";
import { endWorker } from "../storage/workers.ts";
import type { Rescued } from "../storage/rescue.ts";
import { runDuties } from "./duties.ts";
import type { EffectNews } from "./effect-run.ts";
import type { Report } from "./execute.ts";
import type { Handler } from "./handler.ts";
import { registerAnew, type Registered } from "./registration.ts";
import { createShift, type Shift } from "./shift.ts";
import type { Offer } from "./offer.ts";

export type Tell = (
  level: "debug" | "info" | "warn" | "error",
  message: string,
  fields?: Record<string, unknown>,
) => void;

/** Handlers' transactions must not take the connections by which jobs are claimed, settled and recovered. */
interface Pools {
  readonly duties: Pool;
  readonly handlerPool: Pool;
  /** For what is written about effects; undefined where there is nobody to carry them out. */
  readonly effectPool: Pool | undefined;
}

export interface WorkerOptions {
  /** Where connections go to. */
  readonly url: string;
  /** Where the session goes that must not pass through a transaction pooler. */
  readonly directUrl: string;
  /** True where the first leads through a transaction pooler. */
  readonly pooled: boolean;
  /** True where a handler's whole transaction may go out in one trip. */
  readonly oneTrip: boolean;
  readonly handlers: ReadonlyMap<string, Handler>;
  /** The effects that handlers can intend. */
  readonly kinds: Kinds;
  /** What opens sealed bodies. */
  readonly keyring: Keyring;
  /** How many jobs of each queue may run at once in this process. */
  readonly concurrency: ReadonlyMap<string, number>;
  readonly leaseMs: number;
  readonly pollMs: number;
  readonly timeLimitMs: number;
  readonly handlerConnectionsMax: number;
  readonly drainTimeoutMs: number;
  readonly onReport: (report: Report) => void;
  readonly onRescue: (rescued: Rescued) => void;
  readonly onEffectNews: (news: EffectNews) => void;
  /** Work for others, too, has become ready. */
  readonly onReady: (queues: readonly string[]) => void;
  readonly tell: Tell;
}

export interface Worker {
  /** Resolves when the worker has registered and takes jobs. */
  start(): Promise<void>;
  /** Takes no more jobs, waits for those that run, and gives back what is left when the time is up. */
  stop(): Promise<void>;
  /** Says that there may be work in these queues. */
  wake(queues: Iterable<string>): void;
  /** Slots for jobs that are about to be stored, to be inserted as claimed; undefined where none is free. */
  offer(): Offer | undefined;
  running(): number;
  /** Its present id; null while it has none. */
  id(): string | null;
}

const DUTY_CONNECTIONS = 4;
const EFFECT_CONNECTIONS = 10;
const DUTY_TIMEOUT_MS = 15_000;
const STOP_GRACE_MS = 2000;

/** Nothing is opened until start. */
export function createWorker(options: WorkerOptions): Worker {
  const stopping = new AbortController();
  const stopAsked = new Promise<void>((resolve) =>
    stopping.signal.addEventListener("abort", () => resolve(), { once: true }),
  );
  const homes = [...options.handlers.values()].map(({ name, queue }) => ({ handler: name, queue }));
  const wakeLater = () => shift?.due.ring();
  const hold = (queue: string) => shift?.hold(queue);
  const registration = { ...options, wake, wakeLater, hold, stopping: stopping.signal };
  let shift: Shift | undefined;
  let life: Promise<void> | undefined;

  function wake(queues: Iterable<string>): void {
    for (const queue of queues) shift?.wake(queue);
  }

  /** Shift after shift: one lasts as long as its session does. */
  async function work(first: Registered, pools: Pools): Promise<void> {
    const ends: Promise<void>[] = [];
    let former: Shift[] = []; // whose calls to the outside are still under way
    let registered: Registered | undefined = first;
    while (registered) {
      const { id, presence } = registered;
      const current = createShift({ ...options, ...pools, worker: id });
      shift = current;
      const over = new AbortController();
      const lost = new Promise<void>((resolve) => presence.onLost(resolve)).then(() => over.abort());
      const { running, wakeAlone, due } = current;
      ends.push(
        current.run(),
        runDuties(
          { ...options, ...pools, worker: id, presence, running, wakeAlone, due, homes },
          over.signal,
        ),
      );
      options.tell("info", "worker started", { worker: id });
      await Promise.race([lost, stopAsked]);
      if (!over.signal.aborted) {
        current.close();
        const drained = Promise.all([current, ...former].map((one) => one.drained()));
        await Promise.race([lost, inTime(drained, options.drainTimeoutMs, () => [])]);
        over.abort();
        await leave(current, registered, pools.duties);
        break;
      }
      options.tell("warn", "the worker lost its session: its handlers are stopped, their jobs given back", {
        worker: id,
        running: running.size(),
      });
      current.abort("connection_lost");
      former = [...former, current].filter((one) => one.running.size() > 0);
      registered = await registerAnew({ ...registration, duties: pools.duties }, id);
      if (!registered)
        await inTime(
          endWorker(pools.duties, id, "stopped").catch(() => 0),
          STOP_GRACE_MS,
          () => 0,
        );
    }
    for (const one of former) one.abort("stopping");
    const drained = former.map((one) => one.drained());
    await inTime(Promise.all([...ends, ...drained]), STOP_GRACE_MS, () => []);
  }

  /** Stops what still runs, and gives its jobs back. */
  async function leave(current: Shift, { id, presence }: Registered, duties: Pool): Promise<void> {
    const stopped = current.running.size();
    current.abort("stopping");
    // what is known of calls is written down while their jobs are still ours
    if (current.running.isCalling()) await inTime(current.drained(), STOP_GRACE_MS, () => {});
    // what cannot be given back in time is found by others: the session ends, and its lock with it
    const given = endWorker(duties, id, "stopped").catch((error: unknown) => {
      options.tell("warn", "leases could not be given back", { worker: id, error: describeFault(error) });
      return 0;
    });
    await inTime(given, STOP_GRACE_MS, () => 0);
    await presence.close().catch(() => {});
    options.tell("info", "worker stopped", { worker: id, handlers_stopped: stopped });
  }

  async function liveOut(first: Registered, pools: Pools): Promise<void> {
    try {
      await work(first, pools);
    } catch (error) {
      options.tell("error", "the worker failed", { error: describeFault(error) });
    } finally {
      await closePools(pools);
    }
  }

  return {
    wake,
    running: () => shift?.running.size() ?? 0,
    id: () => shift?.worker ?? null,
    offer: () => (stopping.signal.aborted ? undefined : shift?.offer()),
    async start() {
      const duties = openPool(options.url, {
        max: DUTY_CONNECTIONS,
        name: "ukemi worker",
        queryTimeoutMs: DUTY_TIMEOUT_MS,
      });
      const handlerPool = openPool(options.url, {
        max: options.handlerConnectionsMax,
        name: "ukemi handler",
        queryTimeoutMs: 0,
        pipeline: true,
      });
      const carriesOut = [...options.handlers.values()].some(({ target }) => target.kind === "effect");
      const effectPool = carriesOut
        ? openPool(options.url, {
            max: EFFECT_CONNECTIONS,
            name: "ukemi effects",
            queryTimeoutMs: DUTY_TIMEOUT_MS,
          })
        : undefined;
      const pools = { duties, handlerPool, effectPool };
      let first: Registered | undefined;
      try {
        first = await registerAnew({ ...registration, duties }, undefined);
      } finally {
        if (!first) await closePools(pools);
      }
      if (!first) return;
      life = liveOut(first, pools);
    },
    async stop() {
      stopping.abort();
      await life;
    },
  };
}

async function closePools({ duties, handlerPool, effectPool }: Pools): Promise<void> {
  await Promise.all([closePool(duties), closePool(handlerPool), effectPool && closePool(effectPool)]);
}

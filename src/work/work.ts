// The working half of a Ukemi: a worker for the handlers of this process, and the way to ask for work.
import type { Kinds } from "../effects/effects.ts";
import { UkemiError } from "../errors.ts";
import type { Alert } from "../observe/alerts.ts";
import type { Logger } from "../observe/log.ts";
import type { Metrics } from "../observe/metrics.ts";
import type { Settings } from "../options.ts";
import { promoteKeys, type JobKey } from "../storage/due.ts";
import { enqueueTask, type SqlClient } from "../storage/enqueue.ts";
import type { NewEvent, StoredBatch, StoredEvent } from "../storage/events.ts";
import { describeFault } from "../storage/faults.ts";
import type { StoreKeeper } from "../storage/keeper.ts";
import { openPool, transaction } from "../storage/postgres.ts";
import { notifyWorkers } from "../storage/presence.ts";
import { countWorkers } from "../storage/workers.ts";
import type { Offer } from "./offer.ts";
import { createInlineStore } from "./inline.ts";
import { createNotifier } from "./notifier.ts";
import { readTask, type Enqueued, type EnqueueOptions } from "./task.ts";
import { registerHandlers, type Registry } from "./registry.ts";
import { createReports } from "./reports.ts";
import { createWorker, type Worker } from "./worker.ts";

export interface WorkOptions {
  readonly settings: Settings;
  readonly queues: Readonly<Record<string, { readonly concurrency?: number }>>;
  readonly registry: Registry;
  /** The effects that handlers can intend. */
  readonly kinds: Kinds;
  readonly keeper: StoreKeeper;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly alert: (alert: Alert) => void;
}

export interface Work {
  /** Makes the handlers known to every receiver, so that their jobs are made also while nobody works. */
  register(): Promise<void>;
  /** Registers the handlers and starts the worker. */
  start(): Promise<void>;
  /** Stores the event through its inline handlers; undefined where it has none. */
  storeInline(event: NewEvent): Promise<StoredEvent> | undefined;
  /** Stops the worker; events can still be received. */
  stopWorker(): Promise<void>;
  stop(): Promise<void>;
  enqueue(tx: SqlClient | null, task: string, payload: unknown, options?: EnqueueOptions): Promise<Enqueued>;
  offer(): Offer | undefined;
  /** Events were stored: whoever can work on them should know. */
  stored(batch: Pick<StoredBatch, "ready" | "waiting" | "revived">): void;
  running(): number;
}

export function createWork(options: WorkOptions): Work {
  const { settings, registry, keeper, logger } = options;
  const reports = createReports(options);
  let worker: Worker | undefined;
  let starting: Promise<void> | undefined;

  const notifier = createNotifier({
    async send(queues) {
      const { duties } = await keeper.open();
      await notifyWorkers(duties, queues);
    },
    others: async () => countWorkers((await keeper.open()).duties, worker ? worker.id() : null),
    onFault: (error) =>
      logger.debug({ error: describeFault(error) }, "workers could not be told of new work"),
  });

  function onReady(queues: Iterable<string>): void {
    const list = [...queues];
    worker?.wake(list);
    notifier.tell(list);
  }

  /** Best effort: a process that dies here leaves it to the sweep of any worker. */
  async function promote(keys: readonly JobKey[]): Promise<void> {
    try {
      const { duties } = await keeper.open();
      if ((await promoteKeys(duties, keys)) > 0) onReady(new Set(keys.map(({ queue }) => queue)));
    } catch (error) {
      logger.debug({ error: describeFault(error) }, "keys could not be promoted yet");
    }
  }

  /** Writes nothing where nothing has changed. */
  async function register(): Promise<void> {
    if (registry.handlers.size === 0) return;
    const { duties } = await keeper.open();
    await transaction(duties, (client) => registerHandlers(client, registry.handlers.values()));
  }

  const inline = createInlineStore({
    handlers: registry.handlers,
    kinds: options.kinds,
    timeLimitMs: Math.min(settings.timeLimitMs, settings.commitDeadlineMs),
    onReport: reports.onReport,
    onStored: stored,
    openKeyring: async () => (await keeper.open()).keyring,
    async openPool() {
      await register();
      const { url } = await keeper.open();
      const max = settings.handlerConnectionsMax ?? settings.concurrency;
      return openPool(url, { max, name: "ukemi inline", queryTimeoutMs: 0, pipeline: true });
    },
  });

  function stored({ ready, waiting, revived }: Pick<StoredBatch, "ready" | "waiting" | "revived">): void {
    if (revived > 0) options.metrics.changed("revived", revived);
    if (ready.length > 0) onReady(ready);
    if (waiting.length > 0) void promote(waiting);
  }

  async function start(): Promise<void> {
    const { email, http, usage, areConfigured } = options.kinds;
    if (registry.handlers.size === 0 && !areConfigured) {
      throw new UkemiError(
        "invalid_option",
        "There are no handlers: add them with ukemi.on() or ukemi.task() before work().",
      );
    }
    await email?.ready();
    for (const performer of [email, http, usage]) if (performer) registry.addPerformer(performer);
    registry.close();
    await register();
    const { url, sessionUrl, pooled, oneTrip, keyring } = await keeper.open();
    const concurrency = concurrencyOf(options);
    worker = createWorker({
      ...settings,
      url,
      directUrl: sessionUrl,
      pooled,
      oneTrip,
      handlers: registry.handlers,
      kinds: options.kinds,
      keyring,
      concurrency,
      // a job without a connection would wait for one, and be given back
      handlerConnectionsMax: settings.handlerConnectionsMax ?? handlersAtOnce(options, concurrency),
      ...reports,
      onReady,
      tell: (level, message, fields) => logger[level](fields ?? {}, message),
    });
    await worker.start();
  }

  async function stopWorker(): Promise<void> {
    await starting?.catch(() => {});
    await worker?.stop();
  }

  return {
    start: () => (starting ??= start()),
    register,
    stopWorker,
    async stop() {
      await stopWorker();
      await notifier.stop();
      await inline.close();
      const { email, http, usage } = options.kinds;
      await Promise.all([email?.close(), http.close(), usage?.close()]);
    },
    async enqueue(tx, name, payload, enqueueOptions) {
      const task = readTask(registry.task(name), payload, enqueueOptions);
      const made = await enqueueTask(tx ?? (await keeper.open()).duties, task);
      if (tx === null && task.key !== null) await promote([{ queue: task.queue, key: task.key }]);
      return made;
    },
    offer: () => worker?.offer(),
    stored,
    storeInline(event) {
      const handlers = event.skip === null ? registry.inlineFor(event.source, event.type) : [];
      return handlers.length === 0 ? undefined : inline.store(event, handlers);
    },
    running: () => worker?.running() ?? 0,
  };
}

/** Every queue that a handler names, with its limit. */
function concurrencyOf({ settings, queues, registry }: WorkOptions): Map<string, number> {
  const limits = new Map<string, number>();
  for (const { queue, target } of registry.handlers.values()) {
    const own = target.kind === "effect" ? target.performer.concurrency : settings.concurrency;
    limits.set(queue, queues[queue]?.concurrency ?? own);
  }
  for (const [queue, { concurrency }] of Object.entries(queues)) {
    if (!limits.has(queue))
      throw new UkemiError("invalid_option", `No handler uses the queue ${JSON.stringify(queue)}.`);
    if (
      concurrency !== undefined &&
      !(Number.isInteger(concurrency) && concurrency >= 1 && concurrency <= 1000)
    ) {
      throw new UkemiError(
        "invalid_option",
        `queues.${queue}.concurrency must be a whole number from 1 to 1000.`,
      );
    }
  }
  return limits;
}

/** How many handlers may run at once that can use a transaction. */
function handlersAtOnce({ registry }: WorkOptions, concurrency: ReadonlyMap<string, number>): number {
  const queues = new Set(
    [...registry.handlers.values()].flatMap(({ target, queue }) => (target.kind === "effect" ? [] : queue)),
  );
  return Math.max(1, sumOf([...queues].map((queue) => concurrency.get(queue)!)));
}

function sumOf(numbers: Iterable<number>): number {
  return [...numbers].reduce((sum, number) => sum + number, 0);
}

// The working half of a Ukemi: a worker for the handlers of this process, and the way to ask for work.
import { UkemiError } from "../errors.ts";
import type { Alert } from "../observe/alerts.ts";
import { logTry, type Logger } from "../observe/log.ts";
import type { Metrics } from "../observe/metrics.ts";
import type { Settings } from "../options.ts";
import { promoteKeys, type JobKey } from "../storage/due.ts";
import { enqueueTask, type SqlClient } from "../storage/enqueue.ts";
import type { StoredBatch } from "../storage/events.ts";
import { describeFault } from "../storage/faults.ts";
import type { StoreKeeper } from "../storage/keeper.ts";
import { transaction } from "../storage/postgres.ts";
import { notifyWorkers } from "../storage/presence.ts";
import { countWorkers } from "../storage/workers.ts";
import type { Report } from "./execute.ts";
import type { Offer } from "./offer.ts";
import { createNotifier } from "./notifier.ts";
import { readTask, type Enqueued, type EnqueueOptions } from "./task.ts";
import { registerHandlers, type Registry } from "./registry.ts";
import { createWorker, type Worker } from "./worker.ts";

export interface WorkOptions {
  readonly settings: Settings;
  readonly queues: Readonly<Record<string, { readonly concurrency?: number }>>;
  readonly registry: Registry;
  readonly keeper: StoreKeeper;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly alert: (alert: Alert) => void;
}

export interface Work {
  /** Registers the handlers and starts the worker. */
  start(): Promise<void>;
  stop(): Promise<void>;
  enqueue(tx: SqlClient | null, task: string, payload: unknown, options?: EnqueueOptions): Promise<Enqueued>;
  offer(): Offer | undefined;
  /** Events were stored: whoever can work on them should know. */
  stored(batch: Pick<StoredBatch, "ready" | "waiting">): void;
  running(): number;
}

export function createWork(options: WorkOptions): Work {
  const { settings, registry, keeper, logger, metrics, alert } = options;
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

  function onReport(report: Report): void {
    metrics.tried(report);
    logTry(logger, report);
    if (report.outcome !== "dead") return;
    const { job, death, error } = report;
    alert({
      kind: "dead_letter",
      job: job.id,
      handler: job.handler,
      queue: job.queue,
      eventId: job.event?.eventId ?? null,
      tenant: job.tenant,
      death: death ?? "exhausted",
      errorClass: error?.class ?? "unknown",
      message: error?.message ?? "",
    });
  }

  async function start(): Promise<void> {
    if (registry.handlers.size === 0) {
      throw new UkemiError(
        "invalid_option",
        "There are no handlers: add them with ukemi.on() or ukemi.task() before work().",
      );
    }
    registry.close();
    const { duties, url, sessionUrl } = await keeper.open();
    await transaction(duties, (client) => registerHandlers(client, registry.handlers.values()));
    worker = createWorker({
      ...settings,
      url,
      directUrl: sessionUrl,
      handlers: registry.handlers,
      concurrency: concurrencyOf(options),
      onReport,
      onReady,
      onRescue(rescued) {
        metrics.rescued(rescued);
        logger.warn(
          {
            job: rescued.id,
            handler: rescued.handler,
            lost_worker: rescued.worker,
            recoveries: rescued.recoveries,
          },
          "a job was taken over from a worker that is gone",
        );
        if (rescued.death === null) return;
        alert({
          kind: "dead_letter",
          job: rescued.id,
          handler: rescued.handler,
          queue: rescued.queue,
          eventId: rescued.event_id,
          tenant: rescued.tenant,
          death: rescued.death,
          errorClass: "WorkerLost",
          message: "the process that ran it died each time",
        });
      },
      tell: (level, message, fields) => logger[level](fields ?? {}, message),
    });
    await worker.start();
  }

  return {
    start: () => (starting ??= start()),
    async stop() {
      await starting?.catch(() => {});
      await worker?.stop();
      await notifier.stop();
    },
    async enqueue(tx, name, payload, enqueueOptions) {
      const task = readTask(registry.task(name), payload, enqueueOptions);
      const made = await enqueueTask(tx ?? (await keeper.open()).duties, task);
      if (tx === null && task.key !== null) await promote([{ queue: task.queue, key: task.key }]);
      return made;
    },
    offer: () => worker?.offer(),
    stored({ ready, waiting }) {
      if (ready.length > 0) onReady(ready);
      if (waiting.length > 0) void promote(waiting);
    },
    running: () => worker?.running() ?? 0,
  };
}

/** Every queue that a handler names, with its limit. */
function concurrencyOf({ settings, queues, registry }: WorkOptions): Map<string, number> {
  const limits = new Map<string, number>();
  for (const { queue } of registry.handlers.values()) {
    limits.set(queue, queues[queue]?.concurrency ?? settings.concurrency);
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

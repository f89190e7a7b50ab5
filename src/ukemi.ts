// Wires the rooms together: a store, the sources, the inbox, and what is observed of them.
import type { IncomingMessage } from "node:http";
import { createDatabaseClock, sleep } from "./clock.ts";
import { UkemiError } from "./errors.ts";
import { createGroupCommit, type GroupCommit } from "./inbox/group-commit.ts";
import { createFetchReceiver, type FetchReceiverOptions } from "./inbox/fetch.ts";
import { createAddressOf } from "./inbox/address.ts";
import type { Answer } from "./inbox/answer.ts";
import { createRefusalLimiter } from "./inbox/limiter.ts";
import { createNodeReceiver, type NodeReceiver, type NodeReceiverOptions } from "./inbox/node.ts";
import { createQuarantine } from "./inbox/quarantine.ts";
import type { Delivery } from "./inbox/delivery.ts";
import { createReceive, type OpenSource } from "./inbox/receive.ts";
import { createLogger, logReceipt, type Logger } from "./observe/log.ts";
import { createMetrics, type Metrics } from "./observe/metrics.ts";
import { DEFAULTS, type Settings } from "./options.ts";
import { createAddressList } from "./sources/addresses.ts";
import type { Source } from "./sources/source.ts";
import { storeEvents } from "./storage/events.ts";
import { describeFault } from "./storage/faults.ts";
import { MONTHS_AHEAD, openStore, type Store } from "./storage/open.ts";
import { connect } from "./storage/postgres.ts";
import { keepRejections } from "./storage/rejections.ts";
import { makeBodyMonths, requireWritable, sampleClock } from "./storage/upkeep.ts";
import { VERSION } from "./version.ts";

/** Options of createUkemi: any setting, and who may send. */
export interface UkemiOptions extends Partial<Settings> {
  /** The sources by name; the name is the last part of the webhook's URL. */
  readonly sources: Readonly<Record<string, Source>>;
  /** @default JSON lines on standard output */
  readonly logger?: Logger;
}

/** A running Ukemi. */
export interface Ukemi {
  readonly settings: Settings;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Opens the store and checks it. Called by itself when the first delivery comes. */
  start(): Promise<void>;
  /** Answers what is under way, then lets go of the store. */
  stop(): Promise<void>;
  /** Receives one delivery: the door that every server face uses. */
  receive(delivery: Delivery): Promise<Answer>;
  /** A fetch-style handler for one source, to be mounted in any framework. */
  receiver(source: string, options?: FetchReceiverOptions): (request: Request) => Promise<Response>;
  /** The same for frameworks on node:http (Express, Fastify): `(request, response) => Promise<void>`. */
  nodeReceiver<R extends IncomingMessage = IncomingMessage>(
    source: string,
    options?: NodeReceiverOptions<R>,
  ): NodeReceiver<R>;
  /** The open store; throws before start. */
  store(): Store;
  /** Throws where an event could not be stored now. */
  check(): Promise<void>;
}

const UPKEEP_MS = 15_000;
const STOP_GRACE_MS = 1000;
const MONTHS_EVERY_MS = 6 * 60 * 60_000;

/** Makes a Ukemi. Nothing is opened until start() or the first delivery. */
export function createUkemi(options: UkemiOptions): Ukemi {
  const { sources, logger: givenLogger, ...given } = options;
  const settings: Settings = { ...DEFAULTS, ...withoutUndefined(given) };
  const logger = givenLogger ?? createLogger(settings.logLevel);
  const clock = createDatabaseClock();
  const metrics = createMetrics({ version: VERSION, waiting: () => inbox.waiting(), skewMs: clock.skewMs });
  const ending = new AbortController();
  let store: Store | undefined;
  let starting: Promise<void> | undefined;
  let upkeep: Promise<void> | undefined;

  const openStoreOnce = (): Store => {
    if (!store) throw new UkemiError("store_unavailable", "The store is not open: call start() first.");
    return store;
  };
  const inbox: GroupCommit = createGroupCommit({
    ...settings,
    deadlineMs: settings.commitDeadlineMs,
    batchBytesMax: 8 * 1024 * 1024,
    async connect() {
      const connection = await connect(openStoreOnce().url, {
        connectTimeoutMs: Math.min(2000, settings.commitDeadlineMs),
        statementTimeoutMs: settings.commitDeadlineMs,
      });
      return {
        store: (events) => storeEvents(connection, events),
        onLost: connection.onLost,
        destroy: connection.destroy,
        end: connection.end,
      };
    },
    onCommit: clock.sample,
    onFault(message, fault) {
      metrics.databaseFault(fault);
      // a lock is tried for again many times a second
      logger[fault === "contention" ? "debug" : "warn"](
        { fault, error: message },
        "a commit of received events failed",
      );
    },
  });
  const quarantine = createQuarantine({
    write: (rejections) => keepRejections(openStoreOnce().pool, rejections, settings.rejectionRowsMax),
    perInterval: 50,
    intervalMs: 1000,
    onFault: (error) => logger.warn({ error: describeFault(error) }, "rejections could not be kept"),
    onDropped: metrics.rejectionsDropped,
  });
  const receive = createReceive({
    sources: openSources(sources),
    store: inbox.store,
    now: clock.now,
    limiter: createRefusalLimiter(settings.refusedPerMinute),
    quarantine,
    bodyBytesMax: settings.bodyBytesMax,
    onReceipt(receipt) {
      metrics.receipt(receipt);
      logReceipt(logger, receipt);
    },
  });

  async function open(): Promise<void> {
    store = await openStore(settings, (message, fields) => logger.info(fields ?? {}, message));
    await sampleClock(store.pool, clock);
    upkeep = keepUp(store, ending.signal);
  }

  /** Regular duties: the database's time, and the months of bodies. A fault only means that the next round tries again. */
  async function keepUp({ pool }: Store, signal: AbortSignal): Promise<void> {
    for (let round = 1; !signal.aborted; round++) {
      await sleep(UPKEEP_MS, signal);
      if (signal.aborted) return;
      try {
        await sampleClock(pool, clock);
        if ((round * UPKEEP_MS) % MONTHS_EVERY_MS === 0) await makeBodyMonths(pool, MONTHS_AHEAD);
      } catch (error) {
        logger.warn({ error: describeFault(error) }, "upkeep failed");
      }
    }
  }

  function start(): Promise<void> {
    starting ??= open().catch((error: unknown) => {
      starting = undefined; // the next delivery tries again
      throw error;
    });
    return starting;
  }

  return {
    settings,
    logger,
    metrics,
    start,
    receive,
    store: openStoreOnce,
    check: () => requireWritable(openStoreOnce().pool),
    receiver(source, receiverOptions) {
      requireSource(sources, source);
      return createFetchReceiver({ source, receive, start }, receiverOptions);
    },
    nodeReceiver(source, receiverOptions) {
      requireSource(sources, source);
      return createNodeReceiver({
        receive,
        start,
        source: () => source,
        address: receiverOptions?.address ?? peerAddress(settings.trustedProxies),
        onFault(error) {
          const fault = error instanceof UkemiError ? error.message : describeFault(error);
          logger.error({ source, fault }, "a fault while receiving");
        },
      });
    },
    async stop() {
      await starting?.catch(() => {});
      ending.abort();
      await inbox.stop();
      const finishing = Promise.all([quarantine.stop(), upkeep]);
      await Promise.race([finishing, sleep(STOP_GRACE_MS)]);
      await store?.close(); // what still waits for a silent database is cut
      await finishing;
      store = undefined;
    },
  };
}

function requireSource(sources: Readonly<Record<string, Source>>, name: string): void {
  if (Object.hasOwn(sources, name)) return;
  throw new UkemiError("unknown_source", `There is no source named ${JSON.stringify(name)}.`);
}

function peerAddress(trustedProxies: readonly string[]): (request: IncomingMessage) => string | undefined {
  const addressOf = createAddressOf(trustedProxies);
  return (request) => addressOf(request.socket.remoteAddress, request.headers);
}

function openSources(sources: Readonly<Record<string, Source>>): Map<string, OpenSource> {
  const open = new Map<string, OpenSource>();
  for (const [name, source] of Object.entries(sources)) {
    if (!/^[a-z0-9][a-z0-9_-]{0,63}$/.test(name)) {
      throw new UkemiError(
        "invalid_option",
        `The source name ${JSON.stringify(name)} must be 1 to 64 lower-case letters, digits, "-" or "_".`,
      );
    }
    const list = source.allowedAddresses;
    open.set(name, { source, addresses: list.length === 0 ? undefined : createAddressList(list) });
  }
  return open;
}

function withoutUndefined<T extends object>(options: T): Partial<T> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Partial<T>;
}

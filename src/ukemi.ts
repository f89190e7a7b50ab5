// Wires the rooms together: a store, the sources, the inbox, and what is observed of them.
import type { IncomingMessage } from "node:http";
import { createDatabaseClock, inTime } from "./clock.ts";
import { createCallNow } from "./effects/call-now.ts";
import { createCallerEffects, type CallerEffects } from "./effects/caller.ts";
import { createKinds, knownDestinations, type EmailOptions } from "./effects/kinds.ts";
import { FEEDBACK_PATTERN, handleFeedback } from "./effects/email/feedback.ts";
import type { HttpOptions } from "./effects/http/performer.ts";
import { UkemiError } from "./errors.ts";
import { createGroupCommit, type GroupCommit } from "./inbox/group-commit.ts";
import { createByteBudget } from "./inbox/budget.ts";
import { createFetchReceiver, type FetchReceiverOptions } from "./inbox/fetch.ts";
import { createAddressOf } from "./inbox/address.ts";
import type { Answer } from "./inbox/answer.ts";
import { createRefusalLimiter } from "./inbox/limiter.ts";
import { createNodeReceiver, type NodeReceiver, type NodeReceiverOptions } from "./inbox/node.ts";
import { createQuarantine } from "./inbox/quarantine.ts";
import type { Delivery } from "./inbox/delivery.ts";
import { createReceive, type OpenSource } from "./inbox/receive.ts";
import { createAlerts, type Alert } from "./observe/alerts.ts";
import { createBacklog, type Backlog } from "./observe/backlog.ts";
import { createLogger, logReceipt, type Logger } from "./observe/log.ts";
import { createMetrics, type Metrics } from "./observe/metrics.ts";
import { countActs } from "./operate/counted.ts";
import { createJanitor } from "./operate/janitor.ts";
import { createOperate, type Operate } from "./operate/operate.ts";
import { checkSettings, DEFAULTS, OPTION_NAMES, type Settings } from "./options.ts";
import { requireParts } from "./parts.ts";
import { createAddressList } from "./sources/addresses.ts";
import type { Source } from "./sources/source.ts";
import type { SqlClient } from "./storage/enqueue.ts";
import { storeEvents, type NewEvent, type StoredBatch } from "./storage/events.ts";
import { readLedger, type KnownDestination } from "./storage/effect-backlog.ts";
import { describeFault } from "./storage/faults.ts";
import type { Keyring } from "./storage/keyring.ts";
import { createStoreKeeper, type StoreKeeper } from "./storage/keeper.ts";
import type { Tell } from "./storage/news.ts";
import type { Store } from "./storage/open.ts";
import type { HandlerTransaction } from "./storage/handler-statements.ts";
import { keepRejections, withoutContent } from "./storage/rejections.ts";
import { connect, readWithin, type Connection, type Queryable } from "./storage/postgres.ts";
import { countOpen } from "./storage/operations.ts";
import { listQueues } from "./storage/queues.ts";
import { VERSION } from "./version.ts";
import type { EventHandler, TaskHandler } from "./work/context.ts";
import type { EventHandlerOptions, HandlerOptions } from "./work/handler.ts";
import { keepError } from "./work/kept-error.ts";
import { isTerminal } from "./work/outcome.ts";
import { createRegistry, type Registry } from "./work/registry.ts";
import type { Enqueued, EnqueueOptions } from "./work/task.ts";
import { createWork, type Work } from "./work/work.ts";

/** The sources of an application by name. */
export type Sources = Readonly<Record<string, Source>>;

/** The events of a source. */
type EventsOf<Given> = Given extends Source<infer E> ? E : unknown;

/** How a queue is worked on in this process. */
export interface QueueOptions {
  /** How many of its jobs may run at once. */
  readonly concurrency?: number;
}

/** Options of createUkemi: any setting, and who may send. */
export interface UkemiOptions<S extends Sources = Sources> extends Partial<Omit<Settings, "stripeSecrets">> {
  /** The sources by name; the name is the last part of the webhook's URL. */
  readonly sources: S;
  /** Queues that need something else than the defaults. */
  readonly queues?: Readonly<Record<string, QueueOptions>>;
  /** How mail is sent, where the settings do not say enough. */
  readonly email?: EmailOptions;
  /** How HTTP calls of effects are made. */
  readonly http?: HttpOptions;
  /** Is told of what a person should know at once; it is logged in any case. What it throws is logged too. */
  readonly onAlert?: (alert: Alert) => unknown;
  /** @default JSON lines on standard output */
  readonly logger?: Logger;
}

/** A worker at work. */
export interface Working {
  /** Takes no more jobs, waits for those under way, and gives back what is left when the time is up. */
  stop(): Promise<void>;
}

/** A running Ukemi. */
export interface Ukemi<S extends Sources = Sources> {
  readonly settings: Settings;
  /** The names of the sources. */
  readonly sources: readonly string[];
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Runs the handler for every event of this type; in a pattern `*` stands for anything. Call before work(). */
  on<N extends keyof S & string, const T extends string, Tx = HandlerTransaction>(
    source: N,
    type: T,
    handler: EventHandler<EventsOf<S[N]>, T, Tx>,
    options?: EventHandlerOptions<Tx>,
  ): void;
  /** Names a piece of work that can be asked for by enqueue. Call before work(). */
  task<P = unknown, Tx = HandlerTransaction>(
    name: string,
    handler: TaskHandler<P, Tx>,
    options?: HandlerOptions<Tx>,
  ): void;
  /**
   * Asks for a task in the caller's transaction: it runs if and only if that commits. `null` is a transaction of its own.
   */
  enqueue(tx: SqlClient | null, task: string, payload: unknown, options?: EnqueueOptions): Promise<Enqueued>;
  /** Acts on the outside world, intended outside of handlers. */
  readonly effects: CallerEffects;
  /** What an operator does, and looks at. */
  readonly operate: Operate;
  /** Registers the handlers and works on their jobs, until it is stopped. */
  work(): Promise<Working>;
  /**
   * Opens the store and checks it, or throws an error that says what to do, and makes the handlers known, so that their jobs
   * are made also while nobody works. The first delivery opens the store too.
   */
  start(): Promise<void>;
  /** Answers what is under way, then lets go of the store. Safe to call more than once; there is no way back. */
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

const BATCH_BYTES_MAX = 8 * 1024 * 1024;
const CONNECT_TIMEOUT_MS_MAX = 2000;
const QUARANTINE = { perInterval: 50, intervalMs: 1000 };
const STOP_GRACE_MS = 1000;
const BACKLOG_TIMEOUT_MS = 5000;

/** Makes a Ukemi. Nothing is opened until start() or the first delivery. */
export function createUkemi<const S extends Sources>(options: UkemiOptions<S>): Ukemi<S> {
  requireParts(options);
  const { sources, queues = {}, email, http, onAlert, logger: givenLogger, ...given } = options;
  const settings = completeSettings(given);
  const kinds = createKinds(settings, { email, http, openStore: () => keeper.open() });
  const logger = givenLogger ?? createLogger(settings.logLevel);
  const clock = createDatabaseClock();
  const tell: Tell = (level, message, fields) => logger[level](fields ?? {}, message);
  const keeper = createStoreKeeper(settings, clock, tell);
  const metrics = createMetrics({
    version: VERSION,
    waiting: () => inbox.waiting(),
    running: () => work.running(),
    skewMs: clock.skewMs,
    backlog: backlogOf(keeper, knownDestinations(kinds)),
  });
  const registry = registryFor(sources);
  const alert = createAlerts(logger, onAlert);
  const work: Work = createWork({ settings, queues, registry, kinds, keeper, logger, metrics, alert });

  const inbox: GroupCommit = createGroupCommit({
    ...settings,
    deadlineMs: settings.commitDeadlineMs,
    batchBytesMax: BATCH_BYTES_MAX,
    async connect() {
      const { url, keyring } = await keeper.open();
      const connection = await connect(url, {
        connectTimeoutMs: Math.min(CONNECT_TIMEOUT_MS_MAX, settings.commitDeadlineMs),
        statementTimeoutMs: settings.commitDeadlineMs,
      });
      return { ...connection, store: (events) => storeForWork(connection, events, work, keyring) };
    },
    onCommit: clock.sample,
    onFault({ fault, doing, error, failures }) {
      metrics.databaseFault(fault);
      // the first of a row is news; a lock, and a database that stays away, are tried for again many times
      const level = fault === "contention" || failures > 1 ? "debug" : "warn";
      logger[level]({ fault, error: describeFault(error), waiting: inbox.waiting() }, `${doing} failed`);
    },
    onRecovery: (afterMs) => logger.info({ after_ms: Math.round(afterMs) }, "the database is back"),
  });
  const quarantine = createQuarantine({
    ...QUARANTINE,
    async write(rejections) {
      const { duties, keyring } = await keeper.open();
      const kept = keyring.seals ? rejections.map(withoutContent) : rejections;
      await keepRejections(duties, kept, settings.rejectionRowsMax);
    },
    onFault: (error) => logger.warn({ error: describeFault(error) }, "rejections could not be kept"),
    onDropped: metrics.rejectionsDropped,
  });
  const receive = createReceive({
    sources: openSources(sources),
    store: (event) => work.storeInline(event) ?? inbox.store(event),
    now: clock.now,
    limiter: createRefusalLimiter(settings.refusedPerMinute),
    budget: createByteBudget(settings.bodiesBytesMax),
    quarantine,
    bodyBytesMax: settings.bodyBytesMax,
    onReceipt(receipt) {
      metrics.receipt(receipt);
      logReceipt(logger, receipt);
    },
  });

  const janitor = createJanitor({
    open: async () => (await keeper.open()).rounds,
    limits: settings,
    alert,
    metrics,
    tell,
  });

  const openPool = async () => (await keeper.open()).pool;
  const callNow = createCallNow({ open: keeper.open, isTerminal, keep: keepError, onCalled: metrics.called });

  let stopping: Promise<void> | undefined;
  async function stopAll(): Promise<void> {
    const rounds = janitor.stop();
    await Promise.all([inbox.stop(), work.stop()]);
    const rest: Promise<unknown> = Promise.all([quarantine.stop(), rounds]);
    await inTime(rest, STOP_GRACE_MS, () => {}); // a silent database must not hold up the stop: close() cuts it
    await keeper.close();
    await inTime(rest, STOP_GRACE_MS, () => {}); // who waits for a connection of a closed pool is never told
  }

  return {
    settings,
    logger,
    metrics,
    receive,
    on(source, type, handler, handlerOptions) {
      requireSource(sources, source);
      registry.addEventHandler(source, type, handler, handlerOptions);
    },
    task: (name, handler, handlerOptions) => registry.addTask(name, handler, handlerOptions),
    enqueue: work.enqueue,
    effects: createCallerEffects(kinds, openPool, callNow),
    operate: countActs(
      createOperate({
        open: openPool,
        bodyKeys: settings.bodyKeys,
        onOperation: janitor.wake,
        limits: settings,
      }),
      metrics.changed,
    ),
    async work() {
      await work.start();
      janitor.start();
      return { stop: work.stopWorker };
    },
    sources: Object.keys(sources),
    async start() {
      await keeper.open();
      await work.register();
      janitor.start();
    },
    store: keeper.current,
    check: () => keeper.check(settings.commitDeadlineMs),
    receiver(source, receiverOptions) {
      requireSource(sources, source);
      return createFetchReceiver({ source, receive }, receiverOptions);
    },
    nodeReceiver(source, receiverOptions) {
      requireSource(sources, source);
      return createNodeReceiver({
        receive,
        source: () => source,
        address: receiverOptions?.address ?? peerAddress(settings.trustedProxies),
        onFault: (error) => logger.error({ source, error: describeFault(error) }, "a fault while receiving"),
      });
    },
    stop: () => (stopping ??= stopAll()),
  };
}

/** Stores events; where a worker of this process has free slots, their jobs are its own from the first moment. */
async function storeForWork(
  connection: Connection,
  events: readonly NewEvent[],
  work: Work,
  keyring: Keyring,
): Promise<StoredBatch> {
  const offer = work.offer();
  try {
    const stored = await storeEvents(connection, events, offer, keyring);
    offer?.accept(stored.claimed);
    work.stored(stored);
    return stored;
  } catch (error) {
    offer?.withdraw();
    throw error;
  }
}

/** What waits in the database, read now and then. */
function backlogOf(keeper: StoreKeeper, destinations: readonly KnownDestination[]) {
  const read = async (client: Queryable): Promise<Backlog> => ({
    queues: await listQueues(client),
    operations: await countOpen(client),
    ledger: await readLedger(client, destinations),
  });
  return createBacklog(async () => readWithin(keeper.current().pool, BACKLOG_TIMEOUT_MS, read));
}

/** Fills in the defaults, and refuses what could not work. */
function completeSettings(given: Partial<Settings>): Settings {
  const settings = { ...DEFAULTS, ...withoutUnset(given) };
  checkSettings(settings);
  return settings;
}

/** A registry with our own handlers: by SNS, Amazon SES tells what became of mails. */
function registryFor(sources: Readonly<Record<string, Source>>): Registry {
  const registry = createRegistry();
  for (const [source, { kind }] of Object.entries(sources)) {
    const name = `${source}/mail feedback`;
    if (kind === "sns") registry.addEventHandler(source, FEEDBACK_PATTERN, handleFeedback, { name });
  }
  return registry;
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
    const list = source.allowedAddresses;
    open.set(name, { source, addresses: list.length === 0 ? undefined : createAddressList(list) });
  }
  return open;
}

/** A variable that is set but blank means the same as none: `database: process.env.DATABASE_URL`. */
function withoutUnset(options: Partial<Settings>): Partial<Settings> {
  const given = OPTION_NAMES.filter((name) => options[name] !== undefined && options[name] !== "");
  return Object.fromEntries(given.map((name) => [name, options[name]]));
}

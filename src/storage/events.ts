// Storing what was received: one durable statement for many events, with the jobs they cause.
import { askBound, type Texts } from "./bound.ts";
import type { Job, JobEvent } from "./claim.ts";
import type { JobKey } from "./due.ts";
import { insertFor, SEPARATOR } from "./events-insert.ts";
import type { Keyring, StoredContent } from "./keyring.ts";
import { all, BOOL, BYTEA, each, INT, one, TEXT, TIMESTAMPTZ, UUID, type Parameter } from "./message.ts";
import type { Connection } from "./postgres.ts";
import { reviveJobs } from "./revive.ts";

/** An event that was verified and is to be stored. */
export interface NewEvent {
  readonly id: string;
  readonly source: string;
  readonly account: string;
  readonly livemode: boolean;
  readonly eventId: string;
  readonly type: string;
  readonly tenant: string | null;
  readonly occurredAt: Date | null;
  readonly secretFingerprint: string | null;
  readonly requestId: string;
  readonly traceparent: string | null;
  readonly body: Buffer;
  readonly bodySha256: Buffer;
  /** JSON text of the headers worth keeping. */
  readonly headers: string;
  readonly refs: readonly { readonly kind: string; readonly id: string }[];
  /** Why it must not be worked on; null for ordinary events. */
  readonly skip: string | null;
}

/** What became of one event of a batch. */
export interface StoredEvent {
  /** Our id of the event: the given one, or that of the event stored earlier. */
  readonly id: string;
  readonly duplicate: boolean;
}

/** The result of storing a batch. */
export interface StoredBatch {
  /** In the order of the input. */
  readonly events: readonly StoredEvent[];
  /** The database's time in milliseconds since 1970. */
  readonly databaseMs: number;
  /** Jobs that were inserted as claimed by the worker that offered slots. */
  readonly claimed: readonly Job[];
  /** Queues in which jobs became ready for whoever comes first. */
  readonly ready: readonly string[];
  /** Keys whose jobs wait to be promoted. */
  readonly waiting: readonly JobKey[];
  /** How many dead jobs these deliveries brought back. */
  readonly revived: number;
}

/** Slots of a worker in this process: jobs may be inserted as claimed by it. */
export interface SlotOffer {
  readonly worker: string;
  /** Made before the first try: where the commit is unknown, what was claimed is given back by it. */
  readonly token: string;
  readonly leaseMs: number;
  /** The queues with free slots. */
  readonly queues: readonly string[];
  /** The handlers of these queues: none of their jobs may be overtaken. */
  readonly handlers: readonly string[];
  /** For each event, in the order of their arrival, the handlers whose slot it may take; those with a key wait for it. */
  takers(events: readonly NewEvent[]): readonly (readonly string[])[];
  /** True where the jobs must be claimed whatever waits before them: their handlers run inside the transaction. */
  readonly always?: boolean;
  /** How long another transaction that stores the same event is waited for. */
  readonly lockTimeoutMs?: number;
}

/** How long an insert waits for another transaction; longer is contention, and is tried again apart from the others. */
const LOCK_TIMEOUT_MS = 50;

/** A job that was inserted as claimed, as it is told. */
type ClaimedRow = [
  id: string,
  queue: string,
  handler: string,
  event: string,
  tenant: string | null,
  maxAttempts: number,
];

interface StoredRow {
  readonly databaseMs: number;
  /** Null where all are new; else where they are stored, all of them, also those stored just now. */
  readonly found: readonly (readonly [place: number, id: string, hasDead: boolean])[] | null;
  /** Queues with jobs for whoever comes first; with a key they wait for it. */
  readonly open: readonly (readonly [queue: string, key: string | null, event: string])[] | null;
  readonly claimed: readonly ClaimedRow[] | null;
}

/**
 * Stores a batch in one statement, which is its own transaction unless one is open: when this returns, it is committed.
 * An id that was stored before (also by another process) comes back as a duplicate. The same event stored again
 * under the id it already has is not a duplicate: that is how an unknown commit is resolved. Without a keyring bodies are
 * stored as they came.
 */
export async function storeEvents(
  connection: Pick<Connection, "query" | "pooled"> & Partial<Pick<Connection, "submit">>,
  batch: readonly NewEvent[],
  offer?: SlotOffer,
  keyring?: Keyring,
): Promise<StoredBatch> {
  const identities = batch.map(identityOf);
  const unique = new Map<string, NewEvent>();
  for (const [index, event] of batch.entries()) {
    if (!unique.has(identities[index]!)) unique.set(identities[index]!, event);
  }
  const arrived = [...unique]
    .map(([identity, event], arrival) => ({ identity, event, arrival }))
    .toSorted((a, b) => (a.identity < b.identity ? -1 : 1));
  const events = arrived.map(({ event }) => event);
  // sealed in one go: the key is the same for all of them
  const contents = events.map((event): StoredContent =>
    keyring?.seals
      ? keyring.seal(event.id, event)
      : { body: event.body, headers: event.headers, keyId: null },
  );
  const lone = arrived.length === 1;
  const { name, text } = insertFor({ offered: offer !== undefined, lone });
  const row = readRow(
    await askBound(connection, {
      name: connection.pooled ? undefined : name,
      text,
      parameters: [
        ...columns(events, contents, lone ? only : each),
        (lone ? only : each)(INT, arrived, ({ arrival }) => arrival),
        one(TEXT, String(offer?.lockTimeoutMs ?? LOCK_TIMEOUT_MS)),
        one(TEXT, contents[0]?.keyId ?? null),
        ...(offer ? offerColumns(offer, arrived, lone ? only : each) : []),
      ],
    }),
  );
  const found = row.found && foundBefore(row.found, events);
  const revived = found && found.dead.length > 0 ? await reviveJobs(connection, found.dead) : [];
  const open = [...(row.open ?? []), ...revived.map(({ queue, key }) => [queue, key] as const)];
  const { databaseMs } = row;
  return {
    databaseMs,
    claimed: row.claimed
      ? toJobs({ claimed: row.claimed, open: row.open ?? [], databaseMs }, offer!, events)
      : [],
    waiting: open.flatMap(([queue, key]) => (key === null ? [] : { queue, key })),
    revived: revived.reduce((sum, { count }) => sum + count, 0),
    ready: [...new Set(open.flatMap(([queue, key]) => (key === null ? queue : [])))],
    events: batch.map((event, index) => {
      const identity = identities[index]!;
      const first = unique.get(identity)!;
      const id = found?.ids.get(first) ?? first.id;
      return { id, duplicate: id !== event.id };
    }),
  };
}

/** In the order of the statement's columns. */
function readRow([now, found, open, claimed]: Texts): StoredRow {
  return {
    databaseMs: Number(now),
    found: parsed(found) as StoredRow["found"],
    open: parsed(open) as StoredRow["open"],
    claimed: parsed(claimed) as StoredRow["claimed"],
  };
}

const parsed = (json: string | null | undefined): unknown =>
  typeof json === "string" ? JSON.parse(json) : null;

function offerColumns(
  offer: SlotOffer,
  arrived: readonly { readonly event: NewEvent; readonly arrival: number }[],
  column: Column,
): Parameter[] {
  const inTurn = arrived.toSorted((a, b) => a.arrival - b.arrival).map(({ event }) => event);
  const takers = offer.takers(inTurn).map((names) => (names.length === 0 ? null : names.join(SEPARATOR)));
  return [
    column(TEXT, arrived, ({ arrival }) => takers[arrival]!),
    all(TEXT, offer.queues),
    one(BOOL, offer.always ?? false),
    all(TEXT, offer.handlers),
    one(UUID, offer.worker),
    one(UUID, offer.token),
    one(INT, offer.leaseMs),
  ];
}

interface Made {
  readonly claimed: readonly ClaimedRow[];
  readonly open: NonNullable<StoredRow["open"]>;
  readonly databaseMs: number;
}

/** The jobs that were inserted as claimed. Each is told how many jobs its event has. */
function toJobs({ claimed, open, databaseMs }: Made, offer: SlotOffer, events: readonly NewEvent[]): Job[] {
  const siblings = new Map<string, number>();
  for (const event of [...claimed.map((one) => one[3]), ...open.map((one) => one[2])]) {
    siblings.set(event, (siblings.get(event) ?? 0) + 1);
  }
  const byId = new Map(events.map((event) => [event.id, event]));
  // in the order of their ids, which is that of their arrival
  return claimed
    .toSorted((a, b) => Number(a[0]) - Number(b[0]))
    .map((one) =>
      toJob(one, offer, { event: byId.get(one[3])!, siblings: siblings.get(one[3])!, databaseMs }),
    );
}

/** A job that this process holds from its first moment, with the event it is about, which is still in memory. */
function toJob(
  row: ClaimedRow,
  offer: SlotOffer,
  of: { readonly event: NewEvent; readonly siblings: number; readonly databaseMs: number },
): Job {
  const [id, queue, handler, , tenant, maxAttempts] = row;
  return {
    id,
    token: offer.token,
    queue,
    kind: "handler",
    handler,
    tenant,
    key: null, // whoever has a key waits for it
    maxAttempts,
    siblings: of.siblings,
    attempt: 0,
    recoveries: 0,
    waitedMs: 0,
    payload: null,
    event: jobEvent(of.event, of.databaseMs),
  };
}

function jobEvent(event: NewEvent, databaseMs: number): JobEvent {
  const { id, source, account, livemode, eventId, type, traceparent, body, headers } = event;
  return {
    id,
    source,
    account,
    livemode,
    eventId,
    type,
    traceparent,
    body,
    headers,
    receivedAt: new Date(databaseMs),
  };
}

/** The ids under which these events are stored, and those of them that a resend may bring back. */
function foundBefore(
  found: NonNullable<StoredRow["found"]>,
  events: readonly NewEvent[],
): { readonly ids: ReadonlyMap<NewEvent, string>; readonly dead: readonly string[] } {
  // retention may remove the earlier event under our eyes: then nothing is stored, and nobody is told so
  if (found.length < events.length) throw new Error("the event stored earlier has gone: try again");
  return {
    ids: new Map(found.map(([place, id]) => [events[place - 1]!, id])),
    dead: found.flatMap(([, id, hasDead]) => (hasDead ? id : [])),
  };
}

function identityOf(event: Pick<NewEvent, "source" | "account" | "livemode" | "eventId">): string {
  return `${event.source}\u0000${event.account}\u0000${event.livemode}\u0000${event.eventId}`;
}

/** A column of all events: an array, or the value of the only one. */
type Column = typeof each;
const only: Column = (kind, [item], read) => one(kind, read(item!));

function columns(
  events: readonly NewEvent[],
  contents: readonly StoredContent[],
  column: Column,
): Parameter[] {
  const texts = (read: (event: NewEvent) => string | null) => column(TEXT, events, read);
  return [
    column(UUID, events, (event) => event.id),
    texts((event) => event.source),
    texts((event) => event.account),
    column(BOOL, events, (event) => event.livemode),
    texts((event) => event.eventId),
    texts((event) => event.type),
    texts((event) => event.tenant),
    column(TIMESTAMPTZ, events, (event) => event.occurredAt),
    texts((event) => event.secretFingerprint),
    texts((event) => event.requestId),
    texts((event) => event.traceparent),
    column(BYTEA, events, (event) => event.bodySha256),
    column(INT, events, (event) => event.body.length),
    column(BYTEA, contents, (content) => content.body),
    column(TEXT, contents, (content) => content.headers),
    texts((event) => event.skip),
    texts(({ refs }) => (refs.length === 0 ? null : refs.map((ref) => ref.kind).join(SEPARATOR))),
    texts(({ refs }) => (refs.length === 0 ? null : refs.map((ref) => ref.id).join(SEPARATOR))),
  ];
}

// Stored events that nobody wanted, given to handlers that came later.
import { UkemiError } from "../errors.ts";
import { isUuid, uuidv7Floor } from "../storage/ids.ts";
import type { Pool } from "../storage/postgres.ts";
import {
  countUnrouted,
  hasHandler,
  previewRoute,
  routeBatch,
  type Routed,
  type RouteFilter,
  type RoutePreview,
  type Routing,
  type UnroutedType,
} from "../storage/route.ts";
import { BATCH_ROWS, letRun, type BatchOptions } from "./batches.ts";
import { inTransaction } from "./transaction.ts";
import type { Read } from "./read.ts";
import { readMandate, readText, wrong, type Mandate } from "./mandate.ts";

/** Which unrouted events, and for whom. */
export interface RouteRequest {
  /** Received at this time or later. */
  readonly since: Date;
  /** Received before this time. @default now */
  readonly until?: Date;
  readonly type?: string;
  /** Only for this handler. @default every handler that wants the event */
  readonly handler?: string;
}

/** What routing did. */
export interface RouteResult {
  readonly events: number;
  readonly jobs: number;
  /** True where it was stopped before the end. */
  readonly stopped: boolean;
}

/** What can be done with stored events. */
export interface StoredEvents {
  /** Which jobs routing would make. */
  previewRoute(request: RouteRequest): Promise<RoutePreview>;
  /** What is unrouted in this time, by type, whether a handler wants it or not. */
  unrouted(request: RouteRequest): Promise<readonly UnroutedType[]>;
  /** Makes the jobs that the receiver would have made, had the handlers been there. Those that exist are left alone. */
  route(request: RouteRequest, mandate: Mandate, options?: BatchOptions): Promise<RouteResult>;
  /** One batch of it, in one transaction; `next` of the batch before says where to go on. */
  routeBatch(request: RouteRequest, mandate: Mandate, after?: string): Promise<RoutedBatch>;
}

/** What one batch of routing did. */
export interface RoutedBatch {
  readonly events: number;
  readonly jobs: number;
  /** Where the next batch begins; absent after the last. */
  readonly next?: string;
}

const TEXT_MAX = 500;

/** Before every event. */
const FIRST = uuidv7Floor(0);

/** This machine's clock may be behind the database's: "now" must not leave out what has just been received. */
const AHEAD_MS = 86_400_000;

export function createStoredEvents(open: () => Promise<Pool>, read: Read): StoredEvents {
  function preview(filter: RouteFilter): Promise<RoutePreview> {
    return read(async (client) => {
      if (filter.handler !== undefined && !(await hasHandler(client, filter.handler))) {
        throw noHandler(filter.handler);
      }
      return previewRoute(client, filter);
    });
  }

  async function routeOne(request: RouteRequest, mandate: Mandate, after: string): Promise<RoutedBatch> {
    const routing: Routing = { ...readRequest(request), ...readMandate(mandate), after, most: BATCH_ROWS };
    const pool = await open();
    const { keys, next, ...batch }: Routed = await inTransaction(pool, (client) =>
      routeBatch(client, routing),
    );
    await letRun(pool, keys);
    return { ...batch, ...(next === undefined ? {} : { next }) };
  }

  return {
    previewRoute: async (request) => preview(readRequest(request)),
    unrouted: async (request) => {
      const filter = readRequest(request);
      return read((client) => countUnrouted(client, filter));
    },
    async route(request, mandate, options = {}) {
      const total = (await preview(readRequest(request))).events;
      let events = 0;
      let jobs = 0;
      let after: string | undefined = FIRST;
      while (after !== undefined && !options.signal?.aborted) {
        const batch: RoutedBatch = await routeOne(request, mandate, after);
        events += batch.events;
        jobs += batch.jobs;
        after = batch.next;
        options.onProgress?.({ done: Math.min(events, total), total });
      }
      return { events, jobs, stopped: after !== undefined };
    },
    async routeBatch(request, mandate, after = FIRST) {
      if (!isUuid(after)) throw wrong("after", "must be the `next` of the batch before");
      const { handler } = request;
      if (handler !== undefined && !(await read((client) => hasHandler(client, handler))))
        throw noHandler(handler);
      return routeOne(request, mandate, after);
    },
  };
}

function readRequest({
  since,
  until = new Date(Date.now() + AHEAD_MS),
  type,
  handler,
}: RouteRequest): RouteFilter {
  for (const [name, time] of Object.entries({ since, until })) {
    if (!(time instanceof Date) || Number.isNaN(time.getTime())) throw wrong(name, "must be a time");
  }
  return {
    since,
    until,
    ...(type === undefined ? {} : { type: readText("type", type, TEXT_MAX) }),
    ...(handler === undefined ? {} : { handler: readText("handler", handler, TEXT_MAX) }),
  };
}

function noHandler(name: string): UkemiError {
  return new UkemiError(
    "invalid_parameter",
    `There is no handler named ${JSON.stringify(name)}: \`ukemi handlers\` lists them.`,
  );
}

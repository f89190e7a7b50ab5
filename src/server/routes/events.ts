// GET /api/v1/events: what was received, newest first.
import { Hono } from "hono";
import { UkemiError } from "../../errors.ts";
import {
  EVENT_STATUSES,
  findEvent,
  listEvents,
  type EventFilter,
  type EventStatus,
} from "../../storage/event-list.ts";
import { isUuid } from "../../storage/ids.ts";
import type { Queryable } from "../../storage/postgres.ts";
import { LIMIT_DEFAULT, readLimit, readTime, requireKnown, wrong } from "../parameters.ts";

/** Every query parameter of the list. */
export const EVENT_PARAMETERS = [
  "source",
  "type",
  "ref",
  "tenant",
  "status",
  "since",
  "until",
  "limit",
  "cursor",
] as const;

/** Runs a read on the store, with a limit of time. */
export type Read = <T>(work: (client: Queryable) => Promise<T>) => Promise<T>;

/** The routes below /api/v1/events. */
export function eventRoutes(read: Read): Hono {
  const routes = new Hono();
  routes.get("/", async (context) => {
    const filter = readFilter(context.req.query());
    const rows = await read((client) => listEvents(client, { ...filter, limit: filter.limit + 1 }));
    const items = rows.slice(0, filter.limit);
    const more = rows.length > filter.limit ? { cursor: items.at(-1)!.id } : {};
    return context.json({ items, ...more });
  });
  routes.get("/:id", async (context) => {
    const event = await read((client) => findEvent(client, context.req.param("id")));
    if (!event) throw new UkemiError("not_found", "There is no event with this id.");
    return context.json(event);
  });
  return routes;
}

function readFilter(query: Readonly<Record<string, string>>): EventFilter {
  requireKnown(query, EVENT_PARAMETERS);
  const { source, type, ref, tenant, status, since, until, limit, cursor } = query;
  return {
    limit: limit === undefined ? LIMIT_DEFAULT : readLimit(limit),
    ...(source === undefined ? {} : { source }),
    ...(type === undefined ? {} : { type }),
    ...(ref === undefined ? {} : { ref }),
    ...(tenant === undefined ? {} : { tenant }),
    ...(status === undefined ? {} : { status: readStatus(status) }),
    ...(since === undefined ? {} : { since: readTime("since", since) }),
    ...(until === undefined ? {} : { until: readTime("until", until) }),
    ...(cursor === undefined ? {} : { before: readCursor(cursor) }),
  };
}

function readStatus(text: string): EventStatus {
  const status = EVENT_STATUSES.find((item) => item === text);
  if (!status) throw wrong("status", `must be one of ${EVENT_STATUSES.join(", ")}`);
  return status;
}

function readCursor(text: string): string {
  if (!isUuid(text)) throw wrong("cursor", "must be the cursor of an earlier answer");
  return text;
}

// /api/v1/events: what was received, and giving it to handlers that came later.
import { Type } from "typebox";
import { UkemiError } from "../../errors.ts";
import { EVENT_STATUSES } from "../../storage/states.ts";
import { requireTenant } from "../caller.ts";
import { PAGE, REASON, span, Text, timesOf } from "../fields.ts";
import { route, type Route } from "../route.ts";
import { Event, EventDetail, Many, OneOf, pageOf, thing } from "../things.ts";

const noEvent = () => new UkemiError("not_found", "There is no event with this id.");

export const eventRoutes: readonly Route[] = [
  route({
    id: "listEvents",
    method: "GET",
    path: "/events",
    scope: "read",
    reach: "tenants",
    text: "Lists what was received, newest first. Events that arrive meanwhile do not shift the pages.",
    query: Type.Object({
      source: Type.Optional(Text("Only of this source.")),
      type: Type.Optional(Text("Only of this type.")),
      ref: Type.Optional(Text("Only with this business id, such as pi_….")),
      tenant: Type.Optional(Text("Only of this tenant.")),
      status: Type.Optional(OneOf(EVENT_STATUSES, "Only with this status.")),
      ...span("Received"),
      ...PAGE,
    }),
    answer: pageOf(Event),
    run({ query: { limit, cursor, since, until, ...filter }, caller }, { events }) {
      requireTenant(caller, filter.tenant);
      const { tenants } = caller;
      return events.list(
        { ...filter, ...timesOf({ since, until }), ...(tenants && { tenants }) },
        { limit, cursor },
      );
    },
  }),
  route({
    id: "getEvent",
    method: "GET",
    path: "/events/{id}",
    scope: "read",
    reach: "tenants",
    text: "One event with its body, refs, outcome, jobs and attempts; by our id or by the sender's.",
    answer: EventDetail,
    async run({ params, caller }, { events }) {
      const event = await events.show(params.id!, caller.tenants);
      if (!event) throw noEvent();
      return event;
    },
  }),
  route({
    id: "getEventBody",
    method: "GET",
    path: "/events/{id}/body",
    scope: "read",
    reach: "tenants",
    text: "The body of one event, the bytes as they came.",
    answer: Type.Unsafe<Buffer>({ type: "string", format: "binary" }),
    async run({ params, caller }, { events }) {
      const body = await events.body(params.id!, caller.tenants);
      if (!body) throw new UkemiError("not_found", "There is no event with this id, or its body is gone.");
      return body;
    },
  }),
  route({
    id: "routeEvents",
    method: "POST",
    path: "/events/route",
    scope: "operate",
    reach: "everything",
    text: "Gives stored events that nobody wanted to handlers that came later, a batch in each request.",
    body: Type.Object({
      since: Type.Unsafe<string>({ ...span("Received").since }),
      until: span("Received").until,
      type: Type.Optional(Text("Only events of this type.")),
      handler: Type.Optional(Text("Only for this handler.")),
      after: Type.Optional(Text("Where the batch before ended: its `next`.")),
      dry_run: Type.Optional(Type.Boolean({ description: "Only say what would be done." })),
      reason: Type.Optional(REASON.reason),
    }),
    answer: thing("Routed", {
      dry_run: Type.Boolean(),
      events: Type.Integer({ description: "Events that got jobs, or would get them." }),
      jobs: Type.Integer(),
      without_body: Type.Optional(Type.Integer()),
      groups: Type.Optional(
        Many(thing("RouteGroup", { handler: Type.String(), type: Type.String(), count: Type.Integer() })),
      ),
      unrouted: Type.Optional(Many(thing("UnroutedType", { type: Type.String(), count: Type.Integer() }))),
      next: Type.Optional(
        Type.String({ description: "Where the next batch begins; absent after the last." }),
      ),
    }),
    async run({ body, mandate }, { events }) {
      const { since, until, type, handler, after, dry_run: dryRun = false } = body;
      const request = {
        since: new Date(since),
        ...(until === undefined ? {} : { until: new Date(until) }),
        ...(type === undefined ? {} : { type }),
        ...(handler === undefined ? {} : { handler }),
      };
      if (dryRun) {
        return {
          dry_run: true,
          ...(await events.previewRoute(request)),
          unrouted: await events.unrouted(request),
        };
      }
      return { dry_run: false, ...(await events.routeBatch(request, mandate, after)) };
    },
  }),
];

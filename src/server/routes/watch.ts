// /api/v1/workers, /rejections and /audit: who works, what was refused, and who did what.
import { Type } from "typebox";
import { UkemiError } from "../../errors.ts";
import { requireTenant } from "../caller.ts";
import { PAGE, span, Text, timesOf } from "../fields.ts";
import { route, type Route } from "../route.ts";
import { Names, OneOf, OrNull, Time, listOf, pageOf, text, thing } from "../things.ts";
import { readId } from "./jobs.ts";

const Worker = thing("Worker", {
  id: Type.String(),
  host: Type.String(),
  pid: Type.Integer(),
  version: Type.String(),
  state: OneOf(["live", "missing", "stopped", "replaced", "lost"]),
  handlers: Names,
  queues: Names,
  running: Type.Integer(),
  has_session: Type.Boolean(),
  started_at: Time,
  seen_at: Time,
  ended_at: OrNull(Time),
});

const rejectionFacts = {
  id: Type.Integer(),
  received_at: Time,
  source: Type.String(),
  reason: Type.String(),
  diagnosis: Type.String(),
  address: OrNull(text("Masked.")),
  request_id: Type.String(),
  body_bytes: Type.Integer(),
};

const Rejection = thing("Rejection", rejectionFacts);

const RejectionDetail = thing("RejectionDetail", {
  ...rejectionFacts,
  headers: Type.Record(Type.String(), Type.Unknown()),
  body_sample: text("The first bytes of the body."),
});

const AuditEntry = thing("AuditEntry", {
  id: Type.Integer(),
  at: Time,
  actor: Type.String(),
  role: OneOf(["operator", "system", "handler"]),
  action: Type.String(),
  target: OrNull(Type.String()),
  tenant: OrNull(Type.String()),
  details: Type.Record(Type.String(), Type.Unknown()),
});

export const watchRoutes: readonly Route[] = [
  route({
    id: "listWorkers",
    method: "GET",
    path: "/workers",
    scope: "read",
    reach: "everything",
    text: "Lists the workers that live, with what each has in hand.",
    query: Type.Object({
      ended: Type.Optional(Type.Boolean({ description: "Also those that have ended.", default: false })),
    }),
    answer: listOf(Worker),
    run: async ({ query }, { workers }) => ({ items: await workers.list(query.ended) }),
  }),
  route({
    id: "listRejections",
    method: "GET",
    path: "/rejections",
    scope: "read",
    reach: "everything",
    text: "Lists requests that were refused, newest first, each with its diagnosis.",
    query: Type.Object({
      source: Type.Optional(Text("Only of this source.")),
      reason: Type.Optional(Text("Only refused for this reason.")),
      ...span("Received"),
      ...PAGE,
    }),
    answer: pageOf(Rejection),
    run: ({ query: { limit, cursor, since, until, ...filter } }, { rejections }) =>
      rejections.list({ ...filter, ...timesOf({ since, until }) }, { limit, cursor }),
  }),
  route({
    id: "getRejection",
    method: "GET",
    path: "/rejections/{id}",
    scope: "read",
    reach: "everything",
    text: "One refused request with what was kept of it.",
    answer: RejectionDetail,
    async run({ params }, { rejections }) {
      const rejection = await rejections.show(readId(params.id!));
      if (!rejection) throw new UkemiError("not_found", "There is no refused request with this id.");
      return rejection;
    },
  }),
  route({
    id: "listAudit",
    method: "GET",
    path: "/audit",
    scope: "read",
    reach: "tenants",
    text: "Lists who did what, newest first.",
    query: Type.Object({
      actor: Type.Optional(Text("Only by this actor; `cli:*` means every actor that begins so.")),
      role: Type.Optional(
        Text("Only by operator, system or handler; people means everything that no handler wrote."),
      ),
      action: Type.Optional(Text("Only this action; `job.*` means every action that begins so.")),
      target: Type.Optional(Text("Only about this target.")),
      tenant: Type.Optional(Text("Only of this tenant.")),
      ...span("Done"),
      ...PAGE,
    }),
    answer: pageOf(AuditEntry),
    run({ query: { limit, cursor, since, until, ...filter }, caller }, { audit }) {
      requireTenant(caller, filter.tenant);
      const { tenants } = caller;
      return audit.list(
        { ...filter, ...timesOf({ since, until }), ...(tenants && { tenants }) },
        { limit, cursor },
      );
    },
  }),
];

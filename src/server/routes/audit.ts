// /api/v1/audit: who did what, and why.
import { Type } from "typebox";
import { AUDIT_ROLES } from "../../storage/audit-list.ts";
import { requireTenant } from "../caller.ts";
import { PAGE, span, Text, timesOf } from "../fields.ts";
import { route, type Route } from "../route.ts";
import { OneOf, OrNull, Time, pageOf, thing } from "../things.ts";

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

export const auditRoutes: readonly Route[] = [
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
        OneOf(AUDIT_ROLES, "Only of this role; people means everything that no handler wrote."),
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

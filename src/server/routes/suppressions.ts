// /api/v1/suppressions: addresses that get no mail.
import { Type } from "typebox";
import { wrong } from "../../operate/mandate.ts";
import { SUPPRESSION_REASONS } from "../../storage/suppressions.ts";
import { requireTenant, type Caller } from "../caller.ts";
import { PAGE, REASON, Text } from "../fields.ts";
import { route, type Route } from "../route.ts";
import { OneOf, OrNull, pageOf, text, thing, Time } from "../things.ts";

const Suppression = thing("Suppression", {
  address: Type.String(),
  tenant: OrNull(text("Whose mail; null: mail of nobody in particular.")),
  reason: OneOf(SUPPRESSION_REASONS),
  effect: OrNull(text("The mail after which it was put there.")),
  at: Time,
});

const CHANGE = Type.Object({
  address: Text("One plain mailbox."),
  tenant: Type.Optional(Text("Whose mail; without it, mail of nobody in particular.")),
  ...REASON,
});

const change = (act: "add" | "remove", path: `/${string}`, words: string) =>
  route({
    id: `${act}Suppression`,
    method: "POST",
    path,
    scope: "operate",
    reach: "tenants",
    text: words,
    body: CHANGE,
    answer: thing("SuppressionChange", {
      address: Type.String(),
      tenant: OrNull(Type.String()),
      suppressed: Type.Boolean(),
      changed: Type.Boolean({ description: "False where it was so before." }),
    }),
    run({ body: { address, tenant }, caller, mandate }, { suppressions }) {
      requireOwn(caller, tenant);
      return suppressions[act]({ address, tenant }, mandate);
    },
  });

/** Mail of nobody in particular is nobody's to hold up who is bound to tenants. */
function requireOwn(caller: Caller, tenant: string | undefined): void {
  requireTenant(caller, tenant);
  if (caller.tenants !== undefined && tenant === undefined) {
    throw wrong("tenant", "must be given: the token that was sent is bound to tenants");
  }
}

export const suppressionRoutes: readonly Route[] = [
  route({
    id: "listSuppressions",
    method: "GET",
    path: "/suppressions",
    scope: "read",
    reach: "tenants",
    text: "Lists the addresses that get no mail, in their order.",
    query: Type.Object({
      address: Type.Optional(Text("Only this address, in whatever case.")),
      tenant: Type.Optional(Text("Only of this tenant.")),
      ...PAGE,
      cursor: Type.Optional(Type.String({ description: "The cursor of the answer before.", maxLength: 600 })),
    }),
    answer: pageOf(Suppression),
    run({ query: { limit, cursor, ...filter }, caller }, { suppressions }) {
      requireTenant(caller, filter.tenant);
      const { tenants } = caller;
      return suppressions.list({ ...filter, ...(tenants && { tenants }) }, { limit, cursor });
    },
  }),
  change("add", "/suppressions", "Sends no mail to an address any more, not even what is planned."),
  change(
    "remove",
    "/suppressions/remove",
    "Sends mail to an address again; what was suppressed meanwhile is not sent.",
  ),
];

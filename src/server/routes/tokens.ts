// /api/v1/tokens: who may use this API.
import { Type } from "typebox";
import { SCOPES } from "../../storage/tokens.ts";
import { REASON, Text } from "../fields.ts";
import { route, type Route } from "../route.ts";
import { Names, OneOf, OrNull, Time, listOf, text, thing } from "../things.ts";

const tokenFacts = {
  id: Type.String(),
  name: Type.String(),
  hint: text("Its first letters."),
  scope: OneOf(SCOPES),
  tenants: OrNull(Names),
  created_at: Time,
  created_by: Type.String(),
  lifetime_seconds: OrNull(Type.Number({ description: "For how long it was made." })),
  expires_at: OrNull(Time),
  last_used_at: OrNull(Time),
  revoked_at: OrNull(Time),
  replaces: OrNull(Type.String()),
  active: Type.Boolean(),
};

const Token = thing("Token", tokenFacts);

const MadeToken = thing("MadeToken", {
  ...tokenFacts,
  secret: OrNull(text("Shown this once; null where the request was repeated with its Idempotency-Key.")),
});

export const tokenRoutes: readonly Route[] = [
  route({
    id: "listTokens",
    method: "GET",
    path: "/tokens",
    scope: "admin",
    reach: "everything",
    text: "Lists the tokens, newest first. Secrets are not stored and cannot be shown.",
    answer: listOf(Token),
    run: async (_, { tokens }) => ({ items: await tokens.list() }),
  }),
  route({
    id: "createToken",
    method: "POST",
    path: "/tokens",
    scope: "admin",
    reach: "everything",
    text: "Makes a token; its secret is shown in this answer and never again.",
    body: Type.Object({
      name: Text("For people: whose it is, and what for."),
      scope: OneOf(SCOPES, "What it allows; each includes those before it."),
      tenants: Type.Optional(
        Type.Array(Text("A tenant."), {
          minItems: 1,
          maxItems: 100,
          description: "Only these tenants' things. Left out: everything.",
        }),
      ),
      expires_in_seconds: Type.Optional(
        Type.Integer({ minimum: 1, maximum: 315_360_000, description: "Left out: until it is revoked." }),
      ),
      ...REASON,
    }),
    answer: MadeToken,
    secrets: ["secret"],
    run: ({ body: { name, scope, tenants, expires_in_seconds: expiresInSeconds }, mandate }, { tokens }) =>
      tokens.make(
        {
          name,
          scope,
          ...(tenants === undefined ? {} : { tenants }),
          ...(expiresInSeconds === undefined ? {} : { expiresInSeconds }),
        },
        mandate,
      ),
  }),
  route({
    id: "rotateToken",
    method: "POST",
    path: "/tokens/{id}/rotate",
    scope: "admin",
    reach: "everything",
    text: "Makes a token like it; both are good until the overlap is over.",
    body: Type.Object({
      overlap_seconds: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: 315_360_000,
          default: 86_400,
          description: "How long the old one stays good.",
        }),
      ),
      ...REASON,
    }),
    answer: MadeToken,
    secrets: ["secret"],
    run: ({ params, body, mandate }, { tokens }) =>
      tokens.rotate(params.id!, body.overlap_seconds ?? 86_400, mandate),
  }),
  route({
    id: "revokeToken",
    method: "POST",
    path: "/tokens/{id}/revoke",
    scope: "admin",
    reach: "everything",
    text: "Ends a token at once.",
    body: Type.Object(REASON),
    answer: thing("TokenRevocation", { id: Type.String() }),
    async run({ params, mandate }, { tokens }) {
      await tokens.revoke(params.id!, mandate);
      return { id: params.id! };
    },
  }),
];

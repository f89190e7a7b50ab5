// Promise 11: one tenant never sees, blocks or suppresses another's events; the tenant comes only from verified content.
import { expect, test } from "vitest";
import { hmac } from "../../src/sources/hmac.ts";
import { stripe } from "../../src/sources/stripe.ts";
import { sampleEvent } from "../../src/testing/sample-events.ts";
import { signHmac, signStripe } from "../../src/testing/sign.ts";
import { createDatabase } from "../support/database.ts";
import { startTestServer } from "../support/in-process.ts";
import { SECRET } from "../support/server.ts";

const SHARED = "a secret that two tenants' sender holds";

async function send(url: string, body: string, headers: Record<string, string>) {
  const response = await fetch(url, { method: "POST", headers, body });
  return { status: response.status, duplicate: response.headers.has("x-duplicate") };
}

test("stores the same event id once for each tenant of one sender", async () => {
  const { url: database, pool } = await createDatabase();
  const source = hmac({
    secrets: [SHARED],
    header: "x-signature",
    id: { path: "id" },
    type: "usage",
    tenant: { path: "office" },
  });
  const server = await startTestServer({ database, sources: { usage: source } });
  const deliver = (office: string) => {
    const body = JSON.stringify({ id: "1", office });
    return send(`${server.url}/webhooks/usage`, body, signHmac(body, SHARED, { header: "x-signature" }));
  };
  expect(await deliver("office_a")).toEqual({ status: 204, duplicate: false });
  expect(await deliver("office_b")).toEqual({ status: 204, duplicate: false });
  expect(await deliver("office_a")).toEqual({ status: 204, duplicate: true });
  const { rows } = await pool.query("select tenant, event_id from ukemi.events order by tenant");
  expect(rows).toEqual([
    { tenant: "office_a", event_id: "1" },
    { tenant: "office_b", event_id: "1" },
  ]);
  const listed = await fetch(`${server.url}/api/v1/events?tenant=office_b`);
  expect(((await listed.json()) as { items: { tenant: string }[] }).items.map((item) => item.tenant)).toEqual(
    ["office_b"],
  );
});

test("takes the tenant from nothing that a caller can write without signing it", async () => {
  const { url: database, pool } = await createDatabase();
  const source = stripe({ secrets: [SECRET], tenant: { metadata: "organiser" } });
  const server = await startTestServer({ database, sources: { stripe: source } });
  const body = sampleEvent("payment_intent.succeeded", { metadata: { organiser: "org_signed" } });
  const headers = { ...signStripe(body, SECRET), "x-tenant": "org_forged", organiser: "org_forged" };
  expect(
    (await send(`${server.url}/webhooks/stripe?tenant=org_forged&organiser=org_forged`, body, headers))
      .status,
  ).toBe(204);
  const { rows } = await pool.query("select tenant from ukemi.events");
  expect(rows).toEqual([{ tenant: "org_signed" }]);
});

test("gives each endpoint its tenant, with the same ids from two accounts side by side", async () => {
  const { url: database, pool } = await createDatabase();
  const make = (fixed: string, secret: string) => stripe({ secrets: [secret], tenant: { fixed } });
  const server = await startTestServer({
    database,
    sources: { "shop-a": make("a", "whsec_shop_a"), "shop-b": make("b", "whsec_shop_b") },
  });
  const body = sampleEvent("charge.succeeded", { id: "evt_same" });
  expect((await send(`${server.url}/webhooks/shop-a`, body, signStripe(body, "whsec_shop_a"))).status).toBe(
    204,
  );
  expect(await send(`${server.url}/webhooks/shop-b`, body, signStripe(body, "whsec_shop_b"))).toEqual({
    status: 204,
    duplicate: false,
  });
  // one shop's secret opens nothing at the other's endpoint
  expect((await send(`${server.url}/webhooks/shop-b`, body, signStripe(body, "whsec_shop_a"))).status).toBe(
    400,
  );
  const { rows } = await pool.query("select source, tenant from ukemi.events order by source");
  expect(rows).toEqual([
    { source: "shop-a", tenant: "a" },
    { source: "shop-b", tenant: "b" },
  ]);
});

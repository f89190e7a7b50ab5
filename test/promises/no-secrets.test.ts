// Promise 9: nothing secret or personal reaches logs, metrics or error bodies. Canaries are planted and searched for.
import { expect, test } from "vitest";
import { sampleEvent } from "../../src/testing/sample-events.ts";
import { signStripe } from "../../src/testing/sign.ts";
import { createDatabase } from "../support/database.ts";
import { runCli } from "../support/cli.ts";
import { startServerProcess } from "../support/server.ts";
import { withUser } from "../support/url.ts";

const CANARY = {
  stripe: "whsec_canaryStripeSecret",
  rolled: "whsec_canaryRolledSecret",
  admin: "canaryAdminToken0123456789",
  bearer: "canaryBearerFromCaller",
  cookie: "canaryCookieFromCaller",
  body: "canary-body@example.com",
  password: "canaryPassword",
  address: "198.51.100.77",
};

test("keeps canary secrets out of logs, metrics, error bodies, the doctor and the store's headers", async () => {
  const { url: database, pool } = await createDatabase();
  const server = await startServerProcess({
    DATABASE_URL: database,
    STRIPE_WEBHOOK_SECRET: `${CANARY.stripe},${CANARY.rolled}`,
    UKEMI_ADMIN_TOKEN: CANARY.admin,
    UKEMI_TRUSTED_PROXIES: "127.0.0.1",
    LOG_LEVEL: "trace",
  });
  const said: string[] = [];
  const signatures: string[] = [];
  const body = sampleEvent("charge.succeeded", { metadata: { email: CANARY.body } });
  const personal = {
    authorization: `Bearer ${CANARY.bearer}`,
    cookie: `session=${CANARY.cookie}`,
    "x-api-token": CANARY.bearer,
    "x-forwarded-for": CANARY.address,
  };
  async function ask(path: string, init: RequestInit = {}): Promise<number> {
    const response = await fetch(`${server.url}${path}`, init);
    said.push(JSON.stringify([...response.headers]), await response.text());
    return response.status;
  }
  const variants: [string, number, string][] = [
    [CANARY.stripe, 204, body],
    [CANARY.rolled, 204, body],
    ["whsec_wrong", 400, body],
    [CANARY.stripe, 400, `${body} not json`],
  ];
  for (const [secret, status, content] of variants) {
    const headers = { ...personal, ...signStripe(content, secret) };
    signatures.push(headers["stripe-signature"].split("v1=")[1]!);
    expect(await ask("/webhooks/stripe", { method: "POST", headers, body: content })).toBe(status);
  }
  expect(await ask("/webhooks/nobody", { method: "POST", headers: personal, body })).toBe(404);
  expect(await ask("/api/v1/events", { headers: personal })).toBe(401);
  expect(await ask("/metrics", { headers: { "x-forwarded-for": "203.0.113.1" } })).toBe(401);
  expect(await ask("/metrics", { headers: { authorization: `Bearer ${CANARY.admin}` } })).toBe(200);
  // the database goes away in the middle: its errors must not carry what it was given
  await pool.query("alter table ukemi.events rename to gone");
  const failing = sampleEvent("charge.succeeded", { metadata: { email: CANARY.body } });
  expect(
    await ask("/webhooks/stripe", {
      method: "POST",
      headers: { ...personal, ...signStripe(failing, CANARY.stripe) },
      body: failing,
    }),
  ).toBe(503);
  await pool.query("alter table ukemi.gone rename to events");
  expect(await server.kill("SIGTERM")).toBe(0);

  const wrongPassword = withUser(database, "nobody_known", CANARY.password);
  const doctors = await Promise.all([
    runCli(["doctor"], {
      DATABASE_URL: database,
      STRIPE_WEBHOOK_SECRET: CANARY.stripe,
      UKEMI_ADMIN_TOKEN: CANARY.admin,
    }),
    runCli(["doctor", "--json"], { DATABASE_URL: wrongPassword, STRIPE_WEBHOOK_SECRET: CANARY.stripe }),
    runCli(["serve"], { DATABASE_URL: wrongPassword, STRIPE_WEBHOOK_SECRET: CANARY.stripe }),
    runCli(["migrate"], { DATABASE_URL: wrongPassword }),
    runCli(["serve"], { DATABASE_URL: `mysql://root:${CANARY.password}@host/db` }),
    runCli(["serve"], { DATABASE_URL: database, STRIPE_WEBHOOK_SECRET: `sk_live_${CANARY.password}` }),
  ]);
  said.push(...doctors.map((run) => run.output), server.output());
  const stored = await pool.query<{ headers: string }>(
    "select headers from ukemi.event_bodies union all select headers from ukemi.rejections",
  );
  const everything = said.join("\n");
  for (const [name, canary] of Object.entries(CANARY)) expect(everything, name).not.toContain(canary);
  for (const signature of signatures) expect(everything).not.toContain(signature);
  const headers = stored.rows.map((row) => row.headers).join("\n");
  for (const canary of [CANARY.bearer, CANARY.cookie]) expect(headers).not.toContain(canary);
  // the log still says enough to find the request again
  expect(server.output()).toContain("198.51.100.x");
});

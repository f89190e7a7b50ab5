// Tokens: kept as hashes, rotated with an overlap, noted when used, never shown again.
import { expect, test } from "vitest";
import { startServer } from "../../src/server/server.ts";
import { stripe } from "../../src/sources/stripe.ts";
import { createUkemi } from "../../src/ukemi.ts";
import { createClient } from "../../src/client/client.ts";
import { createDatabase } from "../support/database.ts";
import { readAudit, refuseAudit } from "../support/dead.ts";
import { startTestServer } from "../support/in-process.ts";
import { makeToken } from "../support/token.ts";

async function start() {
  const store = await createDatabase();
  const server = await startTestServer({ database: store.url, adminToken: "the root of all" });
  const clientWith = (token: string) => createClient({ url: server.url, token });
  return { ...store, ...server, clientWith, root: clientWith("the root of all") };
}

test("a token is shown once, kept as a hash, and audited with who made it and why", async () => {
  const { root, clientWith, pool, lines } = await start();
  const made = await root.createToken({
    name: "nightly",
    scope: "operate",
    tenants: ["org_1"],
    expires_in_seconds: 3600,
    reason: "the nightly report",
  });
  expect(made).toMatchObject({ name: "nightly", scope: "operate", tenants: ["org_1"], active: true });
  expect(made.secret).toMatch(/^ukemi_[\w-]{43}$/);
  expect((await root.listTokens()).items).toEqual([
    expect.objectContaining({ id: made.id, hint: made.secret!.slice(0, 10), last_used_at: null }),
  ]);
  await clientWith(made.secret!).listEvents();
  expect((await root.listTokens()).items[0]!.last_used_at).not.toBeNull();
  const { rows } = await pool.query<{ row: string }>(
    `select t::text as row from ukemi.tokens t
     union all select a::text from ukemi.audit_log a
     union all select k::text from ukemi.idempotency_keys k`,
  );
  expect(rows.length).toBe(3); // the client sends a key with every change
  expect(JSON.stringify([rows, lines()])).not.toContain(made.secret!.slice(12));
  expect(await readAudit(pool)).toEqual([
    expect.objectContaining({
      actor: "api:admin",
      role: "operator",
      action: "token.made",
      target: made.id,
      details: expect.objectContaining({ reason: "the nightly report", name: "nightly", scope: "operate" }),
    }),
  ]);
});

test("a rotated token and the new one are both good until the overlap is over", async () => {
  const { root, clientWith, pool } = await start();
  const old = await root.createToken({ name: "ci", scope: "read", expires_in_seconds: 86_400, reason: "ci" });
  const made = await root.rotateToken({ id: old.id, overlap_seconds: 600, reason: "every quarter" });
  expect(made).toMatchObject({ name: "ci", scope: "read", replaces: old.id });
  expect(new Date(made.expires_at!).getTime()).toBeGreaterThan(new Date(old.expires_at!).getTime());
  await clientWith(old.secret!).listEvents();
  await clientWith(made.secret!).listEvents();
  await pool.query("update ukemi.clock set shift = interval '601 seconds'");
  await expect(clientWith(old.secret!).listEvents()).rejects.toMatchObject({
    status: 401,
    code: "unauthorized",
  });
  await clientWith(made.secret!).listEvents();
  // one more for a secret that was lost on the way lives as long as the first
  const again = await root.rotateToken({ id: made.id, overlap_seconds: 60, reason: "lost" });
  const third = await root.rotateToken({ id: made.id, overlap_seconds: 60, reason: "lost again" });
  for (const { lifetime_seconds } of [again, third]) expect(lifetime_seconds).toBe(86_400);
  expect(new Date(third.expires_at!).getTime() - new Date(third.created_at).getTime()).toBe(86_400_000);
  // what is no longer good cannot be rotated: that would bring a lost token back
  await expect(root.rotateToken({ id: old.id, reason: "again" })).rejects.toMatchObject({ status: 404 });
});

test("a token ends at once, and neither ends nor begins without its audit", async () => {
  const { root, clientWith, pool } = await start();
  const made = await root.createToken({ name: "lost", scope: "read", reason: "x" });
  await refuseAudit(pool, "token.revoked");
  await expect(root.revokeToken({ id: made.id, reason: "lost" })).rejects.toMatchObject({ status: 500 });
  await clientWith(made.secret!).listEvents();
  await pool.query("drop trigger refuse_audit on ukemi.audit_log");
  await root.revokeToken({ id: made.id, reason: "lost" });
  await expect(clientWith(made.secret!).listEvents()).rejects.toMatchObject({ status: 401 });
  await expect(root.revokeToken({ id: made.id, reason: "lost" })).rejects.toMatchObject({ status: 404 });
});

test("what a token cannot be is said", async () => {
  const { root } = await start();
  const wrong = (input: object) => expect(root.createToken(input as never)).rejects;
  await wrong({ name: "x", scope: "root", reason: "x" }).toThrow(
    '"scope" must be one of read, operate, admin',
  );
  await wrong({ name: " ", scope: "read", reason: "x" }).toThrow('"name" must be text of 1 to');
  await wrong({ name: "x", scope: "read" }).toThrow('"reason" must be text');
  await wrong({ name: "x", scope: "read", tenants: [], reason: "x" }).toThrow('"tenants" must be a list');
  await wrong({ name: "x", scope: "read", expires_in_seconds: 0, reason: "x" }).toThrow(
    '"expires_in_seconds"',
  );
  await wrong({ name: "x", scope: "read", reason: "x", tenant: "y" }).toThrow('"tenant" is not known');
});

test("beyond loopback a server listens only where a token guards the API, also one that is over", async () => {
  const { url, pool } = await createDatabase();
  const ukemi = createUkemi({
    database: url,
    host: "0.0.0.0",
    port: 0,
    logLevel: "silent",
    sources: { stripe: stripe({ secrets: ["whsec_x"] }) },
  });
  try {
    await ukemi.start();
    await expect(startServer(ukemi)).rejects.toThrow("A token is needed to listen on 0.0.0.0");
    const secret = await makeToken(ukemi, { scope: "admin", expiresInSeconds: 60 });
    // a deploy in the night after the last one expired must not keep webhooks out
    await pool.query("update ukemi.tokens set expires_at = ukemi.now() - interval '1 h'");
    const server = await startServer(ukemi);
    const port = new URL(server.url).port;
    const ask = (headers: Record<string, string>) =>
      fetch(`http://127.0.0.1:${port}/api/v1/queues`, { headers });
    expect((await ask({})).status).toBe(401);
    expect((await ask({ authorization: `Bearer ${secret}` })).status).toBe(401);
    await server.stop();
  } finally {
    await ukemi.stop();
  }
});

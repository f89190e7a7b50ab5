// Who may do what: every route with every kind of token, against a table that a person wrote.
import { expect, test } from "vitest";
import { ROUTES } from "../../src/server/routes/routes.ts";
import type { Scope } from "../../src/storage/tokens.ts";
import { createDatabase } from "../support/database.ts";
import { makeDead, register } from "../support/dead.ts";
import { startTestServer } from "../support/in-process.ts";
import { makeToken } from "../support/token.ts";

/** The least scope of each route, and whether a token that is bound to tenants may use it. */
const TABLE: Readonly<Record<string, readonly [Scope, "bound" | "unbound"]>> = {
  listEvents: ["read", "bound"],
  getEvent: ["read", "bound"],
  getEventBody: ["read", "bound"],
  routeEvents: ["operate", "unbound"],
  listJobs: ["read", "bound"],
  getJob: ["read", "bound"],
  listDead: ["read", "bound"],
  groupDead: ["read", "bound"],
  getDead: ["read", "bound"],
  replayDead: ["operate", "bound"],
  dropDead: ["operate", "bound"],
  listOperations: ["read", "bound"],
  previewOperation: ["read", "bound"],
  createOperation: ["operate", "bound"],
  getOperation: ["read", "bound"],
  listOperationItems: ["read", "bound"],
  abortOperation: ["operate", "bound"],
  resumeOperation: ["operate", "bound"],
  listEffects: ["read", "bound"],
  getEffect: ["read", "bound"],
  resolveEffect: ["operate", "bound"],
  cancelEffect: ["operate", "bound"],
  listSuppressions: ["read", "bound"],
  addSuppression: ["operate", "bound"],
  removeSuppression: ["operate", "bound"],
  listDestinations: ["read", "unbound"],
  pauseDestination: ["operate", "unbound"],
  resumeDestination: ["operate", "unbound"],
  listQueues: ["read", "unbound"],
  pauseQueue: ["operate", "unbound"],
  resumeQueue: ["operate", "unbound"],
  listHandlers: ["read", "unbound"],
  removeHandler: ["operate", "unbound"],
  listWorkers: ["read", "unbound"],
  listRejections: ["read", "unbound"],
  getRejection: ["read", "unbound"],
  listAudit: ["read", "bound"],
  countTypes: ["read", "bound"],
  countHours: ["read", "bound"],
  listAnomalies: ["read", "unbound"],
  previewRetention: ["read", "unbound"],
  eraseBodies: ["admin", "bound"],
  listDataKeys: ["admin", "unbound"],
  listTokens: ["admin", "unbound"],
  createToken: ["admin", "unbound"],
  rotateToken: ["admin", "unbound"],
  revokeToken: ["admin", "unbound"],
};

const SCOPES: readonly Scope[] = ["read", "operate", "admin"];

async function start() {
  const store = await createDatabase();
  const server = await startTestServer({ database: store.url });
  await register(store.pool);
  await makeDead(store, ["evt_1"], { tenant: "org_1" });
  const ask = async (token: string | undefined, { method, path }: { method: string; path: string }) => {
    const url = `${server.url}/api/v1${path.replaceAll(/\{\w+\}/g, "1")}`;
    const response = await fetch(url, {
      method,
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(method === "POST" ? { "content-type": "application/json" } : {}),
      },
      // no route makes anything of it, but whoever may not is refused before it is looked at
      ...(method === "POST" ? { body: "{}" } : {}),
    });
    await response.arrayBuffer();
    return response.status;
  };
  return { ...store, ukemi: server.ukemi, url: server.url, ask };
}

test("the table names every route", () => {
  expect(ROUTES.map((route) => route.id).toSorted()).toEqual(Object.keys(TABLE).toSorted());
});

test("every route with every token", async () => {
  const { ukemi, ask } = await start();
  for (const scope of SCOPES) {
    for (const tenants of [undefined, ["org_1"]]) {
      const token = await makeToken(ukemi, { scope, ...(tenants && { tenants }) });
      for (const route of ROUTES) {
        const [least, bound] = TABLE[route.id]!;
        const may =
          SCOPES.indexOf(scope) >= SCOPES.indexOf(least) && (tenants === undefined || bound === "bound");
        const status = await ask(token, route);
        const label = `${route.method} ${route.path} with ${scope}, ${tenants ? "bound" : "unbound"}`;
        if (may) expect([200, 400, 404], label).toContain(status);
        else expect(status, label).toBe(403);
      }
    }
  }
});

test("no route for who has no token, a wrong one, one that was revoked, or one that has expired", async () => {
  const { ukemi, ask, pool } = await start();
  const revoked = await makeToken(ukemi, { scope: "admin" });
  const expired = await makeToken(ukemi, { scope: "admin", expiresInSeconds: 60 });
  const good = await makeToken(ukemi, { scope: "admin" });
  const [, , first] = await ukemi.operate.tokens.list();
  await ukemi.operate.tokens.revoke(first!.id, { actor: "test:jane", reason: "lost" });
  await pool.query("update ukemi.clock set shift = interval '61 seconds'");
  const wrong = `${good.slice(0, -1)}${good.endsWith("A") ? "B" : "A"}`;
  for (const token of [undefined, "", "ukemi_", "x".repeat(8000), wrong, revoked, expired]) {
    for (const route of ROUTES) {
      expect(await ask(token, route), `${route.method} ${route.path}`).toBe(401);
    }
  }
  expect(await ask(good, { method: "GET", path: "/tokens" })).toBe(200);
});

test("a caller on this machine needs no token until one was made, and is not let in again when it has expired", async () => {
  const { ukemi, ask, pool } = await start();
  expect(await ask(undefined, { method: "GET", path: "/events" })).toBe(200);
  await makeToken(ukemi, { scope: "read", expiresInSeconds: 60 });
  expect(await ask(undefined, { method: "GET", path: "/events" })).toBe(401);
  await pool.query("update ukemi.clock set shift = interval '61 seconds'");
  expect(await ask(undefined, { method: "GET", path: "/events" })).toBe(401);
});

test("metrics, which are of every tenant, are not for a bound token from elsewhere", async () => {
  const { ukemi, url } = await start();
  const metrics = async (token: string) => {
    const response = await fetch(`${url}/metrics`, {
      headers: { authorization: `Bearer ${token}`, "x-forwarded-for": "192.0.2.1" },
    });
    await response.arrayBuffer();
    return response.status;
  };
  expect(await metrics(await makeToken(ukemi, { scope: "read", tenants: ["org_1"] }))).toBe(403);
  expect(await metrics(await makeToken(ukemi, { scope: "read" }))).toBe(200);
  expect(await metrics("ukemi_wrong")).toBe(401);
});

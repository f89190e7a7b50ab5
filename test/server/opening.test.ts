// A store that opens with the first delivery: slow, silent or wrong, the sender is answered in time and the operator told why.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createLogger } from "../../src/observe/log.ts";
import { stripe } from "../../src/sources/stripe.ts";
import type { Identity, Source } from "../../src/sources/source.ts";
import { sampleEvent } from "../../src/testing/sample-events.ts";
import { signStripe } from "../../src/testing/sign.ts";
import { createUkemi, type UkemiOptions } from "../../src/ukemi.ts";
import { createDatabase } from "../support/database.ts";
import { startTestServer } from "../support/in-process.ts";
import { proxyDatabase } from "../support/proxied.ts";
import { BIN, cleanEnv, SECRET } from "../support/server.ts";
import { until } from "../support/until.ts";

const body = sampleEvent("charge.succeeded");
const request = () =>
  new Request("http://app/webhooks", { method: "POST", headers: signStripe(body, SECRET), body });

function createQuietUkemi(options: Partial<UkemiOptions>) {
  const written: string[] = [];
  const ukemi = createUkemi({
    sources: { stripe: stripe({ secrets: [SECRET] }) },
    logger: createLogger("info", { write: (line) => void written.push(line) }),
    ...options,
  });
  onTestFinished(() => ukemi.stop());
  return { ukemi, log: () => written.join("") };
}

test("answers 503 by the deadline while the database that must be opened is silent", async () => {
  const { url } = await createDatabase();
  const { url: through, proxy } = await proxyDatabase(url);
  await proxy.set("black hole");
  const { ukemi } = createQuietUkemi({ database: through, commitDeadlineMs: 800 });
  const askedAt = performance.now();
  const response = await ukemi.receiver("stripe")(request());
  expect([response.status, response.headers.get("retry-after")]).toEqual([503, "5"]);
  expect(performance.now() - askedAt).toBeLessThan(800 + 10_000);
  await proxy.set("pass");
  await until(
    async () => (await ukemi.receiver("stripe")(request())).status === 204,
    "the store opens after the heal",
  );
});

test("says in the log what is wrong with a store that cannot be opened", async () => {
  const { url } = await createDatabase({ empty: true });
  const { ukemi, log } = createQuietUkemi({ database: url, commitDeadlineMs: 300 });
  expect((await ukemi.receiver("stripe")(request())).status).toBe(503);
  expect(log()).toContain("The database has no Ukemi schema");
});

test("is not ready, and says so in time, while the database is silent", async () => {
  const { url } = await createDatabase();
  const { url: through, proxy } = await proxyDatabase(url);
  const server = await startTestServer({ database: through, commitDeadlineMs: 500 });
  expect((await fetch(`${server.url}/readyz`)).status).toBe(200);
  await proxy.set("black hole");
  const askedAt = performance.now();
  expect((await fetch(`${server.url}/readyz`)).status).toBe(503);
  expect(performance.now() - askedAt).toBeLessThan(500 + 10_000);
});

test("ends on SIGTERM while it still waits for the database to open", async () => {
  const { url } = await createDatabase();
  const { url: through, proxy } = await proxyDatabase(url);
  await proxy.set("black hole");
  const data = await mkdtemp(join(tmpdir(), "ukemi-opening-"));
  onTestFinished(() => rm(data, { recursive: true, force: true }));
  const child = spawn(process.execPath, [BIN, "serve"], {
    env: {
      ...cleanEnv(),
      DATABASE_URL: through,
      STRIPE_WEBHOOK_SECRET: SECRET,
      UKEMI_PORT: "0",
      UKEMI_DRAIN_TIMEOUT_MS: "500",
    },
    stdio: "ignore",
  });
  const ended = once(child, "close");
  await until(() => proxy.connections() > 0, "it has begun to connect");
  child.kill("SIGTERM");
  await ended;
});

test.each<[string, Partial<UkemiOptions>, string]>([
  ["no lane", { lanes: 0 }, "lanes must be a whole number from 1"],
  ["a negative limit", { bodyBytesMax: -1 }, "bodyBytesMax must be a whole number"],
  ["text for a number", { commitDeadlineMs: "4s" as unknown as number }, "commitDeadlineMs must be"],
  ["another database's URL", { database: "mysql://x" }, "database must begin with postgres://"],
  [
    "a source name that cannot be in a path",
    { sources: { "a/b": stripe({ secrets: [SECRET] }) } },
    "source name",
  ],
  [
    "a blank secret",
    {
      sources: {
        get stripe() {
          return stripe({ secrets: [" "] });
        },
      },
    },
    "secret",
  ],
])("refuses %s when it is made", (_, options, message) => {
  expect(() => createUkemi({ sources: {}, ...options })).toThrow(message);
});

test("takes a blank DATABASE_URL for none", () => {
  const { ukemi } = createQuietUkemi({ database: "" });
  expect(ukemi.settings.database).toBeUndefined();
});

test("refuses everything from a source of the application's own that throws, and keeps its answer and its log line", async () => {
  const { url } = await createDatabase();
  const broken: Source = {
    kind: "own",
    allowedAddresses: [],
    verify: () => {
      throw new Error("a bug in the application");
    },
    identify: () => {
      throw new Error("never reached");
    },
  };
  const { ukemi, log } = createQuietUkemi({ database: url, sources: { own: broken } });
  const response = await ukemi.receiver("own")(request());
  expect(response.status).toBe(400);
  expect(JSON.parse(log().trim().split("\n").at(-1)!)).toMatchObject({
    level: "error",
    request_id: response.headers.get("x-request-id"),
    reason: "source_failed",
    diagnosis: "the source itself failed: a bug in the application",
  });
});

const IDENTITY: Identity = {
  eventId: "evt_1",
  type: "t",
  account: "",
  livemode: true,
  tenant: null,
  occurredAt: null,
  refs: [],
};

test.each<[string, Partial<Identity>]>([
  ["a date that is none", { occurredAt: new Date("garbage") }],
  ["a tenant that is not there", { tenant: undefined as unknown as null }],
  ["an id that is not well formed", { eventId: "evt_\ud800" }],
  ["an id that is too long", { eventId: "x".repeat(300) }],
])("refuses %s from an application's own source without harm to its neighbours", async (_, changes) => {
  const { url, pool } = await createDatabase();
  const own: Source = {
    kind: "own",
    allowedAddresses: [],
    verify: () => ({ secretFingerprint: "none" }),
    identify: () => ({ ...IDENTITY, ...changes }),
  };
  const { ukemi } = createQuietUkemi({
    database: url,
    sources: { own, stripe: stripe({ secrets: [SECRET] }) },
  });
  await ukemi.start();
  const answers = await Promise.all([
    ...Array.from({ length: 5 }, () => ukemi.receiver("own")(request())),
    ...Array.from({ length: 5 }, () => ukemi.receiver("stripe")(request())),
  ]);
  expect(answers.map((answer) => answer.status)).toEqual([
    ...Array<number>(5).fill(400),
    ...Array<number>(5).fill(204),
  ]);
  const { rows } = await pool.query("select source from ukemi.events");
  expect(rows).toEqual([{ source: "stripe" }]);
});

test("never takes a promise for a verification", async () => {
  const { url, pool } = await createDatabase();
  const own = {
    kind: "own",
    allowedAddresses: [],
    verify: () => Promise.resolve({ refused: "wrong_secret", diagnosis: "no" }),
    identify: () => IDENTITY,
  } as unknown as Source;
  const { ukemi } = createQuietUkemi({ database: url, sources: { own } });
  expect((await ukemi.receiver("own")(request())).status).toBe(400);
  const { rows } = await pool.query("select count(*)::int as events from ukemi.events");
  expect(rows).toEqual([{ events: 0 }]);
});

test("refuses a Request whose body somebody else holds, and stops only once", async () => {
  const { url } = await createDatabase();
  const { ukemi } = createQuietUkemi({ database: url });
  const held = request();
  held.body!.getReader();
  expect((await ukemi.receiver("stripe")(held)).status).toBe(400);
  await Promise.all([ukemi.stop(), ukemi.stop()]);
  expect((await ukemi.receiver("stripe")(request())).status).toBe(503);
  await expect(ukemi.start()).rejects.toMatchObject({ code: "stopping" });
});

// The OpenAPI document: what it says of an answer holds for the answers that are given.
import { Type, type TSchema } from "typebox";
import { Value } from "typebox/value";
import { expect, test } from "vitest";
import { createClient, each } from "../../src/client/client.ts";
import { countEvents } from "../../src/operate/statistics-round.ts";
import { createDocument } from "../../src/server/openapi.ts";
import { ROUTES } from "../../src/server/routes/routes.ts";
import { createDatabase } from "../support/database.ts";
import { HANDLER, makeDead, register } from "../support/dead.ts";
import { deliver } from "../support/deliver.ts";
import { insertEffect } from "../support/ledger.ts";
import { startTestServer } from "../support/in-process.ts";
import { storeDirectly } from "../support/store.ts";
import { until } from "../support/until.ts";

/** A store in which every list has something. */
async function start() {
  const store = await createDatabase();
  const server = await startTestServer({
    database: store.url,
    bodyKeys: [`a:${Buffer.alloc(32, 7).toString("base64")}`],
  });
  server.ukemi.on("stripe", "charge.succeeded", () => Promise.resolve());
  await server.ukemi.work();
  await register(store.pool);
  await makeDead(store, ["evt_1", "evt_2", "evt_3"], {
    tenant: "org_1",
    refs: [{ kind: "payment_intent", id: "pi_1" }],
  });
  await deliver(server.url, "evt_bad", { secret: "whsec_wrong" });
  await until(
    async () => (await store.pool.query("select from ukemi.rejections")).rowCount === 1,
    "the rejection to be kept",
  );
  return { ...store, ...server, store, client: createClient({ url: server.url }) };
}

/** What each call is asked with: every route of the document has an answer to be compared. */
async function asksOf({ store, client, url, pool }: Awaited<ReturnType<typeof start>>) {
  const [first, second, third] = (await client.listDead()).items;
  const rejection = (await client.listRejections()).items[0]!;
  await countEvents(pool, { recentMs: 0 });
  await pool.query(
    `insert into ukemi.anomalies (hour, source, type, kind, received, expected_low, expected_high)
     values (date_trunc('hour', now()), 'stripe', 'charge.succeeded', 'silent', 0, 3, 9)`,
  );
  const effects = {
    held: await insertEffect(pool, { state: "held" }),
    planned: await insertEffect(pool, { state: "planned" }),
  };
  await pool.query(
    "insert into ukemi.mail_suppressions (address, reason) values ('adam@example.com', 'bounce')",
  );
  const token = await client.createToken({ name: "x", scope: "admin", reason: "x" });
  const reason = "the document";
  const made = await createClient({ url, token: token.secret! }).createOperation({
    kind: "replay",
    name: "one of them",
    filter: { event: third!.event_id! },
    canary: true,
    reason,
  });
  return {
    secret: token.secret!,
    event: first!.event!,
    asks: {
      listEvents: {},
      getEvent: { id: "evt_1" },
      getEventBody: { id: "evt_1" },
      routeEvents: { since: "2020-01-01", dry_run: true },
      listJobs: {},
      getJob: { id: String(first!.id) },
      listDead: {},
      groupDead: {},
      getDead: { id: String(first!.id) },
      replayDead: { ids: [second!.id, 999_999], reason },
      dropDead: { ids: [second!.id], reason },
      listOperations: {},
      previewOperation: { kind: "drop", all: true },
      createOperation: { kind: "drop", ids: [first!.id], name: "one", reason },
      getOperation: { id: made.id },
      listOperationItems: { id: made.id },
      abortOperation: { id: made.id, reason },
      resumeOperation: { id: made.id, reason },
      listEffects: {},
      getEffect: { id: effects.held },
      resolveEffect: { id: effects.held, as: "done", reason },
      cancelEffect: { id: effects.planned, reason },
      addSuppression: { address: "jane@example.com", reason },
      listSuppressions: {},
      removeSuppression: { address: "jane@example.com", reason },
      listDestinations: {},
      pauseDestination: { name: "smtp://mail.example.com", minutes: 1, reason },
      resumeDestination: { name: "smtp://mail.example.com", reason },
      listQueues: {},
      pauseQueue: { name: "default", reason },
      resumeQueue: { name: "default", reason },
      listHandlers: {},
      removeHandler: { name: HANDLER, reason },
      listWorkers: { ended: true },
      listRejections: {},
      getRejection: { id: String(rejection.id) },
      listAudit: {},
      countTypes: {},
      countHours: {},
      listAnomalies: {},
      previewRetention: {},
      eraseBodies: { ref: "pi_of_nobody", reason },
      listDataKeys: {},
      listTokens: {},
      createToken: { name: "y", scope: "read", tenants: ["org_1"], reason },
      rotateToken: { id: token.id, reason },
      revokeToken: { id: token.id, reason },
    } as Readonly<Record<string, object>>,
    store,
  };
}

test("every answer is what the document says, and nothing beside it", async () => {
  const started = await start();
  const { asks, secret } = await asksOf(started);
  const client = createClient({ url: started.url, token: secret }) as unknown as Record<
    string,
    (input: object) => Promise<unknown>
  >;
  expect(Object.keys(asks).toSorted()).toEqual(ROUTES.map(({ id }) => id).toSorted());
  for (const route of ROUTES) {
    const answer = await client[route.id]!(asks[route.id]!);
    if (answer instanceof Uint8Array) continue;
    const faults = Value.Errors(strict(route.answer), answer).map(
      ({ instancePath, message }) => `${instancePath} ${message}`,
    );
    expect(faults, route.id).toEqual([]);
    if (isList(answer)) expect(answer.items.length, route.id).toBeGreaterThan(0);
  }
});

/** Times are text in JSON; a format says nothing to this checker, so their form is checked as a pattern. */
function strict(schema: TSchema): TSchema {
  const text = JSON.stringify(schema).replaceAll(
    '"format":"date-time"',
    '"pattern":"^\\\\d{4}-\\\\d\\\\d-\\\\d\\\\dT.*(Z|[+-]\\\\d\\\\d:\\\\d\\\\d)$"',
  );
  return Type.Unsafe(JSON.parse(text) as object);
}

const isList = (answer: unknown): answer is { items: unknown[] } =>
  typeof answer === "object" && answer !== null && "items" in answer;

test("the document is served to anyone, and every reference in it leads somewhere", async () => {
  const { url } = await start();
  const response = await fetch(`${url}/api/v1/openapi.json`);
  const document = (await response.json()) as ReturnType<typeof createDocument>;
  expect(document).toEqual(createDocument(ROUTES));
  const references = [...JSON.stringify(document).matchAll(/"#\/components\/schemas\/(\w+)"/g)];
  expect(references.length).toBeGreaterThan(20);
  for (const [, name] of references) expect(document.components.schemas).toHaveProperty(name!);
  const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods));
  expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(ROUTES.length);
});

test("says which routes take a key, and what each refuses of its own", () => {
  const { paths } = createDocument(ROUTES);
  for (const route of ROUTES) {
    const { parameters, responses } = paths[route.path]![route.method.toLowerCase()] as {
      parameters: { name: string; in: string }[];
      responses: Record<string, { description: string }>;
    };
    const takesKey = route.method === "POST" && route.id !== "previewOperation";
    expect(
      parameters.some(({ name }) => name === "Idempotency-Key"),
      route.id,
    ).toBe(takesKey);
    expect("422" in responses, route.id).toBe(takesKey);
    expect("413" in responses, route.id).toBe(route.method === "POST");
    const conflicts = ["eraseBodies", "resolveEffect", "cancelEffect"];
    expect("409" in responses, route.id).toBe(conflicts.includes(route.id));
  }
  expect(
    (paths["/erasures"]!.post as { responses: Record<string, { description: string }> }).responses["409"]!
      .description,
  ).toContain("Jobs still need this body");
});

test("every list is walked to its end while rows arrive, without missing or repeating one", async () => {
  const { client, store, pool } = await start();
  await pool.query("delete from ukemi.subscriptions");
  const before = Array.from({ length: 60 }, (_, index) => `evt_early_${index}`);
  for (const id of before) await storeDirectly(store.url, [id]);
  const walks = {
    listEvents: (limit: number) => each(client.listEvents, { limit }),
    listJobs: (limit: number) => each(client.listJobs, { limit }),
    listAudit: (limit: number) => each(client.listAudit, { limit }),
    listDead: (limit: number) => each(client.listDead, { limit }),
  };
  await register(pool);
  await makeDead(
    store,
    before.map((id) => `${id}_dead`),
  );
  await client.replayDead({
    ids: (await client.listDead({ limit: 50 })).items.slice(0, 30).map(({ id }) => id),
    reason: "for the audit",
  });
  for (const [name, walk] of Object.entries(walks)) {
    const there = new Set<number | string>();
    for await (const item of walk(200)) there.add(item.id);
    const seen: (number | string)[] = [];
    let late = 0;
    for await (const item of walk(7)) {
      seen.push(item.id);
      if (seen.length % 7 === 0) await makeDead(store, [`evt_late_${name}_${late++}`]);
    }
    expect(late).toBeGreaterThan(3);
    expect(new Set(seen).size, name).toBe(seen.length);
    expect(
      [...there].filter((id) => !seen.includes(id)),
      name,
    ).toEqual([]);
  }
});

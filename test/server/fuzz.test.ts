// 10,000 requests that no sane client makes: only the answers of the design, never a 500, never a hang, memory flat.
import { Agent, request as httpRequest } from "node:http";
import fc from "fast-check";
import { expect, test } from "vitest";
import { sampleEvent } from "../../src/testing/sample-events.ts";
import { signStripe } from "../../src/testing/sign.ts";
import { createDatabase } from "../support/database.ts";
import { deliver } from "../support/deliver.ts";
import { startTestServer } from "../support/in-process.ts";
import { SECRET } from "../support/server.ts";

const ALLOWED = new Set([204, 400, 404, 405, 413]);
const REQUESTS = 10_000;
const LANES = 32;

interface Odd {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

const now = () => Math.floor(Date.now() / 1000);
const printable = fc.string({
  unit: fc
    .integer({ min: 0x20, max: 0xff })
    .filter((code) => code !== 0x7f)
    .map((code) => String.fromCharCode(code)),
  maxLength: 300,
});
const bytes = fc.uint8Array({ maxLength: 2000 }).map((array) => Buffer.from(array));
const json = fc.jsonValue({ maxDepth: 6 }).map((value) => Buffer.from(JSON.stringify(value)));
const event = fc
  .constantFrom("charge.succeeded", "invoice.paid", "x")
  .map((type) => Buffer.from(sampleEvent(type)));
const almostEvent = fc
  .record(
    {
      id: fc.oneof(fc.string(), fc.jsonValue(), fc.constant("evt_" + "x".repeat(400))),
      object: fc.constantFrom("event", "v2.core.event", "list", 1, null),
      type: fc.oneof(fc.string(), fc.jsonValue()),
      created: fc.oneof(fc.integer(), fc.double(), fc.string(), fc.constant(8.64e15)),
      livemode: fc.oneof(fc.boolean(), fc.jsonValue()),
      account: fc.oneof(fc.string(), fc.jsonValue()),
      data: fc.oneof(fc.record({ object: fc.jsonValue() }), fc.jsonValue()),
    },
    { requiredKeys: [] },
  )
  .map((value) => Buffer.from(JSON.stringify(value)));
const body = fc.oneof(
  bytes,
  json,
  event,
  almostEvent,
  fc.constant(Buffer.alloc(0)),
  fc.constant(Buffer.alloc(20_000, "[")),
);

const signature = (content: Buffer) =>
  fc.oneof(
    { weight: 3, arbitrary: fc.constant(signStripe(content, SECRET)["stripe-signature"]) },
    fc.constant(signStripe(content, "whsec_wrong")["stripe-signature"]),
    fc
      .integer()
      .map((shift) => signStripe(content, SECRET, { timestamp: now() + shift })["stripe-signature"]),
    fc.constantFrom(
      "t=1e9,v1=",
      "t=-1,v1=aa",
      `t=${now()},v0=${"a".repeat(64)}`,
      "v1",
      ",,,",
      `t=${now()},v1=${"é".repeat(64)}`,
    ),
    printable,
  );

const odd: fc.Arbitrary<Odd> = body.chain((content) =>
  fc.record({
    method: fc.oneof(
      { weight: 9, arbitrary: fc.constant("POST") },
      fc.constantFrom("GET", "PUT", "DELETE", "PATCH", "OPTIONS"),
    ),
    path: fc.oneof(
      { weight: 9, arbitrary: fc.constant("/webhooks/stripe") },
      fc.constantFrom(
        "/webhooks/",
        "/webhooks/%00",
        "/webhooks/stripe%2f",
        "/webhooks/constructor",
        "/webhooks/stripe?a=%ff",
        "/webhooks//stripe",
      ),
    ),
    headers: fc.record(
      {
        "stripe-signature": signature(content),
        "content-type": fc.oneof(fc.constant("application/json"), printable),
        "content-encoding": fc.constantFrom("identity", "gzip", "br", ""),
        "x-request-id": printable,
        traceparent: printable,
        "x-forwarded-for": printable,
        cookie: printable,
      },
      { requiredKeys: ["stripe-signature"] },
    ),
    body: fc.constant(content),
  }),
);

function send(base: URL, agent: Agent, { method, path, headers, body: content }: Odd): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      {
        host: base.hostname,
        port: base.port,
        agent,
        method,
        path,
        headers: { ...headers, "content-length": content.length },
      },
      (response) => {
        response.resume();
        response.on("end", () => resolve(response.statusCode ?? 0));
      },
    );
    request.setTimeout(10_000, () => request.destroy(new Error("no answer within 10 s")));
    request.on("error", reject);
    request.end(content);
  });
}

test(`answers ${REQUESTS} odd requests as the design says`, async () => {
  const seed = Number(process.env.FUZZ_SEED ?? Date.now() % 2 ** 31);
  console.log(`FUZZ_SEED=${seed}`);
  const { url: database, pool } = await createDatabase();
  const server = await startTestServer({ database, bodyBytesMax: 16_384, refusedPerMinute: 1_000_000 });
  const base = new URL(server.url);
  const agent = new Agent({ keepAlive: true, maxSockets: LANES });
  const requests = fc.sample(odd, { numRuns: REQUESTS, seed });
  const counts = new Map<number, number>();
  const residents: number[] = [];
  let next = 0;

  async function lane(): Promise<void> {
    for (let index = next++; index < REQUESTS; index = next++) {
      const one = requests[index]!;
      const status = await send(base, agent, one).catch((error: Error) => {
        throw new Error(`request ${index} of seed ${seed} (${one.method} ${one.path}): ${error.message}`);
      });
      if (!ALLOWED.has(status))
        throw new Error(
          `request ${index} of seed ${seed} was answered with ${status}: ${JSON.stringify(one)}`,
        );
      counts.set(status, (counts.get(status) ?? 0) + 1);
      if (index % 1000 === 999) residents.push(Math.round(process.memoryUsage().rss / 2 ** 20));
    }
  }
  await Promise.all(Array.from({ length: LANES }, lane));
  agent.destroy();
  console.log(Object.fromEntries(counts), `rss MiB per 1000: ${residents.join(" ")}`);

  // every 204 is a stored event, and nothing else is stored
  const { rows } = await pool.query<{ events: number; bodies: number }>(
    "select (select count(*)::int from ukemi.events) as events, (select count(*)::int from ukemi.event_bodies) as bodies",
  );
  const duplicates = server.lines().filter((line) => line.result === "duplicate").length;
  expect(rows).toEqual([{ events: counts.get(204)! - duplicates, bodies: counts.get(204)! - duplicates }]);
  expect(server.lines().filter((line) => line.level === "error")).toEqual([]);
  expect(residents.at(-1)! - residents[4]!).toBeLessThan(150);
  expect((await deliver(server.url, "evt_after")).status).toBe(204);
});

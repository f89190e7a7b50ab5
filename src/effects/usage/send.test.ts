import { afterEach, describe, expect, test } from "vitest";
import { startApiMeter, type ApiMeter, type ApiMeterOptions } from "../../testing/api-meter.ts";
import { aboutUpdated, noFigures } from "./counters.ts";
import { createMeter } from "./meter.ts";
import { createSender, type Batch } from "./send.ts";

let meter: ApiMeter;
afterEach(() => meter.stop());

interface Said {
  readonly level: string;
  readonly text: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

const SECRET = "token-canary-7f3a";

async function sending(
  options: ApiMeterOptions,
  { retriesMax = 3, timeoutMs = 5000, stopsAfter = Infinity } = {},
) {
  meter = await startApiMeter({ token: SECRET, ...options });
  const figures = noFigures();
  const said: Said[] = [];
  const client = createMeter({ url: meter.url, token: SECRET, timeoutMs });
  const stopping = new AbortController();
  const send = createSender({
    meter: client,
    retriesMax,
    figures,
    say(level, text, fields = {}) {
      if (said.push({ level, text, fields }) === stopsAfter) queueMicrotask(() => stopping.abort());
    },
    signal: stopping.signal,
    firstDelayMs: 10,
  });
  return { send, figures, said };
}

function batchOf(count: number): Batch {
  const records = Array.from(
    { length: count },
    (_, index) => `{"source_event_id":"u${index}","units":${index}}`,
  );
  return { tenant: "acme", records, from: "/home/jobs/use.ndjson" };
}

describe("the table of answers", () => {
  test.each([200, 201, 204])("%d is a success, and not tried again", async (status) => {
    const { send, figures } = await sending({ fault: () => ({ status }) });
    expect(await send(batchOf(3))).toMatchObject([{ state: "done" }]);
    expect(meter.calls).toHaveLength(1);
    expect(figures).toMatchObject({ sent: 3, mismatched: 0, answers: { "2xx": 1 } });
  });

  test.each([
    [400, "refused", /correct the records/],
    [422, "refused", /correct the records/],
    [409, "refused", /does not accept/],
    [418, "refused", /does not accept/],
    [302, "refused", /another address/],
    [401, "blocked", /API_METER_TOKEN/],
    [403, "blocked", /API_METER_TENANT_ID/],
    [404, "blocked", /API_METER_URL/],
  ])("%d is %s, and not tried again", async (status, state, hint) => {
    const { send, said } = await sending({ fault: () => ({ status, body: '{"detail":"no such unit"}' }) });
    expect(await send(batchOf(2))).toMatchObject([{ state, why: expect.stringMatching(hint) }]);
    expect(meter.calls).toHaveLength(1);
    expect(said).toMatchObject([{ level: "error", text: expect.stringContaining("no such unit") }]);
  });

  test.each([
    [429, "warn"],
    [500, "error"],
    [502, "error"],
    [503, "error"],
    [599, "error"],
  ])("%d is tried again, and taken when it passes", async (status, level) => {
    const { send, figures, said } = await sending({ fault: (call) => (call < 3 ? { status } : undefined) });
    expect(await send(batchOf(2))).toMatchObject([{ state: "done" }]);
    expect(figures).toMatchObject({ sent: 2, inserted: 2, retries: 2, exhausted: 0 });
    expect(said).toMatchObject([
      { level, fields: { status, retry: 1, delay_ms: 10 } },
      { level, fields: { status, retry: 2, delay_ms: 20 } },
    ]);
  });

  test("what stays away is due after three retries: 1, 2, 4", async () => {
    const { send, figures, said } = await sending({ fault: () => ({ status: 503 }) });
    expect(await send(batchOf(2))).toMatchObject([{ state: "due" }]);
    expect(meter.calls).toHaveLength(4);
    expect(said.map(({ fields }) => fields.delay_ms)).toEqual([10, 20, 40, undefined]);
    expect(figures).toMatchObject({ sent: 0, retries: 3, exhausted: 1, answers: { "5xx": 4 } });
  });

  test.each([{ cut: true } as const, { hang: true } as const])(
    "no answer (%j) is tried again",
    async (fault) => {
      const { send, figures } = await sending(
        { fault: (call) => (call === 1 ? fault : undefined) },
        { timeoutMs: 300 },
      );
      expect(await send(batchOf(2))).toMatchObject([{ state: "done" }]);
      expect(figures.answers).toMatchObject({ network: 1, "2xx": 1 });
    },
  );

  test("an answer that was lost is a resend which the meter recognises", async () => {
    const { send, figures } = await sending({
      fault: (call) => (call === 1 ? { loseAnswer: true } : undefined),
    });
    await send(batchOf(5));
    expect(figures).toMatchObject({ sent: 5, inserted: 0, updated: 5 });
    expect(aboutUpdated(figures)).toBe("resend");
    expect(meter.records.size).toBe(5);
  });

  test("413 halves the batch until it fits", async () => {
    const { send } = await sending({ fault: (_, ids) => (ids.length > 2 ? { status: 413 } : undefined) });
    const sent = await send(batchOf(7));
    expect(sent.every(({ state }) => state === "done")).toBe(true);
    expect(meter.records.size).toBe(7);
    expect(sent.flatMap(({ batch }) => batch.records)).toEqual(batchOf(7).records);
  });

  test("413 for one record alone is refused, and the others are sent", async () => {
    const { send } = await sending({ fault: (_, ids) => (ids.includes("u2") ? { status: 413 } : undefined) });
    const sent = await send(batchOf(4));
    expect(sent.filter(({ state }) => state === "refused").map(({ batch }) => batch.records)).toEqual([
      [batchOf(4).records[2]],
    ]);
    expect(meter.records.size).toBe(3);
  });

  test("a half that is blocked keeps the other from being asked", async () => {
    const { send } = await sending({ fault: (call) => ({ status: call === 1 ? 413 : 401 }) });
    expect(await send(batchOf(4))).toMatchObject([{ state: "blocked" }, { state: "blocked" }]);
    expect(meter.calls).toHaveLength(2);
  });

  test("Retry-After wins over our own delay, in seconds and as a date", async () => {
    const date = new Date(Date.now() + 1000).toUTCString();
    const headers = [{ "retry-after": "0" }, { "retry-after": date, date: new Date().toUTCString() }];
    const { send, said } = await sending({
      fault: (call) => (call < 3 ? { status: 429, headers: headers[call - 1]! } : undefined),
    });
    await send(batchOf(1));
    expect(said[0]!.fields.delay_ms).toBe(0);
    expect(said[1]!.fields.delay_ms).toBeGreaterThanOrEqual(0);
    expect(said[1]!.fields.delay_ms).toBeLessThanOrEqual(2000);
  });

  test("nobody waits for an hour: the batch is due for the next run", async () => {
    const { send } = await sending({ fault: () => ({ status: 429, headers: { "retry-after": "3600" } }) });
    expect(await send(batchOf(1))).toMatchObject([{ state: "due" }]);
    expect(meter.calls).toHaveLength(1);
  });

  test("a stop does not wait for the next try", async () => {
    const { send } = await sending(
      { fault: () => ({ status: 503, headers: { "retry-after": "60" } }) },
      { stopsAfter: 1 },
    );
    expect(await send(batchOf(1))).toMatchObject([{ state: "due", why: "the run was stopped" }]);
  });
});

describe("what the meter counted", () => {
  test("another number than was sent is told", async () => {
    const { send, figures, said } = await sending({
      fault: () => ({ status: 200, body: '{"inserted":1,"updated":0}' }),
    });
    await send(batchOf(3));
    expect(figures).toMatchObject({ sent: 3, mismatched: 1 });
    expect(said).toMatchObject([{ level: "warn", text: expect.stringContaining("1 inserted") }]);
  });

  test.each(["", "ok", "null", '{"inserted":"3"}', '{"inserted":-1}'])("%j says nothing", async (body) => {
    const { send, figures } = await sending({ fault: () => ({ status: 200, body }) });
    await send(batchOf(3));
    expect(figures).toMatchObject({ sent: 3, inserted: 0, mismatched: 0 });
  });

  test("many that were there already are unusual", () => {
    expect(aboutUpdated({ ...noFigures(), inserted: 95, updated: 5 })).toBeUndefined();
    expect(aboutUpdated({ ...noFigures(), inserted: 80, updated: 20 })).toBe("unusual");
  });
});

test("the request is what the meter documents, and the token is in nothing that is said", async () => {
  const { send, said } = await sending({ fault: (call) => (call === 1 ? { status: 401 } : undefined) });
  await send(batchOf(2));
  await send(batchOf(2));
  expect(meter.calls[1]).toEqual({
    authorization: `Bearer ${SECRET}`,
    tenant: "acme",
    metadata: { exporter: "ukemi", from: "use.ndjson", count: 2, exported_at: expect.any(String) },
    ids: ["u0", "u1"],
    status: 200,
  });
  expect(JSON.stringify(said)).not.toContain(SECRET);
});

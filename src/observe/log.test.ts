import { pino } from "pino";
import { expect, test } from "vitest";
import type { Receipt } from "../inbox/receipt.ts";
import { createLogger, logReceipt } from "./log.ts";

const RECEIPT: Receipt = {
  requestId: "req_1",
  source: "stripe",
  result: "accepted",
  status: 204,
  durationMs: 12.3456,
  commitMs: 11.2,
  bodyBytes: 1500,
  eventId: 'evt_"quoted"',
  eventType: "charge.succeeded",
  messageId: "0195b2c0-2492-7d23-a5d5-123456789abc",
  address: "203.0.113.7",
};

function gathered() {
  const written: string[] = [];
  const lines = () => written.map((line) => JSON.parse(line) as Record<string, unknown>);
  return { stream: { write: (line: string) => void written.push(line) }, lines };
}

test("writes what carries a secret's name as redacted, also inside a field", () => {
  const { stream, lines } = gathered();
  createLogger("info", stream).info({ token: "t", request: { cookie: "c", path: "/" } }, "said");
  expect(lines()[0]).toMatchObject({
    app: "ukemi",
    level: "info",
    token: "[redacted]",
    request: { cookie: "[redacted]", path: "/" },
    msg: "said",
  });
});

test("writes one wide line for a delivery, without the fields that it has not", () => {
  const { stream, lines } = gathered();
  logReceipt(createLogger("info", stream), RECEIPT);
  const [{ time, ...line } = {}, ...more] = lines();
  expect(more).toEqual([]);
  expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  expect(Object.entries(line)).toEqual([
    ["level", "info"],
    ["app", "ukemi"],
    ["request_id", "req_1"],
    ["source", "stripe"],
    ["result", "accepted"],
    ["status", 204],
    ["duration_ms", 12.35],
    ["commit_ms", 11.2],
    ["body_bytes", 1500],
    ["event_id", 'evt_"quoted"'],
    ["event_type", "charge.succeeded"],
    ["message_id", "0195b2c0-2492-7d23-a5d5-123456789abc"],
    ["address", "203.0.113.x"],
    ["msg", "webhook"],
  ]);
});

test("writes a wide line exactly as any other line with these fields", () => {
  const { stream, lines } = gathered();
  const logger = createLogger("info", stream);
  logReceipt(logger, { ...RECEIPT, commitMs: NaN, diagnosis: 'a "text"\n\u2028\ud800', tenant: "日本" });
  const [{ time, level, app, msg, ...fields } = {}] = lines();
  logger.info(fields, msg as string);
  expect(lines()[1]).toEqual({ time: expect.any(String) as string, level, app, msg, ...fields });
  expect(Object.keys(lines()[1]!)).toEqual(Object.keys(lines()[0]!));
  expect([time, level, app, msg]).toEqual([expect.any(String), "info", "ukemi", "webhook"]);
});

test("follows the level, also where it is changed later", () => {
  const { stream, lines } = gathered();
  const logger = createLogger("warn", stream);
  logReceipt(logger, RECEIPT);
  logger.level = "info";
  logReceipt(logger, RECEIPT);
  expect(lines()).toHaveLength(1);
});

test("keeps the rules of a logger that is the application's own", () => {
  const { stream, lines } = gathered();
  logReceipt(pino({ redact: { paths: ["event_id"], censor: "hidden" } }, stream), RECEIPT);
  expect(lines()[0]).toMatchObject({ event_id: "hidden", source: "stripe" });
});

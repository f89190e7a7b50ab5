// `ukemi usage` as a batch job runs it.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { startApiMeter, type ApiMeter, type MeterFault } from "../../src/testing/api-meter.ts";
import { runCli } from "../support/cli.ts";
import { until } from "../support/until.ts";

const TOKEN = "token-canary-88d2";
let folder: string;
let meter: ApiMeter;
let fault: (call: number) => MeterFault | undefined;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "ukemi-usage-"));
  fault = () => undefined;
  meter = await startApiMeter({ token: TOKEN, fault: (call) => fault(call) });
});
afterEach(async () => {
  await meter.stop();
  await rm(folder, { recursive: true, force: true });
});

async function fileOf(lines: readonly string[]): Promise<string> {
  const path = join(folder, "use.ndjson");
  await writeFile(path, lines.join("\n"));
  return path;
}

const recordsOf = (count: number) =>
  Array.from({ length: count }, (_, index) => `{"meter":"calls","at":${index}}`);

function usage(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  return runCli(["usage", ...args, "--data", join(folder, "data")], {
    API_METER_URL: meter.url,
    API_METER_TOKEN: TOKEN,
    API_METER_TENANT_ID: "acme",
    BATCH_SIZE: "100",
    MAX_RETRIES: "1",
    ...env,
  });
}

const json = (text: string): unknown => JSON.parse(text);

describe("push", () => {
  test("sends a file in batches and says what the meter counted", async () => {
    const run = await usage(["push", await fileOf(recordsOf(250))]);
    expect(run, run.output).toMatchObject({ code: 0, stderr: "" });
    expect(run.stdout).toMatch(/sent +250 records in .*: 250 inserted, 0 updated\nspool +empty/);
    expect(meter.calls.map(({ ids }) => ids.length)).toEqual([100, 100, 50]);
  });

  test("of the same file again is recognised as a resend", async () => {
    const file = await fileOf(recordsOf(20));
    await usage(["push", file]);
    const run = await usage(["push", file]);
    expect(run.code).toBe(0);
    expect(run.stdout).toContain("0 inserted, 20 updated");
    expect(run.stdout).toContain("this was a resend");
    expect(meter.records.size).toBe(20);
  });

  test("saves what cannot be sent, and sends it first with the next run", async () => {
    fault = (call) => (call <= 2 ? { status: 503 } : undefined);
    const run = await usage(["push", await fileOf(recordsOf(300))]);
    expect(run.code).toBe(1);
    expect(run.stdout).toMatch(/due +3 batches: sent with the next run/);
    expect(meter.records.size).toBe(0);
    const next = await usage(["push", await fileOf(['{"meter":"calls","at":"later"}'])]);
    expect(next, next.output).toMatchObject({ code: 0 });
    expect(meter.records.size).toBe(301);
    expect(meter.calls.at(-1)!.ids).toHaveLength(1);
  });

  test("ends at once where the meter refuses us, keeps the batch, and sends it when told", async () => {
    fault = () => ({ status: 403, body: "not your tenant" });
    const file = await fileOf(recordsOf(500));
    const run = await usage(["push", file]);
    expect(run.code).toBe(1);
    expect(meter.calls).toHaveLength(1);
    expect(run.output).toContain("API_METER_TENANT_ID");
    expect(run.stdout).toMatch(/blocked +1 batch: ukemi usage resend --blocked/);
    fault = () => undefined;
    expect(await usage(["resend"])).toMatchObject({ code: 0 });
    expect(meter.records.size).toBe(0);
    expect(await usage(["resend", "--blocked"])).toMatchObject({ code: 0 });
    expect(meter.records.size).toBe(100);
  });

  test("goes on behind a batch that is refused, and says why", async () => {
    fault = (call) => (call === 2 ? { status: 422, body: '{"detail":"units missing"}' } : undefined);
    const run = await usage(["push", await fileOf(recordsOf(300))]);
    expect(run.code).toBe(1);
    expect(run.stderr).toContain("units missing");
    expect(meter.records.size).toBe(200);
    expect(await usage(["resend", "--refused"])).toMatchObject({ code: 0 });
    expect(meter.records.size).toBe(300);
  });

  test("names lines that are no records, and sends the others", async () => {
    const run = await usage(["push", await fileOf([...recordsOf(3), "oops", "", "[1]"])]);
    expect(run.code).toBe(1);
    expect(run.stdout).toContain("line 4: it is not JSON");
    expect(run.stdout).toContain("line 6: it is not an object");
    expect(meter.records.size).toBe(3);
  });

  test("writes logs as JSON where nobody looks, and the report for scripts", async () => {
    fault = (call) => (call === 1 ? { status: 503 } : undefined);
    const run = await usage(["push", await fileOf(recordsOf(10)), "--json"]);
    expect(json(run.stderr.trim())).toMatchObject({
      level: "error",
      status: 503,
      retry: 1,
      delay_ms: 1000,
      records: 10,
    });
    expect(json(run.stdout)).toMatchObject({
      records: 10,
      figures: { sent: 10, inserted: 10, retries: 1, answers: { "5xx": 1, "2xx": 1 } },
      spool: { batches: { due: 0, refused: 0, blocked: 0 } },
    });
    expect(run.output).not.toContain(TOKEN);
  });

  test("says what is missing", async () => {
    const file = await fileOf([]);
    const run = await usage(["push", file], { API_METER_URL: "", API_METER_TOKEN: "" });
    expect(run).toMatchObject({ code: 2 });
    expect(run.stderr).toContain("API_METER_URL, API_METER_TOKEN must be set");
    expect(await usage(["push", join(folder, "none")])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("ENOENT"),
    });
    const wrong = await usage(["push", file], { BATCH_SIZE: "20", API_METER_URL: "meter.example.com" });
    expect(wrong).toMatchObject({ code: 2 });
    expect(wrong.stderr).toContain("BATCH_SIZE must be a whole number from 100 to 500");
    expect(wrong.stderr).toContain("API_METER_URL must be a URL");
  });

  test("lets no two exporters work on one spool", async () => {
    fault = (call) => (call === 1 ? { hang: true } : undefined);
    const file = await fileOf(recordsOf(10));
    const first = usage(["push", file]);
    await until(() => meter.calls.length > 0, "the first one has sent its batch");
    const second = await usage(["push", file]);
    expect(second).toMatchObject({ code: 1, stderr: expect.stringContaining("Another exporter") });
    await meter.stop(); // the first one's call fails, and so does its retry
    expect(await first).toMatchObject({ code: 1 });
    meter = await startApiMeter({ token: TOKEN });
    expect(await usage(["resend"])).toMatchObject({ code: 0 });
    expect(meter.records.size).toBe(10);
  });
});

test("status shows what waits, also for scripts", async () => {
  expect(await usage(["status"])).toMatchObject({ code: 0, stdout: "spool     empty\n" });
  fault = () => ({ status: 400 });
  await usage(["push", await fileOf(recordsOf(10))]);
  expect((await usage(["status"])).stdout).toMatch(
    /refused +1 batch: ukemi usage resend --refused\nspool +\d+ KB/,
  );
  expect(json((await usage(["status", "--json"])).stdout)).toMatchObject({
    batches: { due: 0, refused: 1, blocked: 0 },
    list: [{ state: "refused", bytes: expect.any(Number) }],
    unfinished: 0,
  });
});

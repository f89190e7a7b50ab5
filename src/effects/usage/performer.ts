// Carrying out effects of kind usage: records of use, each known to the meter by its `source_event_id`.
import { UkemiError } from "../../errors.ts";
import { readOptions, type Draft } from "../draft.ts";
import type { Performer } from "../performer.ts";
import { createGather } from "./gather.ts";
import { createMeter } from "./meter.ts";
import { idOf, readRecord } from "./record.ts";

export interface UsageOptions {
  readonly url: string;
  readonly token: string;
  /** As the meter knows it. */
  readonly tenant: string;
  readonly batchSize: number;
  readonly retriesMax: number;
}

/** A record of use: any JSON object. Without a `source_event_id` it gets one that is made of its text. */
export type UsageRecordGiven = Readonly<Record<string, unknown>> & { readonly source_event_id?: string };

export interface UsageKind extends Performer {
  /** Checks a record, and makes it ready to be planned. */
  draft(record: UsageRecordGiven, dedupe: string | undefined): Draft;
}

const TIMEOUT_MS = 30_000;
const DAY_MS = 86_400_000;
/** The meter upserts: it knows a record again for ever. */
const ALWAYS = Number.POSITIVE_INFINITY;

export function createUsage({ url, token, tenant, batchSize, retriesMax }: UsageOptions): UsageKind {
  const meter = createMeter({ url, token, timeoutMs: TIMEOUT_MS });
  const gather = createGather({
    meter,
    most: batchSize,
    bodyOf: (records) =>
      `{"tenant_id":${JSON.stringify(tenant)},"export_metadata":{"exporter":"ukemi","count":${records.length}},"records":[${records.join(",")}]}`,
  });
  const destination = new URL(url).origin;
  const retry = { maxAttempts: retriesMax + 1, delayMs: (nth: number) => 1000 * 2 ** (nth - 1) };
  return {
    kind: "usage",
    retry,
    limitMs: DAY_MS,
    timeoutMs: TIMEOUT_MS,
    concurrency: batchSize,
    destinations: [destination],
    limitsFor: () => ({}),
    keyValidMs: () => ALWAYS,
    perform: ({ intent }, limits) => gather.send(intent, limits),
    auditOf: () => undefined, // a million records are no news; dead ones are audited with their jobs
    close: () => meter.close(),
    draft(record, dedupe) {
      const text = toJson(record);
      const read = readRecord(text);
      if ("fault" in read)
        throw new UkemiError("invalid_option", `effects.usage: the record is wrong: ${read.fault}.`);
      const { dedupeKey } = readOptions("usage", { dedupe: dedupe ?? record.source_event_id ?? idOf(text) });
      return {
        kind: "usage",
        dedupeKey,
        target: tenant,
        amount: null,
        currency: null,
        intent: read.text,
        destination,
        onUncertain: "retry",
        maxAttempts: retry.maxAttempts,
        after: null,
        cancelled: null,
      };
    },
  };
}

function toJson(record: unknown): string {
  try {
    return JSON.stringify(record) ?? "null";
  } catch {
    return "null";
  }
}

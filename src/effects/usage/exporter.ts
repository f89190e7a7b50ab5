// The exporter: the spool, its lock and the meter, put together. It needs no database.
import { join } from "node:path";
import { UkemiError } from "../../errors.ts";
import type { Settings } from "../../options.ts";
import { noFigures, type UsageFigures } from "./counters.ts";
import { createExport, type Exported, type FileToPush } from "./export.ts";
import { lockFolder } from "./lock.ts";
import { createMeter } from "./meter.ts";
import { createSender, type Say } from "./send.ts";
import { openSpool, SPOOL_STATES, type SpoolContent, type Spooled, type SpoolState } from "./spool.ts";

export type ExporterSettings = Pick<
  Settings,
  "data" | "apiMeterUrl" | "apiMeterToken" | "apiMeterTenant" | "usageBatchSize" | "usageRetriesMax"
>;

export interface ExporterOptions {
  readonly settings: ExporterSettings;
  readonly say: Say;
  readonly signal: AbortSignal;
}

/** How long the meter may take to answer. */
const TIMEOUT_MS = 30_000;

/** What a run came to. */
export interface UsageReport extends Exported {
  readonly figures: UsageFigures;
  /** What the spool holds now. */
  readonly spool: SpoolStatus;
}

export interface Exporter {
  /** Sends what is due, then the file. */
  push(path: string, onProgress?: FileToPush["onProgress"]): Promise<UsageReport>;
  /** Sends what is due, and what else is named. */
  resend(also: readonly SpoolState[], onBatch?: (done: number, total: number) => void): Promise<UsageReport>;
  close(): Promise<void>;
}

/** Takes hold of the spool; throws where another exporter has it, or where a setting is missing. */
export async function openExporter(options: ExporterOptions): Promise<Exporter> {
  const { say, signal } = options;
  const { url, token, tenant, batchSize, retriesMax } = requireSettings(options.settings);
  const spool = await openSpool(spoolFolder(options.settings.data));
  const lock = await lockFolder(spool.folder);
  const meter = createMeter({ url, token, timeoutMs: TIMEOUT_MS });
  const figures = noFigures();
  const send = createSender({ meter, retriesMax, figures, say, signal });
  const { exported, resend, push } = createExport({ spool, send, say, signal });

  const unfinished = await spool.sweep();
  if (unfinished > 0) {
    say("warn", "An exporter died while it saved a batch: push the file that it worked on again.", {
      unfinished,
    });
  }
  const report = async (): Promise<UsageReport> => ({
    ...exported,
    figures,
    spool: statusOf(await spool.list()),
  });

  return {
    async push(path, onProgress) {
      if (await resend(["due"])) await push({ path, tenant, batchSize, ...(onProgress && { onProgress }) });
      return report();
    },
    async resend(also, onBatch) {
      await resend(["due", ...also], onBatch);
      return report();
    },
    async close() {
      await meter.close();
      await lock.release();
    },
  };
}

/** What the spool holds. */
export interface SpoolStatus {
  readonly batches: Readonly<Record<SpoolState, number>>;
  readonly bytes: number;
  readonly oldest: Date | null;
  /** Files that were never finished, or are being written. */
  readonly unfinished: number;
}

/** Reads what the spool of a data folder holds; it may be in use. */
export async function readSpool(data: string): Promise<SpoolStatus & { readonly list: readonly Spooled[] }> {
  const spool = await openSpool(spoolFolder(data));
  const content = await spool.list();
  return { ...statusOf(content), list: content.batches };
}

function statusOf({ batches, unfinished }: SpoolContent): SpoolStatus {
  const count = (state: SpoolState) => batches.filter((batch) => batch.state === state).length;
  return {
    batches: Object.fromEntries(SPOOL_STATES.map((state) => [state, count(state)])) as Record<
      SpoolState,
      number
    >,
    bytes: batches.reduce((sum, { bytes }) => sum + bytes, 0),
    oldest: batches[0]?.savedAt ?? null,
    unfinished: unfinished.length,
  };
}

export const spoolFolder = (data: string) => join(data, "usage");

function requireSettings(settings: ExporterSettings) {
  const { apiMeterUrl: url, apiMeterToken: token, apiMeterTenant: tenant } = settings;
  const missing = [
    url === undefined && "API_METER_URL",
    token === undefined && "API_METER_TOKEN",
    tenant === undefined && "API_METER_TENANT_ID",
  ].filter((name) => name !== false);
  if (url === undefined || token === undefined || tenant === undefined) {
    throw new UkemiError("invalid_option", `${missing.join(", ")} must be set.`);
  }
  return { url, token, tenant, batchSize: settings.usageBatchSize, retriesMax: settings.usageRetriesMax };
}

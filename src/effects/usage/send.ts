// Sending one batch: tried again where that helps, halved where it is too large, and an honest word on what became of it.
import { basename } from "node:path";
import { sleep } from "../../clock.ts";
import { crashPoint } from "../../crash-point.ts";
import { countAnswer, countTaken, type UsageFigures } from "./counters.ts";
import type { Meter, MeterAnswer } from "./meter.ts";
import type { SpoolState } from "./spool.ts";
import { countedIn, hintFor, mismatchOf, verdictOf, type Verdict } from "./verdict.ts";

export interface Batch {
  readonly tenant: string;
  /** Texts of JSON. */
  readonly records: readonly string[];
  /** Where it came from, for a person. */
  readonly from: string;
}

/** What became of a batch, or of a part of it. */
export interface Sent {
  readonly batch: Batch;
  readonly state: "done" | SpoolState;
  /** For a person; empty where it was taken. */
  readonly why: string;
}

export type Say = (
  level: "info" | "warn" | "error",
  text: string,
  fields?: Readonly<Record<string, unknown>>,
) => void;

export interface SenderOptions {
  readonly meter: Meter;
  readonly retriesMax: number;
  readonly figures: UsageFigures;
  readonly say: Say;
  /** Ends the waiting between tries. */
  readonly signal: AbortSignal;
  /** @default 1000 */
  readonly firstDelayMs?: number;
}

/** What the meter asks for beyond this is not waited for: the batch is saved for the next run. */
const WAIT_MS_MAX = 5 * 60_000;
const SAID_MAX = 500;

/** Makes what sends batches. Several results mean that the batch was halved on the way. */
export function createSender(options: SenderOptions): (batch: Batch) => Promise<readonly Sent[]> {
  const { meter, retriesMax, figures, say, signal, firstDelayMs = 1000 } = options;

  async function send(batch: Batch): Promise<readonly Sent[]> {
    for (let retry = 0; ; retry += 1) {
      const answer = await call(batch);
      const { status } = answer;
      const verdict = verdictOn(answer, batch);
      const as = (state: Sent["state"], why = whyOf(answer)): Sent[] => [{ batch, state, why }];
      switch (verdict) {
        case "done":
          noteTaken(batch, answer);
          return as("done", "");
        case "smaller":
          return halves(batch);
        case "refused":
          say("error", `The meter refused a batch: ${whyOf(answer)}`, fieldsOf(batch, answer));
          return as("refused");
        case "blocked":
          say("error", `The meter refuses us: ${whyOf(answer)}`, fieldsOf(batch, answer));
          return as("blocked");
        case "again": {
          const delayMs = answer.retryAfterMs ?? firstDelayMs * 2 ** retry;
          const isLast = retry >= retriesMax || delayMs > WAIT_MS_MAX || signal.aborted;
          const level = status === 429 ? "warn" : "error";
          if (isLast) {
            figures.exhausted += 1;
            say(level, `Given up for this run: ${whyOf(answer)}`, fieldsOf(batch, answer));
            return as("due");
          }
          figures.retries += 1;
          say(level, `Retry ${retry + 1} of ${retriesMax} in ${delayMs / 1000} s: ${whyOf(answer)}`, {
            ...fieldsOf(batch, answer),
            retry: retry + 1,
            delay_ms: delayMs,
          });
          await sleep(delayMs, signal);
          if (signal.aborted) return as("due", "the run was stopped");
        }
      }
    }
  }

  async function halves(batch: Batch): Promise<Sent[]> {
    const middle = Math.ceil(batch.records.length / 2);
    say("warn", `The meter finds ${batch.records.length} records too large: they are sent as two batches.`);
    const first = await send({ ...batch, records: batch.records.slice(0, middle) });
    const rest = { ...batch, records: batch.records.slice(middle) };
    // one that waits must not be overtaken by the other half, nor what blocks be asked again
    const stopped = first.find(({ state }) => state === "due" || state === "blocked");
    if (stopped) return [...first, { batch: rest, state: stopped.state, why: stopped.why }];
    return [...first, ...(await send(rest))];
  }

  async function call(batch: Batch): Promise<Answered> {
    try {
      crashPoint("usage.before_send");
      const answer = await meter.post(bodyOf(batch));
      crashPoint("usage.after_send");
      countAnswer(figures, answer.status);
      return answer;
    } catch (error) {
      countAnswer(figures, undefined);
      return { status: undefined, text: faultOf(error), retryAfterMs: undefined };
    }
  }

  function noteTaken({ records, from }: Batch, { text }: Answered): void {
    const counted = countedIn(text);
    if (countTaken(figures, records.length, counted)) return;
    say("warn", mismatchOf(counted, records.length), { from });
  }

  return send;
}

/** One record alone cannot be made smaller. */
function verdictOn({ status }: Answered, { records }: Batch): Verdict {
  if (status === undefined) return "again";
  const verdict = verdictOf(status);
  return verdict === "smaller" && records.length === 1 ? "refused" : verdict;
}

/** An answer, or that there was none. */
type Answered =
  | MeterAnswer
  | { readonly status: undefined; readonly text: string; readonly retryAfterMs: undefined };

function bodyOf({ tenant, records, from }: Batch): string {
  // where a file lies is nobody else's business
  const metadata = {
    exporter: "ukemi",
    from: basename(from),
    count: records.length,
    exported_at: new Date().toISOString(),
  };
  const head = JSON.stringify({ tenant_id: tenant, export_metadata: metadata });
  return `${head.slice(0, -1)},"records":[${records.join(",")}]}`;
}

function fieldsOf({ records, from }: Batch, { status }: Answered): Readonly<Record<string, unknown>> {
  return { status: status ?? "none", records: records.length, from, hint: hintFor(status) };
}

/** What the meter said, and what to do about it. */
function whyOf({ status, text }: Answered): string {
  const said = text.replaceAll(/\s+/g, " ").trim().slice(0, SAID_MAX);
  const head = status === undefined ? `no answer (${said})` : `${status}${said === "" ? "" : ` ${said}`}`;
  return `${head}. ${hintFor(status)}`;
}

/** The short name of a fault: its text may carry an address. */
function faultOf(error: unknown): string {
  const { code, name, cause } = error as { code?: unknown; name?: string; cause?: { code?: unknown } };
  const named = [code, cause?.code].find((one) => typeof one === "string");
  return typeof named === "string" ? named : (name ?? "unknown");
}

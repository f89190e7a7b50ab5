// Records of use that are to be sent at the same time share one call to the meter.
import { sleep, steadyMs } from "../../clock.ts";
import type { AttemptResult, CallLimits, Fault } from "../attempt.ts";
import type { Meter, MeterAnswer } from "./meter.ts";
import { agrees, countedIn, hintFor, mismatchOf, verdictOf } from "./verdict.ts";

export interface GatherOptions {
  readonly meter: Meter;
  /** How many records one call takes. */
  readonly most: number;
  /** The body of a call with these records, each JSON text. */
  readonly bodyOf: (records: readonly string[]) => string;
}

export interface Gather {
  /** Sends the record among others. Never rejects. */
  send(record: string, limits: CallLimits): Promise<AttemptResult>;
}

interface Waiting {
  readonly record: string;
  readonly resolve: (result: AttemptResult) => void;
}

/** How long a batch that is not full waits for more. */
const COMPANY_MS = 10;

/** One call at a time: what comes meanwhile goes with the next. */
export function createGather(options: GatherOptions): Gather {
  const waiting: Waiting[] = [];
  let isSending = false;

  async function sendAll(): Promise<void> {
    while (waiting.length > 0) {
      if (waiting.length < options.most) await sleep(COMPANY_MS);
      await share(waiting.splice(0, options.most), options);
    }
    isSending = false;
  }

  return {
    send: (record, { signal }) =>
      new Promise((resolve) => {
        // who cannot wait any longer does not know whether the meter has it
        const onAbort = () => resolve(GIVEN_UP);
        signal.addEventListener("abort", onAbort, { once: true });
        waiting.push({
          record,
          resolve(result) {
            signal.removeEventListener("abort", onAbort);
            resolve(result);
          },
        });
        if (isSending) return;
        isSending = true;
        void sendAll();
      }),
  };
}

const GIVEN_UP: AttemptResult = {
  is: "uncertain",
  fault: { class: "Stopped", message: "the call was given up before the meter answered" },
};

/** Sends them as one batch; where that is refused or too large, as two, until the guilty one is alone. */
async function share(batch: readonly Waiting[], options: GatherOptions): Promise<void> {
  const result = await post(batch, options);
  const isDivisible = batch.length > 1 && result.is === "failed";
  if (!isDivisible) {
    // one of them is told of what is odd, so that it is not said for each
    const [first, ...others] = batch;
    first!.resolve(result);
    for (const { resolve } of others)
      resolve(result.is === "done" ? { is: "done", receipt: result.receipt } : result);
    return;
  }
  const middle = Math.ceil(batch.length / 2);
  await share(batch.slice(0, middle), options);
  await share(batch.slice(middle), options);
}

async function post(batch: readonly Waiting[], { meter, bodyOf }: GatherOptions): Promise<AttemptResult> {
  const startedAt = steadyMs();
  try {
    return resultOf(await meter.post(bodyOf(batch.map(({ record }) => record))), batch.length);
  } catch (error) {
    // the meter knows each record again: whether it has them already makes no difference
    const { code, name } = error as { readonly code?: unknown; readonly name?: string };
    const word = typeof code === "string" ? code : (name ?? "unknown");
    const afterMs = Math.round(steadyMs() - startedAt);
    const message = `no answer (${word}) after ${afterMs} ms. ${hintFor(undefined)}`;
    return { is: "uncertain", fault: { class: "METER no answer", message } };
  }
}

function resultOf({ status, text, retryAfterMs }: MeterAnswer, records: number): AttemptResult {
  const fault: Fault = {
    class: `METER ${status}`,
    message: `the meter answered ${status}. ${hintFor(status)}`,
  };
  switch (verdictOf(status)) {
    case "done": {
      const counted = countedIn(text);
      const receipt = { status, records, ...counted };
      if (agrees(counted, records)) return { is: "done", receipt };
      const remark = mismatchOf(counted, records);
      return { is: "done", receipt: { ...receipt, mismatched: true }, remark };
    }
    case "blocked":
      return { is: "blocked", fault };
    case "again":
      return { is: "again", fault, ...(retryAfterMs === undefined ? {} : { pauseMs: retryAfterMs }) };
    case "smaller":
    case "refused":
      return { is: "failed", fault };
  }
}

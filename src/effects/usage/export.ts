// An export: what the spool holds is sent first, then the file, batch by batch; what cannot be sent is saved.
import { steadyMs } from "../../clock.ts";
import { readLines } from "./ndjson.ts";
import { readRecord } from "./record.ts";
import type { Batch, Say, Sent } from "./send.ts";
import type { Spool, Spooled, SpoolState } from "./spool.ts";

/** A line of a file that is no record. */
export interface BadLineAt {
  readonly line: number;
  readonly fault: string;
}

/** What a run came to, beside its figures. */
export interface Exported {
  /** Records read from the file. */
  records: number;
  /** How many lines are no records, and the first of them. */
  badLines: number;
  readonly firstBadLines: BadLineAt[];
  /** Batches that were saved in this run, by why. */
  readonly saved: Record<SpoolState, number>;
  /** Batches of the spool that were sent in this run. */
  resent: number;
  /** Ids of saved batches whose files are not what was written: they are not sent. */
  readonly damaged: string[];
  /** Why the file was not read to its end. */
  end?: "blocked" | "stopped";
}

export interface ExportOptions {
  readonly spool: Spool;
  readonly send: (batch: Batch) => Promise<readonly Sent[]>;
  readonly say: Say;
  readonly signal: AbortSignal;
}

const BAD_LINES_SHOWN = 20;
/** A batch of long lines has fewer of them. */
const BATCH_CHARACTERS_MAX = 4 * 1024 * 1024;
/** A meter that has not answered four times is not asked for so long: what comes meanwhile is saved at once. */
const REST_MS = 30_000;

export interface Export {
  readonly exported: Exported;
  /** Sends what the spool holds in these states, oldest first. False where the run is to end. */
  resend(states: readonly SpoolState[], onBatch?: (done: number, total: number) => void): Promise<boolean>;
  push(file: FileToPush): Promise<void>;
}

export interface FileToPush {
  readonly path: string;
  readonly tenant: string;
  readonly batchSize: number;
  readonly onProgress?: (bytes: number, records: number) => void;
}

export function createExport({ spool, send, say, signal }: ExportOptions): Export {
  const exported: Exported = {
    records: 0,
    badLines: 0,
    firstBadLines: [],
    saved: { due: 0, refused: 0, blocked: 0 },
    resent: 0,
    damaged: [],
  };
  let restsUntil = 0;

  /** Sends a batch, unless the meter is given a rest. */
  async function deliver(batch: Batch): Promise<readonly Sent[]> {
    if (steadyMs() < restsUntil)
      return [{ batch, state: "due", why: "the meter did not answer the batch before it" }];
    const sent = await send(batch);
    if (sent.some(({ state }) => state === "due")) restsUntil = steadyMs() + REST_MS;
    return sent;
  }

  /** True where the run may go on. */
  function mayGoOn(sent: readonly Sent[]): boolean {
    if (sent.some(({ state }) => state === "blocked")) exported.end = "blocked";
    else if (signal.aborted) exported.end = "stopped";
    return exported.end === undefined;
  }

  async function save({ batch, state, why }: Sent): Promise<void> {
    if (state === "done") return;
    await spool.save(state, { ...batch, why });
    exported.saved[state] += 1;
  }

  async function sendSpooled(spooled: Spooled): Promise<readonly Sent[]> {
    const kept = await spool.read(spooled);
    if (!kept) {
      exported.damaged.push(spooled.id);
      say("error", `The saved batch ${spooled.id} is damaged: it is not sent, and stays where it is.`);
      return [];
    }
    const sent = await deliver(kept);
    const [only] = sent;
    if (sent.length === 1 && only!.state !== "done") {
      if (only!.state !== spooled.state) await spool.move(spooled, only!.state);
      return sent;
    }
    for (const part of sent) await save(part); // it was halved: what is left of it is a batch of its own
    await spool.remove(spooled);
    exported.resent += 1;
    return sent;
  }

  return {
    exported,
    async resend(states, onBatch = () => {}) {
      const { batches } = await spool.list();
      const asked = batches.filter(({ state }) => states.includes(state));
      for (const [index, spooled] of asked.entries()) {
        if (steadyMs() < restsUntil) break; // they are saved already
        onBatch(index, asked.length);
        if (!mayGoOn(await sendSpooled(spooled))) return false;
      }
      return mayGoOn([]);
    },

    async push({ path, tenant, batchSize, onProgress = () => {} }) {
      let sending: Promise<boolean> = Promise.resolve(true);
      let records: string[] = [];
      let size = 0;
      /** The next batch is read while one is under way. */
      const flush = async (): Promise<boolean> => {
        if (!(await sending)) return false;
        const batch = { tenant, records, from: path };
        records = [];
        size = 0;
        sending = sendAndSave(batch);
        sending.catch(() => {}); // whoever waits for it is told
        return true;
      };
      const sendAndSave = async (batch: Batch) => {
        const sent = await deliver(batch);
        for (const part of sent) await save(part);
        return mayGoOn(sent);
      };
      for await (const { lines, bytes } of readLines(path)) {
        for (const { number, text, fault } of lines) {
          const read = fault === undefined ? readRecord(text) : { fault };
          if ("fault" in read) {
            noteBad({ line: number, fault: read.fault });
            continue;
          }
          exported.records += 1;
          records.push(read.text);
          size += read.text.length;
          if ((records.length === batchSize || size > BATCH_CHARACTERS_MAX) && !(await flush())) return;
        }
        onProgress(bytes, exported.records);
      }
      if (records.length > 0) await flush();
      await sending;
    },
  };

  function noteBad(bad: BadLineAt): void {
    exported.badLines += 1;
    if (exported.firstBadLines.length < BAD_LINES_SHOWN) exported.firstBadLines.push(bad);
  }
}

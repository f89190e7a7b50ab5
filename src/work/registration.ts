// Registering a worker: for as long as it takes, and anew after every lost session.
import { hostname } from "node:os";
import { sleep } from "../clock.ts";
import { promoteKeys } from "../storage/due.ts";
import { describeFault } from "../storage/faults.ts";
import { uuidv7 } from "../storage/ids.ts";
import type { Pool } from "../storage/postgres.ts";
import { register, type News, type Presence } from "../storage/presence.ts";
import { endWorker } from "../storage/workers.ts";
import { VERSION } from "../version.ts";
import type { WorkerOptions } from "./worker.ts";

/** A worker that is known to all. */
export interface Registered {
  readonly id: string;
  readonly presence: Presence;
}

export interface RegistrationOptions extends Pick<
  WorkerOptions,
  "directUrl" | "handlers" | "concurrency" | "leaseMs" | "tell"
> {
  readonly duties: Pool;
  /** Says that there may be work in these queues. */
  readonly wake: (queues: readonly string[]) => void;
  /** Says that there is a job for later. */
  readonly wakeLater: () => void;
  /** Says that nothing more of the queue may begin. */
  readonly hold: (queue: string) => void;
  readonly stopping: AbortSignal;
}

const CONNECT_TIMEOUT_MS = 5000;
const RECONNECT_MS_MAX = 250;

/** Registers under a new id, for as long as it takes. The jobs of the id before, which we hold no more, are given back. */
export async function registerAnew(
  options: RegistrationOptions,
  before: string | undefined,
): Promise<Registered | undefined> {
  const { duties, stopping } = options;
  for (let failures = 0; !stopping.aborted; failures++) {
    const id = uuidv7(Date.now());
    try {
      const presence = await register({
        url: options.directUrl,
        connectTimeoutMs: CONNECT_TIMEOUT_MS,
        onNews: (news) => void hear(news, options),
        onPause: options.hold,
        worker: {
          id,
          host: hostname(),
          pid: process.pid,
          version: VERSION,
          handlers: [...options.handlers.keys()],
          concurrency: options.concurrency,
          leaseMs: options.leaseMs,
        },
      });
      if (before !== undefined) {
        await endWorker(duties, before, "replaced").catch(async (error: unknown) => {
          await presence.close().catch(() => {}); // the next try registers once more
          throw error;
        });
      }
      return { id, presence };
    } catch (error) {
      if (failures === 0 && before === undefined) throw error; // the start says what is wrong; later ones try on
      if (failures % 40 === 1)
        options.tell("warn", "the worker cannot register", { error: describeFault(error) });
      await sleep(Math.min(RECONNECT_MS_MAX, 20 * 2 ** failures), stopping);
    }
  }
  return undefined;
}

/** What another process tells. */
async function hear(
  { queue, key }: News,
  { duties, wake, wakeLater }: Pick<RegistrationOptions, "duties" | "wake" | "wakeLater">,
): Promise<void> {
  if (key === "") return wakeLater();
  if (key !== undefined) await promoteKeys(duties, [{ queue, key }]).catch(() => {}); // else the sweep finds it
  wake([queue]);
}

// Tells the workers of other processes that there is work: after the commit, coalesced, and only while others listen.
import { sleep, steadyMs } from "../clock.ts";

export interface NotifierOptions {
  readonly send: (queues: readonly string[]) => Promise<void>;
  /** How many other workers live. */
  readonly others: () => Promise<number>;
  readonly onFault: (error: unknown) => void;
}

export interface Notifier {
  tell(queues: Iterable<string>): void;
  /** Sends what is still to be told. */
  stop(): Promise<void>;
}

/** One notification for each commit would halve what the database can do. */
const INTERVAL_MS = 5;
/** How long an answer to "does anybody listen" is believed; until then polling must do. */
const OTHERS_MS = 2000;

export function createNotifier({ send, others, onFault }: NotifierOptions): Notifier {
  const waiting = new Set<string>();
  let sending: Promise<void> | undefined;
  let known = { others: 0, until: 0 };

  async function sendAll(): Promise<void> {
    while (waiting.size > 0) {
      const queues = [...waiting];
      waiting.clear();
      try {
        if (steadyMs() >= known.until) known = { others: await others(), until: steadyMs() + OTHERS_MS };
        if (known.others > 0) await send(queues);
      } catch (error) {
        onFault(error); // polling finds the work all the same
      }
      await sleep(INTERVAL_MS);
    }
  }

  return {
    tell(queues) {
      for (const queue of queues) waiting.add(queue);
      sending ??= sendAll().finally(() => (sending = undefined));
    },
    async stop() {
      await sending;
    },
  };
}

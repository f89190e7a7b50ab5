// The rounds that a running Ukemi makes beside its work: any process may make them, and each comes again by itself.
import { sleep } from "../clock.ts";
import { describeFault } from "../storage/faults.ts";
import type { Tell } from "../storage/news.ts";
import type { Pool } from "../storage/postgres.ts";

/** One of them. Several processes make it at the same time: what must be done once, the database must see to. */
export interface Round {
  /** Completes the sentence "… failed". */
  readonly name: string;
  /** Does what is due, and ends early when the signal fires; resolves with the milliseconds until it comes again. */
  run(duties: Pool, ended: AbortSignal): Promise<number>;
}

/** After a fault the round comes again so much later. */
const AFTER_FAULT_MS = 5000;

/** Makes every round until the signal fires; resolves when the last has ended. Never rejects. */
export async function makeRounds(
  rounds: readonly Round[],
  open: () => Promise<Pool>,
  tell: Tell,
  ended: AbortSignal,
): Promise<void> {
  await Promise.all(
    rounds.map(async (round) => {
      while (!ended.aborted) {
        let pauseMs = AFTER_FAULT_MS;
        try {
          pauseMs = await round.run(await open(), ended);
        } catch (error) {
          if (!ended.aborted) tell("warn", `${round.name} failed`, { error: describeFault(error) });
        }
        await sleep(pauseMs, ended);
      }
    }),
  );
}

// Who makes the rounds of a Ukemi: operations, statistics, retention, and forgetting what was asked for long ago.
import type { Alert } from "../observe/alerts.ts";
import type { Metrics } from "../observe/metrics.ts";
import { forgetKeys } from "../storage/idempotency.ts";
import type { Tell } from "../storage/news.ts";
import type { Pool } from "../storage/postgres.ts";
import type { RetentionLimits } from "../storage/retention.ts";
import { createOperationRound } from "./operation-round.ts";
import { createRetentionRound } from "./retention.ts";
import { makeRounds, type Round } from "./rounds.ts";
import { createStatisticsRound } from "./statistics-round.ts";

export interface JanitorOptions {
  readonly open: () => Promise<Pool>;
  readonly limits: RetentionLimits;
  readonly alert: (alert: Alert) => void;
  readonly metrics: Metrics;
  readonly tell: Tell;
}

export interface Janitor {
  /** Begins; safe to call more than once. */
  start(): void;
  /** Looks after operations at once: one was made or resumed here. */
  wake(): void;
  /** Asks the rounds to end; resolves when the last has. */
  stop(): Promise<void>;
}

/** Nothing is done until it is started. */
export function createJanitor({ open, limits, alert, metrics, tell }: JanitorOptions): Janitor {
  const operations = createOperationRound({ alert, tell, changed: metrics.changed });
  const rounds: readonly Round[] = [
    operations,
    createStatisticsRound({ alert, noticed: metrics.anomaly }),
    createRetentionRound(limits, tell),
    FORGETTING,
  ].map((round) => withFaultsCounted(round, metrics));
  const ended = new AbortController();
  let making: Promise<void> | undefined;
  return {
    start: () => void (making ??= makeRounds(rounds, open, tell, ended.signal)),
    wake: operations.wake,
    async stop() {
      ended.abort();
      await making;
    },
  };
}

const HOUR_MS = 3_600_000;

/** A bounded number at a time; where there may be more, again soon. */
const FORGETTING: Round = {
  name: "forgetting idempotency keys",
  run: async (pool) => ((await forgetKeys(pool)) > 0 ? 1000 : HOUR_MS),
};

/** The same round; where it fails, it is counted. */
function withFaultsCounted(round: Round, metrics: Metrics): Round {
  return {
    name: round.name,
    run: (pool, ended) =>
      round.run(pool, ended).catch((error: unknown) => {
        if (!ended.aborted) metrics.roundFailed(round.name);
        throw error;
      }),
  };
}

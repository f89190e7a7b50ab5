// Retention in an operator's hands: what would go, and letting it go now.
import { randomUUID } from "node:crypto";
import { UkemiError } from "../errors.ts";
import type { Pool } from "../storage/postgres.ts";
import { previewRetention, type RetentionPreview } from "../storage/retention-preview.ts";
import type { RetentionLimits, Run } from "../storage/retention.ts";
import type { Read } from "./dead.ts";
import { readMandate, type Mandate } from "./mandate.ts";
import { AFTER_HELD_UP_MS, EVERY_MS, prune, type PruneOptions, type PruneResult } from "./prune.ts";
import type { Round } from "./rounds.ts";

/**
 * What can be done about old things. What goes: bodies and headers of events by month, attempts, finished jobs with their
 * payloads and dedupe keys (so that a task may be asked for again under the same key), and workers that ended long ago.
 * What stays for ever: events, refs, outcomes, the audit. What is unfinished or dead is never touched.
 */
export interface Retention {
  /** What pruning would remove now; large numbers are estimates, and say so. */
  preview(): Promise<RetentionPreview>;
  /** Removes it, gently. Refused with `contended` where another process prunes already. */
  prune(mandate: Mandate, options?: PruneOptions): Promise<PruneResult>;
}

export function createRetention(
  open: () => Promise<Pool>,
  read: Read,
  limits: RetentionLimits | undefined,
): Retention {
  return {
    preview: async () => {
      const known = required(limits);
      return read((client) => previewRetention(client, known));
    },
    async prune(mandate, options) {
      const known = required(limits);
      const run: Run = { id: randomUUID(), role: "operator", ...readMandate(mandate) };
      const answer = await prune(await open(), run, { limits: known, onlyDue: false }, options);
      if (!answer.taken) throw busy(answer.actor);
      return answer.result;
    },
  };
}

/** Nothing is removed by a guess: the limits may stand in a file that was not read. */
function required(limits: RetentionLimits | undefined): RetentionLimits {
  if (limits) return limits;
  throw new UkemiError("invalid_option", "bodyDays, attemptDays and jobDays are not known here.");
}

function busy(actor: string): UkemiError {
  return new UkemiError("contended", `Another process is pruning, on behalf of ${actor}.`, {
    remedy: "Wait until it has ended; if it died, another may begin half a minute later.",
  });
}

/** Not while the process starts, when everything else wants the database. */
const FIRST_MS = 60_000;
const BUSY_MS = 60_000;

/** Prunes about once an hour, in one of the processes that run; tells of what it did where it did something. */
export function createRetentionRound(
  limits: RetentionLimits,
  onPruned: (result: PruneResult) => void = () => {},
): Round {
  let started = false;
  return {
    name: "pruning",
    async run(duties, ended) {
      if (!started) {
        started = true;
        return FIRST_MS * (1 + Math.random());
      }
      const run: Run = {
        id: randomUUID(),
        actor: "system:retention",
        role: "system",
        reason: `bodyDays ${limits.bodyDays}, attemptDays ${limits.attemptDays}, jobDays ${limits.jobDays}`,
      };
      const answer = await prune(duties, run, { limits, onlyDue: true }, { signal: ended });
      if (!answer.taken) {
        return answer.busy ? BUSY_MS : Math.min(EVERY_MS, answer.againMs + BUSY_MS * Math.random());
      }
      const { jobs, attempts, bodies, workers, held_up } = answer.result;
      if (jobs + attempts + bodies + workers + held_up.length > 0) onPruned(answer.result);
      return held_up.length > 0 ? AFTER_HELD_UP_MS : EVERY_MS;
    },
  };
}

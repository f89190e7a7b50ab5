// Retention in an operator's hands: what would go, and letting it go now.
import { randomUUID } from "node:crypto";
import { UkemiError } from "../errors.ts";
import type { Pool } from "../storage/postgres.ts";
import type { Tell } from "../storage/news.ts";
import {
  agreeLimits,
  LIMIT_NAMES,
  noteLimits,
  type AgreedLimits,
  type LimitName,
} from "../storage/retention-limits.ts";
import { previewRetention, type RetentionPreview } from "../storage/retention-preview.ts";
import type { RetentionLimits, Run } from "../storage/retention.ts";
import type { Read } from "./read.ts";
import { readMandate, type Mandate } from "./mandate.ts";
import { AFTER_HELD_UP_MS, EVERY_MS, prune, type PruneOptions, type PruneResult } from "./prune.ts";
import type { Round } from "./rounds.ts";

/**
 * What can be done about old things. What goes: bodies and headers of events by month, attempts, finished jobs with their
 * payloads and dedupe keys (so that a task may be asked for again under the same key), what ended effects held, and workers
 * that ended long ago. What stays for ever: events, refs, outcomes, effects with their keys, the audit. What is unfinished or dead is never touched. Of the limits of all
 * processes that run on the store, the longest count.
 */
export interface Retention {
  /** What pruning would remove now; large numbers are estimates, and say so. */
  preview(): Promise<AgreedPreview>;
  /** Removes it, gently. Refused with `contended` where another process prunes already. */
  prune(mandate: Mandate, options?: PruneOptions): Promise<PruneResult>;
}

/** What pruning would remove now, by the limits that count. */
export interface AgreedPreview extends RetentionPreview {
  /** Those of the limits that another process has longer than this one, such as `body_days`. */
  readonly longer_elsewhere: readonly string[];
}

const LISTED: Readonly<Record<LimitName, string>> = {
  bodyDays: "body_days",
  attemptDays: "attempt_days",
  jobDays: "job_days",
  effectDays: "effect_days",
};

/** The limits of this process, and which of them a person has named: those hold as they are. */
export interface OwnLimits {
  readonly limits: RetentionLimits | undefined;
  readonly named?: readonly LimitName[] | undefined;
}

export function createRetention(
  open: () => Promise<Pool>,
  read: Read,
  { limits: own, named }: OwnLimits,
): Retention {
  return {
    preview: async () => {
      const known = required(own);
      return read(async (client) => {
        const { limits, longer } = await agreeLimits(client, known, named);
        const preview = await previewRetention(client, limits);
        return { ...preview, longer_elsewhere: longer.map((name) => LISTED[name]) };
      });
    },
    async prune(mandate, options) {
      const known = required(own);
      const who = readMandate(mandate);
      const pool = await open();
      const { limits } = await agreeLimits(pool, known, named);
      const run: Run = { id: randomUUID(), role: "operator", ...who, limits };
      const answer = await prune(pool, run, { onlyDue: false }, options);
      if (!answer.taken) throw busy(answer.actor);
      return answer.result;
    },
  };
}

/** Nothing is removed by a guess: the limits may stand in a file that was not read. */
function required(limits: RetentionLimits | undefined): RetentionLimits {
  if (limits) return limits;
  throw new UkemiError("invalid_option", "bodyDays, attemptDays, jobDays and effectDays are not known here.");
}

function busy(actor: string): UkemiError {
  return new UkemiError("contended", `Another process is pruning, on behalf of ${actor}.`, {
    remedy: "Wait until it has ended; if it died, another may begin half a minute later.",
  });
}

/** Not while the process starts, when everything else wants the database. */
const FIRST_MS = 60_000;
const BUSY_MS = 60_000;

/**
 * Prunes about once an hour, in one of the processes that run; tells of what it did where it did something. Each time it
 * comes round it says which limits it has, from the start on: whoever prunes goes by the longest.
 */
export function createRetentionRound(own: RetentionLimits, tell: Tell = () => {}): Round {
  let started = false;
  let told = "";
  const tellOnce = (agreed: AgreedLimits) => {
    const words = heldBack(own, agreed);
    if (words !== "" && words !== told) {
      tell("warn", "another process keeps things longer, so they are kept here too", { held_back: words });
    }
    told = words;
  };
  return {
    name: "pruning",
    async run(duties, ended) {
      await noteLimits(duties, own);
      if (!started) {
        started = true;
        return FIRST_MS * (1 + Math.random());
      }
      const agreed = await agreeLimits(duties, own);
      tellOnce(agreed);
      const { limits } = agreed;
      const run: Run = {
        id: randomUUID(),
        actor: "system:retention",
        role: "system",
        reason: LIMIT_NAMES.map((name) => `${name} ${limits[name]}`).join(", "),
        limits,
      };
      const answer = await prune(duties, run, { onlyDue: true }, { signal: ended });
      if (!answer.taken) {
        return answer.busy ? BUSY_MS : Math.min(EVERY_MS, answer.againMs + BUSY_MS * Math.random());
      }
      await noteLimits(duties, own); // a first run may take days
      const { held_up, months: _, stopped: __, ...counts } = answer.result;
      if (Object.values(counts).some((count) => count > 0) || held_up.length > 0) {
        tell("info", "pruned what is old", { ...answer.result });
      }
      return held_up.length > 0 ? AFTER_HELD_UP_MS : EVERY_MS;
    },
  };
}

/** Such as `bodyDays 90 gives way to 0 (for ever)`; nothing where no other process keeps longer. */
function heldBack(own: RetentionLimits, { limits, longer }: AgreedLimits): string {
  const days = (count: number) => (count === 0 ? "0 (for ever)" : String(count));
  return longer.map((name) => `${name} ${own[name]} gives way to ${days(limits[name])}`).join(", ");
}

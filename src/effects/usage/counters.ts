// What an export came to, in figures.
import { agrees, type Counted } from "./verdict.ts";

/** The figures of a run. */
export interface UsageFigures {
  /** Records that the meter took. */
  sent: number;
  inserted: number;
  updated: number;
  /** Batches of which the meter counted more or fewer records than were sent. */
  mismatched: number;
  retries: number;
  /** Batches that were given up for this run after the last retry. */
  exhausted: number;
  /** Calls by the class of their answer. */
  readonly answers: Record<AnswerClass, number>;
}

export type AnswerClass = "2xx" | "3xx" | "4xx" | "429" | "5xx" | "network";

/** Above this share of records that the meter had already, a run that is no resend is worth a look. */
const UPDATED_SHARE_MAX = 0.1;

export function noFigures(): UsageFigures {
  return {
    sent: 0,
    inserted: 0,
    updated: 0,
    mismatched: 0,
    retries: 0,
    exhausted: 0,
    answers: { "2xx": 0, "3xx": 0, "4xx": 0, "429": 0, "5xx": 0, network: 0 },
  };
}

/** Counts an answer, or that there was none. */
export function countAnswer(figures: UsageFigures, status: number | undefined): void {
  figures.answers[classOf(status)] += 1;
}

function classOf(status: number | undefined): AnswerClass {
  if (status === undefined) return "network";
  if (status === 429) return "429";
  if (status >= 500) return "5xx";
  if (status >= 400) return "4xx";
  return status >= 300 ? "3xx" : "2xx";
}

/** Counts a batch that was taken; false where the meter says that it counted another number of records. */
export function countTaken(figures: UsageFigures, records: number, counted: Counted): boolean {
  figures.sent += records;
  figures.inserted += counted.inserted ?? 0;
  figures.updated += counted.updated ?? 0;
  if (agrees(counted, records)) return true;
  figures.mismatched += 1;
  return false;
}

/** What is remarkable about records that the meter had already. */
export function aboutUpdated({ inserted, updated }: UsageFigures): "resend" | "unusual" | undefined {
  if (updated === 0) return undefined;
  if (inserted === 0) return "resend";
  return updated / (inserted + updated) > UPDATED_SHARE_MAX ? "unusual" : undefined;
}

// What an answer of the meter means: the whole table in one place, with what the operator should do.

/** What becomes of the batch. */
export type Verdict = "done" | "refused" | "blocked" | "smaller" | "again";

/** What a status means for the batch. */
export function verdictOf(status: number): Verdict {
  if (status === 200 || status === 201 || status === 204) return "done";
  if (status === 401 || status === 403 || status === 404) return "blocked";
  if (status === 413) return "smaller";
  if (status === 429 || status >= 500) return "again";
  return "refused";
}

/** What to do about it. */
export function hintFor(status: number | undefined): string {
  if (status === undefined)
    return "Check that API_METER_URL is right and the meter can be reached from here.";
  const hint = HINTS[status];
  if (hint !== undefined) return hint;
  if (status >= 500)
    return "The meter has a fault of its own: nothing to do here but wait, or tell its operators.";
  if (status >= 300 && status < 400)
    return "The meter answers from another address: set API_METER_URL to that one.";
  return "The meter does not accept the batch: read its answer, correct the records, then `ukemi usage resend --refused`.";
}

const HINTS: Readonly<Record<number, string>> = {
  400: "The meter cannot read the batch: correct the records (its answer says which), then `ukemi usage resend --refused`.",
  401: "The token is wrong or has expired: set API_METER_TOKEN, then `ukemi usage resend --blocked`.",
  403: "The token may not write for this tenant: check API_METER_TENANT_ID and the token's rights, then `ukemi usage resend --blocked`.",
  404: "There is no such tenant or address: check API_METER_TENANT_ID and API_METER_URL, then `ukemi usage resend --blocked`.",
  413: "One record alone is too large for the meter: make it smaller.",
  422: "The meter understood the batch and refuses its content: correct the records, then `ukemi usage resend --refused`.",
  429: "Too much at once: the batch waits as long as the meter asks. A smaller BATCH_SIZE or fewer exporters help.",
};

/** What the meter counted; undefined for what it did not say. */
export interface Counted {
  readonly inserted?: number;
  readonly updated?: number;
}

/** Reads the answer to a batch that was taken. */
export function countedIn(text: string): Counted {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return {};
  }
  if (typeof value !== "object" || value === null) return {};
  const { inserted, updated } = value as Record<string, unknown>;
  return { ...(isCount(inserted) && { inserted }), ...(isCount(updated) && { updated }) };
}

/** Whether the meter counted as many records as were sent, or does not say. */
export function agrees({ inserted, updated }: Counted, records: number): boolean {
  return (inserted === undefined && updated === undefined) || (inserted ?? 0) + (updated ?? 0) === records;
}

/** What to tell a person where it did not. */
export function mismatchOf({ inserted = 0, updated = 0 }: Counted, records: number): string {
  return `The meter counted ${inserted} inserted and ${updated} updated of ${records} records that were sent.`;
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0;

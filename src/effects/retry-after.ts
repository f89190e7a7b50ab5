// The header Retry-After of an answer: seconds, or a date.

/** Longer than this nobody means: ten years. */
const SECONDS_MAX = 10 * 365 * 86_400;

/**
 * How many milliseconds the peer asks to wait; undefined where it does not say, or says what cannot be read. A date is
 * compared with the peer's own `Date`, where it sent one: its clock need not agree with ours.
 */
export function readRetryAfter(
  value: string | undefined,
  { date, now = Date.now() }: { readonly date?: string | undefined; readonly now?: number } = {},
): number | undefined {
  const text = value?.trim() ?? "";
  if (/^\d{1,15}(?:\.\d+)?$/.test(text)) return Math.min(Number(text), SECONDS_MAX) * 1000;
  if (!/[a-z]/i.test(text)) return undefined; // Date.parse makes a date of any number
  const until = Date.parse(text);
  if (Number.isNaN(until)) return undefined;
  const theirs = date === undefined ? Number.NaN : Date.parse(date);
  return Math.min(Math.max(0, until - (Number.isNaN(theirs) ? now : theirs)), SECONDS_MAX * 1000);
}

// How long everything for a carrier waits once it says that it was too much.

/** A rate counts the mails of a second: the next one may go in the one after. */
export const RATE_PAUSE_MS = 1500;

/** The window of a daily quota moves on by the minute; AWS advises to wait up to ten. */
export const QUOTA_PAUSE_MS = 10 * 60_000;

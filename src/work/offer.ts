// An offer of free slots to the inbox: jobs that are stored now may be inserted as claimed by this worker.
import type { Job } from "../storage/claim.ts";
import type { SlotOffer } from "../storage/events.ts";

/** Slots that are held free until the commit is known. Exactly one of the two ends must be called. */
export interface Offer extends SlotOffer {
  /** These were inserted as claimed: they run now. */
  accept(jobs: readonly Job[]): void;
  /** The commit is unknown: what may have been claimed under the token is given back. */
  withdraw(): void;
}

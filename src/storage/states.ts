// The words for where a job or an event is on its way, each list written once.

export const JOB_STATES = ["scheduled", "ready", "waiting", "running", "done", "dead", "cancelled"] as const;
/** Where a job is on its way. */
export type JobState = (typeof JOB_STATES)[number];

export const JOB_KINDS = ["handler", "task", "effect"] as const;
/** What a job is for: an event, the execution of an effect, or anything else. */
export type JobKind = (typeof JOB_KINDS)[number];

export const DEATHS = ["exhausted", "terminal", "crashed", "overdue"] as const;
/** How a job died. */
export type Death = (typeof DEATHS)[number];

export const ATTEMPT_OUTCOMES = ["done", "retry", "not_yet", "dead", "returned", "crashed"] as const;
/** How one try at a job ended. */
export type AttemptOutcome = (typeof ATTEMPT_OUTCOMES)[number];

export const EVENT_STATUSES = ["pending", "success", "failed", "skipped", "unrouted"] as const;
/** What became of an event. */
export type EventStatus = (typeof EVENT_STATUSES)[number];

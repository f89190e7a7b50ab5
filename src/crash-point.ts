// Named places where a test may end the process with SIGKILL, to see what a crash exactly there leaves behind; or stop it with
// SIGSTOP, to see what it does when it goes on much later.
import { writeSync } from "node:fs";

/** Every place, so that a test can go through all of them. */
export const CRASH_POINTS = [
  "inbox.before_commit",
  "inbox.after_commit",
  "server.before_answer",
  "server.after_answer",
  "work.claimed",
  "work.alone",
  "work.before_settle",
  "work.before_commit",
  "work.before_shared_commit",
  "work.after_commit",
  "operation.before_commit",
  "operation.after_commit",
  "retention.batch_removed",
  "retention.kept_copied",
  "retention.month_replaced",
  "retention.before_audit",
  "effect.before_begin",
  "effect.begun",
  "effect.before_call",
  "effect.called",
  "effect.before_settle",
  "effect.settled",
  "spool.before_write",
  "spool.before_flush",
  "spool.before_rename",
  "spool.before_folder_flush",
  "spool.saved",
  "spool.before_remove",
  "usage.before_send",
  "usage.after_send",
] as const;

export type CrashPoint = (typeof CRASH_POINTS)[number];

/** `NAME` or `NAME:N` (at the Nth pass). Read once: in production this is undefined, and a crash point costs one comparison. */
const { UKEMI_CRASH_AT: crashAt, UKEMI_PAUSE_AT: pauseAt } = process.env;
const [armed, nth = "1"] = (crashAt ?? pauseAt ?? "").split(":");
let passes = 0;

/** Whether a test armed this place: for those that would cost more than a comparison to pass. */
export function isArmed(name: CrashPoint): boolean {
  return armed === name;
}

/** Ends the process without warning, or stops it until it is told to go on, if a test armed this place. */
export function crashPoint(name: CrashPoint): void {
  if (armed !== name) return;
  passes += 1;
  if (crashAt !== undefined && passes >= Number(nth)) process.kill(process.pid, "SIGKILL");
  if (crashAt !== undefined || passes !== Number(nth)) return;
  // the test must know that it stands: nobody else can say so for a process that is stopped
  writeSync(2, `paused at ${name}\n`);
  process.kill(process.pid, "SIGSTOP");
}

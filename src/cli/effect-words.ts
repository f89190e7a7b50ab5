// What became of an effect, in words that a person who answers a customer understands.
import type { BriefEffect, Effect } from "../client/client.ts";
import { showAgo, showTime, showUntil } from "./moment.ts";

/** `019a…  email to jane@example.com: done`; where it is an HTTP call, its target says the method. */
export const briefly = ({ id, kind, state, target }: BriefEffect) =>
  `${id}  ${kind === "http" ? kind : `${kind} to`} ${target}: ${state}`;

/** What became of it, in one sentence without a full stop. */
export function becameOf(effect: Effect): string {
  const isMail = effect.kind === "email";
  const { state, reason } = effect;
  const because = reason === null ? "" : `: ${reason.replace(/\.$/, "")}`;
  switch (state) {
    case "done":
      return `${isMail ? "sent" : "done"} ${doneWhen(effect)}${takenAs(effect)}${heardOf(effect)}`;
    case "failed":
      return `${isMail ? "NOT SENT" : "FAILED"}${because}`;
    case "cancelled":
      return `not ${isMail ? "sent" : "done"}${because}`;
    case "suppressed":
      return effect.suppressed_by === null
        ? `${isMail ? "NOT SENT" : "not done"}${because}`
        : `not ${isMail ? "sent" : "done"} a second time: the same was intended before, as ${effect.suppressed_by}`;
    case "held":
      return `HELD, nobody knows whether it was ${isMail ? "sent" : "done"}${because}. A person must find out: ukemi effects resolve ${effect.id}`;
    case "uncertain":
      return `UNCERTAIN, may have been ${isMail ? "sent" : "done"}${because}${waitOf(effect)}`;
    case "sending":
      return `is being ${isMail ? "sent" : "done"} at this moment`;
    case "planned":
      return `not ${isMail ? "sent" : "done"} yet${because}${waitOf(effect)}`;
  }
}

function doneWhen({ ended_at }: Effect): string {
  return ended_at === null ? "" : `${showTime(ended_at)}, ${showAgo(ended_at)}`;
}

function takenAs({ kind, accepted_as, reason }: Effect): string {
  if (accepted_as !== null) return `; the mail server took it: ${accepted_as}`;
  // without a receipt it is a person's word
  return kind === "email" && reason !== null ? `; an operator says so: ${reason}` : "";
}

/** What was heard of a mail after it was sent. */
function heardOf({ feedback, feedback_at }: Effect): string {
  if (feedback === null) return "";
  const when = feedback_at === null ? "" : ` ${showTime(feedback_at)}`;
  if (feedback === "bounced") return `. It BOUNCED${when}: it did not reach the mailbox`;
  if (feedback === "complained") return `. The recipient marked it as spam${when}`;
  return `. It was ${feedback}${when}`;
}

function waitOf({ waits_for, next_at }: Effect): string {
  if (waits_for === null) return "";
  return `; waits for ${waits_for}${next_at === null ? "" : `, ${showUntil(next_at)}`}`;
}

/** Mails to one address, one line each: what to tell someone who did not get one. */
export function describeMails(mails: readonly Effect[], address: string): string {
  const width = Math.max(...mails.map(({ template }) => (template ?? "").length));
  return [
    `${mails.length === 1 ? "1 mail" : `${mails.length} mails`} to ${address}, newest first:`,
    "",
    ...mails.map(
      (mail) =>
        `${showTime(mail.planned_at)}  ${(mail.template ?? "").padEnd(width)}  ${becameOf(mail)}  (${mail.id})`,
    ),
  ].join("\n");
}

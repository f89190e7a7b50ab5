// What became of a mail over SMTP: the server's code first, then how far the mail had come. The whole table in one place.
import type { AttemptResult, Fault } from "../attempt.ts";
import { BadMail } from "./compose.ts";
import { faultOf, keepable } from "./fault.ts";
import { QUOTA_PAUSE_MS, RATE_PAUSE_MS } from "./pause.ts";
import { refusedBy, type Reply } from "./refusal.ts";
import { CERTIFICATE, GivenUp, MACHINE, type Phase } from "./silence.ts";

/** What nodemailer tells of a mail that was taken. */
export interface Sent {
  readonly response: string;
  readonly rejected: readonly string[];
  /** The Message-ID that some servers write in place of ours. */
  readonly serverMessageId?: string | undefined;
}

/** What the error that ended an attempt means for its mail. `hidden` are words that no fault may repeat. */
export function classifySmtp(error: unknown, phase: Phase, hidden: readonly string[]): AttemptResult {
  const reply = replyIn(error);
  // nodemailer blames the connection where a server refuses and hangs up in one breath
  const said = reply && phase === "handed over" ? { ...reply, command: "DATA" } : reply;
  const result = said ? classifyReply(said) : classifySilence(error, phase);
  return "fault" in result ? { ...result, fault: faultOf(result.fault, hidden) } : result;
}

/** What the server's answer means where it took the mail. */
export function classifySent(sent: Sent, hidden: readonly string[]): AttemptResult {
  const response = keepable(sent.response, hidden);
  // cannot be with one recipient a mail; nodemailer calls it a success
  if (sent.rejected.length > 0) {
    return {
      is: "failed",
      fault: { class: "SMTP refused", message: response, answer: { refused: "recipient" } },
    };
  }
  const { serverMessageId: messageId } = sent;
  return { is: "done", receipt: { response, ...(messageId !== undefined && { messageId }) } };
}

function classifyReply(reply: Reply): AttemptResult {
  const { code, text } = reply;
  const name = `SMTP ${code}`;
  const says = (answer?: Fault["answer"], as = name): Fault => ({
    class: as,
    message: text,
    answer: { code, ...(reply.status !== undefined && { status: reply.status }), ...answer },
  });
  if (code === 454 && /daily.{0,20}quota/i.test(text)) {
    return { is: "again", pauseMs: QUOTA_PAUSE_MS, fault: says({ limit: "day" }, `${name} daily quota`) };
  }
  if (code === 454 && /throttling|sending rate/i.test(text)) {
    return { is: "again", pauseMs: RATE_PAUSE_MS, fault: says({ limit: "rate" }, `${name} rate`) };
  }
  // 503 says that the session was in the wrong state, not that the mail was refused: a new one may take it
  if (code < 500 || code === 503) return { is: "again", fault: says() };
  const refused = refusedBy(reply);
  const isOurs = refused === "us" || refused === "sender";
  return { is: isOurs ? "blocked" : "failed", fault: says({ refused }) };
}

/** Codes of nodemailer for a connection that could not be made, or came to an end. */
const CONNECTION = ["ECONNECTION", "ETIMEDOUT", "ESOCKET", "EDNS", "ETLS", "EPROTOCOL", "EPROXY"];

/** The server has said nothing about the mail. */
function classifySilence(error: unknown, phase: Phase): AttemptResult {
  const { code = "", originalCode = "" } = codesOf(error);
  const message = error instanceof Error ? error.message : "something that is no error was thrown";
  const fault = (name: string): Fault => ({ class: `SMTP ${name}`, message });
  const isTimeout = code === "ETIMEDOUT" || error instanceof GivenUp;
  const isConnection = CONNECTION.includes(code) || error instanceof GivenUp;
  if (phase === "handed over") return { is: "uncertain", fault: fault("no answer") };
  if (error instanceof BadMail) return { is: "failed", fault: fault("bad mail") };
  if (code === "EAUTH" || code === "ENOAUTH" || code === "EOAUTH2") {
    return { is: "blocked", fault: fault("sign-in") };
  }
  if (isConnection && CERTIFICATE.test(originalCode)) return { is: "blocked", fault: fault("certificate") };
  if (isConnection && !MACHINE.test(originalCode)) {
    return { is: "again", fault: fault(isTimeout ? "time-out" : code === "EDNS" ? "DNS" : "connection") };
  }
  // memory, disk, a mail that cannot be written: another try would meet the same
  return { is: "failed", fault: fault(originalCode || code || "error") };
}

function replyIn(error: unknown): Reply | undefined {
  if (!(error instanceof Error)) return undefined;
  const { responseCode, response, command } = error as {
    responseCode?: unknown;
    response?: unknown;
    command?: unknown;
  };
  if (typeof responseCode !== "number" || responseCode < 400 || responseCode > 599) return undefined;
  const text = typeof response === "string" ? response : `${responseCode}`;
  return {
    code: responseCode,
    status: /^\d{3}[ -](\d\.\d{1,3}\.\d{1,3})\b/.exec(text)?.[1],
    text,
    command: typeof command === "string" ? command : "",
  };
}

function codesOf(error: unknown): { code?: string; originalCode?: string } {
  if (!(error instanceof Error)) return {};
  const { code, originalCode } = error as { code?: unknown; originalCode?: unknown };
  return {
    ...(typeof code === "string" && { code }),
    ...(typeof originalCode === "string" && { originalCode }),
  };
}

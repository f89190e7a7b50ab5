// What became of a mail that was given to the API of SES: its named errors first, then the status, then how far the call had come.
import type { AttemptResult, Fault } from "../attempt.ts";
import { BadMail } from "./compose.ts";
import { faultOf } from "./fault.ts";
import { QUOTA_PAUSE_MS, RATE_PAUSE_MS } from "./pause.ts";
import { CERTIFICATE, GivenUp, MACHINE, type Phase } from "./silence.ts";

/** What each of its errors means; a name that is not here is judged by its status. */
const ERRORS: Readonly<Record<string, "rate" | "quota" | "blocked" | "failed">> = {
  TooManyRequestsException: "rate",
  ThrottlingException: "rate",
  Throttling: "rate",
  LimitExceededException: "quota",
  AccountSuspendedException: "blocked",
  SendingPausedException: "blocked",
  MailFromDomainNotVerifiedException: "blocked",
  // of the configuration set: the mail itself is not looked up
  NotFoundException: "blocked",
  CredentialsProviderError: "blocked",
  MessageRejected: "failed",
  BadRequestException: "failed",
};

/** What is wrong with the account and not with the mail, told by the same error. */
const NOT_ALLOWED = /not verified|not authorized|sending (?:is )?(?:paused|suspended)/i;

/** What the error that ended an attempt means for its mail. */
export function classifySes(error: unknown, phase: Phase, hidden: readonly string[]): AttemptResult {
  const result = resultOf(error, phase);
  return "fault" in result ? { ...result, fault: faultOf(result.fault, hidden) } : result;
}

function resultOf(error: unknown, phase: Phase): AttemptResult {
  if (!(error instanceof Error)) return silence(new Error("something that is no error was thrown"), phase);
  const status = statusOf(error);
  const kind = ERRORS[error.name] ?? (status === undefined ? undefined : kindOf(status));
  const says = (answer?: Fault["answer"], name = error.name): Fault => ({
    class: `SES ${name}`,
    message: error.message,
    answer: { code: error.name, ...(status !== undefined && { status }), ...answer },
  });
  switch (kind) {
    case undefined:
      return silence(error, phase);
    case "rate":
    case "quota":
      return kind === "quota" || /daily.{0,20}quota/i.test(error.message)
        ? { is: "again", pauseMs: QUOTA_PAUSE_MS, fault: says({ limit: "day" }, "daily quota") }
        : { is: "again", pauseMs: RATE_PAUSE_MS, fault: says({ limit: "rate" }, "rate") };
    case "failed":
      return NOT_ALLOWED.test(error.message)
        ? { is: "blocked", fault: says({ refused: "us" }) }
        : { is: "failed", fault: says({ refused: "message" }) };
    case "blocked":
      return { is: "blocked", fault: says({ refused: "us" }) };
    case "again":
    case "uncertain":
      return { is: kind, fault: says() };
  }
}

function kindOf(status: number): "rate" | "again" | "uncertain" | "blocked" | "failed" | undefined {
  if (status === 429) return "rate";
  // a gateway that lost the answer of whoever stands behind it
  if (status === 502 || status === 504) return "uncertain";
  if (status === 408 || status >= 500) return "again";
  if (status === 401 || status === 403) return "blocked";
  return status >= 400 ? "failed" : undefined;
}

/** Codes of a connection that was never made. */
const NOT_CONNECTED = /^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|EHOSTDOWN|ENETDOWN)$/;
/** Of the machine, met as the connection was to be made. */
const NO_SOCKET = /^(?:EMFILE|ENFILE|EACCES|EPERM)$/;

/** There was no answer. */
function silence(error: Error, phase: Phase): AttemptResult {
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  const fault = (name: string): Fault => ({ class: `SES ${name}`, message: error.message });
  if (error instanceof BadMail) return { is: "failed", fault: fault("bad mail") };
  if (NOT_CONNECTED.test(code) || /did not establish a connection/.test(error.message)) {
    return { is: "again", fault: fault("connection") };
  }
  if (CERTIFICATE.test(code)) return { is: "blocked", fault: fault("certificate") };
  if (NO_SOCKET.test(code)) return { is: "failed", fault: fault(code) };
  if (phase === "handed over") return { is: "uncertain", fault: fault("no answer") };
  if (error instanceof GivenUp) return { is: "again", fault: fault("time-out") };
  if (MACHINE.test(code)) return { is: "failed", fault: fault(code) };
  // the SDK itself: it knows no region, for instance
  return { is: "blocked", fault: fault("set-up") };
}

function statusOf(error: Error): number | undefined {
  if (!("$metadata" in error)) return undefined;
  const metadata = error.$metadata as { httpStatusCode?: unknown } | undefined;
  return typeof metadata?.httpStatusCode === "number" ? metadata.httpStatusCode : undefined;
}

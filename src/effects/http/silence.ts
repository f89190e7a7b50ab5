// What it means for the effect that no answer came.
import { errors } from "undici";
import type { AttemptResult, Fault } from "../attempt.ts";
import { GivenUp, type Ending } from "./exchange.ts";
import { Refusal } from "./guard.ts";

/** In words, for those who do not know the codes. */
const WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nobody listens there",
  ECONNRESET: "the connection was cut",
  EPIPE: "the connection was cut",
  UND_ERR_SOCKET: "the connection was closed",
  UND_ERR_CONNECT_TIMEOUT: "the connection took too long",
  ETIMEDOUT: "the connection took too long",
  EHOSTUNREACH: "there is no way to it",
  ENETUNREACH: "there is no way to it",
  ENOTFOUND: "its name is not known",
  EAI_AGAIN: "its name cannot be looked up now",
  CERT_HAS_EXPIRED: "its certificate has expired",
  DEPTH_ZERO_SELF_SIGNED_CERT: "its certificate is signed by itself",
  SELF_SIGNED_CERT_IN_CHAIN: "its certificate is not signed by an authority that is trusted here",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "its certificate is not signed by an authority that is trusted here",
  ERR_TLS_CERT_ALTNAME_INVALID: "its certificate is for another name",
  UND_ERR_HEADERS_OVERFLOW: "the headers of its answer are too long",
  UND_ERR_DESTROYED: "this process is stopping",
};

/** Will be as wrong the next time. */
const OUR_FAULT = new Set(["UND_ERR_INVALID_ARG", "UND_ERR_NOT_SUPPORTED"]);

/** Reads what the end of a call without an answer means. Its error's own text is not used: it names addresses. */
export function classifySilence(ending: Exclude<Ending, { is: "answered" }>): AttemptResult {
  const { why } = ending;
  if (ending.is === "unanswered") {
    const fault = faultOf(why, "It was sent, and no answer came");
    return { is: "uncertain", fault };
  }
  if (why instanceof Refusal) {
    return {
      is: "failed",
      fault: { class: "HTTP not allowed", message: `Nothing was sent. ${why.message}` },
    };
  }
  if (OUR_FAULT.has(codeOf(why) ?? "")) {
    return { is: "failed", fault: faultOf(why, "Nothing was sent: this is no valid request") };
  }
  return { is: "again", fault: faultOf(why, "Nothing was sent") };
}

function faultOf(why: Error, what: string): Fault {
  if (why instanceof GivenUp) {
    switch (why.after) {
      case "timeout":
        return { class: "HTTP timeout", message: `${what}: the time for it was over.` };
      case "signal":
        return { class: "HTTP aborted", message: `${what}: it was given up.` };
      case "resend":
        return { class: "HTTP connection lost", message: `${what}: the connection was lost.` };
    }
  }
  if (why instanceof errors.HTTPParserError) {
    return { class: "HTTP invalid answer", message: `${what} that is HTTP.` };
  }
  const code = codeOf(why);
  if (code === undefined) return { class: "HTTP error", message: `${what}.` };
  const words = WORDS[code];
  return { class: `HTTP ${code}`, message: `${what}: ${words === undefined ? code : `${words} (${code})`}.` };
}

function codeOf(error: Error): string | undefined {
  const code = "code" in error ? error.code : undefined;
  return typeof code === "string" && /^[A-Z][A-Z0-9_]{1,60}$/.test(code) ? code : undefined;
}

// What an answer means for the effect: its status decides.
import type { AttemptResult, Fault } from "../attempt.ts";
import { readRetryAfter } from "../retry-after.ts";
import type { Answer } from "./exchange.ts";
import { readProblem, shown, type Problem } from "./problem.ts";
import { header, receiptOf } from "./receipt.ts";

/** What was asked, as far as the meaning of an answer depends on it. */
export interface Asked {
  readonly url: string;
  /** The peer does a request once, however often it comes. */
  readonly idempotent: boolean;
}

const MESSAGE_MAX = 1000;

/** Those of 400 to 499 that may pass: too slow, too early, too often. */
const PASSING = new Set([408, 425, 429]);
/** Those of 500 to 599 that will not pass: it cannot do this, or not speak like this. */
const LASTING = new Set([501, 505]);

/** Said by a gateway that does not know what became of the request behind it. */
const HEARSAY = new Set([502, 504]);

/** Reads what an answer means. */
export function classify(answer: Answer, asked: Asked): AttemptResult {
  const { status } = answer;
  if (status < 300) return classifySuccess(answer);
  if (status < 400) return { is: "failed", fault: faultOf(answer, whereTo(answer, asked)) };
  if (PASSING.has(status) || (status >= 500 && status < 600 && !LASTING.has(status))) {
    if (HEARSAY.has(status) && !asked.idempotent) {
      return { is: "uncertain", fault: faultOf(answer, "What is behind it may have heard the request.") };
    }
    const pauseMs = readRetryAfter(header(answer, "retry-after"), { date: header(answer, "date") });
    return { is: "again", fault: faultOf(answer), ...(pauseMs === undefined ? {} : { pauseMs }) };
  }
  switch (status) {
    case 401:
    case 403:
      return {
        is: "blocked",
        fault: faultOf(answer, "It does not accept our credentials, or not for this."),
      };
    case 409:
      return asked.idempotent
        ? { is: "again", fault: faultOf(answer, "A request with this key may still be in progress.") }
        : { is: "failed", fault: faultOf(answer) };
    case 410:
      return { is: "failed", fault: faultOf(answer, "The destination is gone: call it no more.") };
    default:
      return { is: "failed", fault: faultOf(answer) };
  }
}

/** An answer that broke off may be one that was begun before the work was done: frameworks that stream do so. */
function classifySuccess(answer: Answer): AttemptResult {
  return answer.ended === "broken"
    ? { is: "uncertain", fault: faultOf(answer, "The rest of its answer did not come.") }
    : { is: "done", receipt: receiptOf(answer) };
}

function faultOf(answer: Answer, remark?: string): Fault {
  const problem = readProblem(answer);
  const said = [`The peer answered ${answer.status}.`, remark, ...wordsOf(problem)];
  return {
    class: `HTTP ${answer.status}`,
    message: said.filter(Boolean).join(" ").slice(0, MESSAGE_MAX),
    ...(problem === undefined ? {} : { answer: problem }),
  };
}

function wordsOf(problem: Problem | undefined): string[] {
  const words = [problem?.title, problem?.detail].filter((word) => typeof word === "string" && word !== "");
  return words.length === 0 ? [] : [`It says: ${words.join(": ")}`];
}

/** Only the host of it: paths and queries may carry tokens. */
function whereTo(answer: Answer, { url }: Asked): string {
  const location = header(answer, "location") ?? "";
  const host = location !== "" && URL.canParse(location, url) ? new URL(location, url).host : "";
  const where = host === "" ? "elsewhere" : shown(host, 200);
  return `It points to ${where}; redirects are not followed: correct the URL.`;
}

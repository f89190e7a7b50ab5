// What the API answers, in the words of the command line.
import { ApiError } from "../client/client.ts";
import { catalogue, UkemiError, type ErrorCode } from "../errors.ts";
import { flagOf } from "./fields.ts";

/** What answers may be no Ukemi at all, though it speaks JSON. */
export function requireOurs<T>(answer: T, field: "id" | "items"): T {
  if (typeof answer === "object" && answer !== null && field in answer) return answer;
  throw notUkemi("What answers is not Ukemi.");
}

function notUkemi(message: string, cause?: unknown): UkemiError {
  const remedy = "Check UKEMI_URL or --url: the server's URL, without /api/v1.";
  return new UkemiError("server_unreachable", message, { cause, remedy });
}

/** What is no flag, but an argument. */
const ARGUMENTS: Readonly<Record<string, string>> = {
  name: "The name",
  address: "The address",
  ids: "The ids",
  filter: "The filter",
};

/** What the API calls a wrong parameter is a wrong flag or argument here. */
export function asUsage(error: unknown): unknown {
  if (!(error instanceof ApiError)) return error;
  const { code, message, cause, requestId } = error;
  if (code === "not_found") {
    return new UkemiError("not_found", message, { cause: error, remedy: "Check the name or the id." });
  }
  if (code === "invalid_parameter") {
    const said = message.replace(
      /^The parameter "(\w+)"/,
      (_, name: string) => ARGUMENTS[name] ?? `--${flagOf(name)}`,
    );
    return new UkemiError("invalid_option", said, { cause: error });
  }
  if (!Object.hasOwn(catalogue, code)) return notUkemi(message, error);
  const known = new UkemiError(code as ErrorCode, message, { cause: cause ?? error });
  if (code === "unauthorized") {
    const remedy = "Set UKEMI_TOKEN to a token of the server: an admin makes one with ukemi token create.";
    return new UkemiError("unauthorized", message, { cause: error, remedy });
  }
  return code === "internal"
    ? new UkemiError("internal", `${message} (request ${requestId})`, { cause: error })
    : known;
}

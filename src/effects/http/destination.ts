// Where a call goes: the name under which limits and the breaker of a destination are kept.
import { UkemiError } from "../../errors.ts";

const URL_LENGTH_MAX = 2048;
/** With scheme and port it fits into the ledger. */
const HOST_LENGTH_MAX = 240;

/**
 * The origin of a URL, such as `https://api.example.com`: lower case, no default port, no dot at the end of the host.
 * Throws invalid_option where the URL is not one that may be called.
 */
export function destinationOf(url: string): string {
  const { protocol, hostname, port } = readUrl(url);
  // `example.com.` is the same server: it must not get a limit of its own
  return `${protocol}//${hostname.replace(/\.$/, "")}${port === "" ? "" : `:${port}`}`;
}

/** Reads a URL that may be called, without its fragment. No message quotes it: what it carries may be secret. */
export function readUrl(given: unknown): URL {
  const url = typeof given === "string" ? parse(given) : undefined;
  if (url === undefined) {
    throw new UkemiError("invalid_option", "url must be a URL such as https://api.example.com/v1/charges.");
  }
  if (url.protocol !== "https:" && url.protocol !== "http:") {
    throw new UkemiError(
      "invalid_option",
      "url must begin with https:// (or http://, where that is allowed).",
    );
  }
  if (url.username !== "" || url.password !== "") {
    throw new UkemiError(
      "invalid_option",
      "url must not carry a name or password: send them in the header Authorization.",
    );
  }
  url.hash = "";
  if (url.hostname.length > HOST_LENGTH_MAX) {
    throw new UkemiError("invalid_option", "url must have a host that can exist: its name is too long.");
  }
  if (url.href.length > URL_LENGTH_MAX) {
    throw new UkemiError(
      "invalid_option",
      `url must not be longer than ${URL_LENGTH_MAX} characters: send the rest in the body.`,
    );
  }
  return url;
}

function parse(given: string): URL | undefined {
  // URL would take out line breaks without a word: what is called then is not what was written
  if (/\p{Cc}/u.test(given) || !URL.canParse(given)) return undefined;
  const url = new URL(given);
  return url.hostname === "." ? undefined : url;
}

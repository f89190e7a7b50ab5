// The destinations that may be called although they are not public, or speak no TLS.
import { UkemiError } from "../../errors.ts";
import { destinationOf } from "./destination.ts";

/** A list of destinations that can be asked about one of them. */
export interface AllowedDestinations {
  /** `origin` as destinationOf gives it. */
  includes(origin: string): boolean;
}

/** Reads origins (`http://127.0.0.1:8080`: this scheme and port only) and hosts (`billing.internal`: all of them). */
export function readAllowedDestinations(entries: readonly string[] = []): AllowedDestinations {
  const origins = new Set<string>();
  const hosts = new Set<string>();
  for (const [index, entry] of entries.entries()) {
    const host = hostOf(entry);
    if (isOrigin(entry)) origins.add(destinationOf(entry));
    else if (host !== undefined) hosts.add(host);
    else throw invalid(index);
  }
  return { includes: (origin) => origins.has(origin) || hosts.has(new URL(origin).hostname) };
}

function isOrigin(entry: unknown): entry is string {
  return typeof entry === "string" && /^https?:\/\/[^/?#@*\\]+\/?$/i.test(entry) && URL.canParse(entry);
}

/** Undefined where it is not a host alone: no port, no path, no name before it. */
function hostOf(entry: unknown): string | undefined {
  if (typeof entry !== "string" || !/^(?:\[[^\]]*\]|[^:/?#@*\\[\]]+)$/.test(entry)) return undefined;
  return URL.canParse(`https://${entry}`)
    ? new URL(`https://${entry}`).hostname.replace(/\.$/, "")
    : undefined;
}

/** Does not quote it: it may carry a password. */
function invalid(index: number): UkemiError {
  return new UkemiError(
    "invalid_option",
    `allowedDestinations: entry ${index + 1} is neither an origin nor a host; write http://127.0.0.1:8080 or billing.internal`,
  );
}

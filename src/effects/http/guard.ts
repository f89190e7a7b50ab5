// The guard: every connection is checked where it is made, on the very address that it goes to.
import { lookup as systemLookup, type LookupAddress, type LookupAllOptions } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import { buildConnector } from "undici";
import { readAllowedDestinations } from "./allowed.ts";
import { destinationOf } from "./destination.ts";
import { isPublicAddress } from "./public-address.ts";

/** Asks for all addresses of a name, as `lookup` of node:dns does. */
export type Resolve = (
  hostname: string,
  options: LookupAllOptions,
  done: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

export interface GuardOptions {
  /**
   * Origins (`http://127.0.0.1:8080`) and hosts (`billing.internal`) that may be called though they are not public, or
   * without TLS. All else must be https, and public.
   *
   * @default none
   */
  readonly allowedDestinations?: readonly string[];
  /** How long to wait for a connection, in milliseconds. @default 10000 */
  readonly connectTimeoutMs?: number;
  /** Certificates in PEM, trusted in the place of Node's own. @default Node's */
  readonly ca?: string;
  /** @default lookup of node:dns */
  readonly resolve?: Resolve;
}

/** A connection that the guard did not let be made. Nothing was sent. */
export class Refusal extends Error {
  override readonly name = "Refusal";
}

/** Makes connections for undici: to public addresses by TLS, and to what is allowed by name. */
export function createGuard(options: GuardOptions = {}): buildConnector.connector {
  const { allowedDestinations, connectTimeoutMs = 10_000, ca, resolve = systemLookup } = options;
  const allowed = readAllowedDestinations(allowedDestinations);
  const connector = (lookup: LookupFunction) =>
    // over HTTP/2, undici puts requests back that were sent when a session ends
    buildConnector({
      timeout: connectTimeoutMs,
      allowH2: false,
      lookup,
      ...(ca === undefined ? {} : { ca }),
    });
  const anywhere = connector(lookupBy(resolve, () => true));
  const publicly = connector(lookupBy(resolve, isPublicAddress));

  return (target, done) => {
    const { protocol, hostname, host } = target;
    if (allowed.includes(destinationOf(`${protocol}//${host ?? hostname}`))) return anywhere(target, done);
    if (protocol !== "https:") {
      return done(
        new Refusal("It would be called without TLS: use https, or add its origin to allowedDestinations."),
        null,
      );
    }
    // a literal address is never looked up
    if (isIP(hostname) !== 0 && !isPublicAddress(hostname)) return done(notPublic(), null);
    return publicly(target, done);
  };
}

/**
 * What is checked here is what is connected to: the name is not resolved a second time, so that its answer cannot change
 * in between. One address that may not be called spoils them all.
 */
export function lookupBy(resolve: Resolve, mayCall: (address: string) => boolean): LookupFunction {
  return (hostname, options, done) => {
    resolve(hostname, { ...options, all: true }, (error, addresses) => {
      const [first] = addresses ?? [];
      if (error !== null) return done(error, []);
      if (first === undefined || !addresses.every(({ address }) => mayCall(address)))
        return done(notPublic(), []);
      if (options.all === true) return done(null, addresses);
      return done(null, first.address, first.family);
    });
  };
}

function notPublic(): Refusal {
  return new Refusal(
    "Its address is not public: correct the URL, or add its origin to allowedDestinations if it is meant to be called.",
  );
}

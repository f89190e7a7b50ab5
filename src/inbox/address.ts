// Whose request it is: the peer's address, or what trusted proxies say of it.
import type { HeaderMap } from "../sources/source.ts";
import { createAddressList } from "../sources/addresses.ts";

/** Tells the sender's address from the peer of the connection and the headers. */
export type AddressOf = (peer: string | undefined, headers: HeaderMap) => string | undefined;

/**
 * X-Forwarded-For is believed only as far as trusted proxies wrote it: read from the right, the first address that
 * is not a trusted proxy is the sender.
 */
export function createAddressOf(trustedProxies: readonly string[]): AddressOf {
  if (trustedProxies.length === 0) return (peer) => peer;
  const trusted = createAddressList(trustedProxies);
  return (peer, headers) => {
    let address = peer;
    const hops = String(headers["x-forwarded-for"] ?? "")
      .split(",")
      .slice(-16)
      .map(withoutPort);
    while (address !== undefined && trusted.allows(address) && hops.length > 0)
      address = hops.pop() || address;
    return address;
  };
}

/** Some proxies write `203.0.113.7:51234` or `[2001:db8::1]:443`: the port is another one every time. */
function withoutPort(hop: string): string {
  const text = hop.trim();
  return /^\[([^\]]*)\](?::\d+)?$/.exec(text)?.[1] ?? /^([\d.]+):\d+$/.exec(text)?.[1] ?? text;
}

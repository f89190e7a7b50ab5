// Which addresses lie on the public internet.
import ipaddr from "ipaddr.js";
import { isIP } from "node:net";

/** All that is given out to anybody; mapped, compatible and translated forms of IPv4 lie outside. */
const GLOBAL_IPV6 = ipaddr.IPv6.parseCIDR("2000::/3");

/**
 * False for everything else: loopback, private, link-local with the clouds' metadata, carrier NAT, multicast, reserved,
 * documentation, tunnels (6to4, Teredo, NAT64), and what is no address at all.
 */
export function isPublicAddress(text: string): boolean {
  // ipaddr.js reads more forms than the system connects to
  if (isIP(text) === 0 || text.includes("%")) return false;
  const address = ipaddr.parse(text);
  // it takes what is in no range of its own for public, also `::7f00:1`, which is 127.0.0.1
  if (address instanceof ipaddr.IPv6 && !address.match(GLOBAL_IPV6)) return false;
  return address.range() === "unicast";
}

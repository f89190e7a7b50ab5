// The network that an address belongs to: what one sender can change at will says nothing about who it is.
import { isIPv4, isIPv6 } from "node:net";

/** An IPv4 address also where it comes as an IPv6 one (`::ffff:203.0.113.7`). */
function plainOf(address: string): string {
  if (!address.startsWith("::")) return address;
  const mapped = /^::ffff:(.+)$/i.exec(address)?.[1];
  return mapped !== undefined && isIPv4(mapped) ? mapped : address;
}

/** The eight groups of an IPv6 address, without its zone. */
function groupsOf(address: string): string[] {
  const [head = "", tail] = address.replace(/%.*$/, "").split("::");
  const groups = (text: string) => (text === "" ? [] : text.split(":"));
  if (tail === undefined) return groups(head);
  const missing = 8 - groups(head).length - groups(tail).length;
  return [...groups(head), ...Array<string>(Math.max(0, missing)).fill("0"), ...groups(tail)];
}

/** What counts as one sender: the whole IPv4 address, the /64 of an IPv6 one. */
export function senderOf(address: string): string {
  const plain = plainOf(address);
  // the short question first: to ask whether it is IPv6 is slow, and every delivery asks
  return plain.includes(":") && isIPv6(plain) ? `${groupsOf(plain).slice(0, 4).join(":")}::/64` : plain;
}

/** An address cut to its network, for logs: `203.0.113.x`, `2001:db8:1::x`. */
export function maskAddress(address: string): string {
  const plain = plainOf(address);
  if (isIPv4(plain)) return plain.replace(/\d+$/, "x");
  return isIPv6(plain) ? `${groupsOf(plain).slice(0, 3).join(":")}::x` : "unknown";
}

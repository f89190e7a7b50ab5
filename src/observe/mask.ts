// Hides what is personal but still lets two lines about the same thing be told to belong together.
import { isIPv4, isIPv6 } from "node:net";

/** An IP address cut to its network: `203.0.113.x`, `2001:db8:1::x`. */
export function maskAddress(address: string): string {
  const plain = address.startsWith("::ffff:") && isIPv4(address.slice(7)) ? address.slice(7) : address;
  if (isIPv4(plain)) return plain.replace(/\d+$/, "x");
  if (isIPv6(plain)) return `${plain.split(":").slice(0, 3).join(":")}::x`;
  return "unknown";
}

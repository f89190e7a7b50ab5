// Which addresses may send: single addresses and ranges, IPv4 and IPv6.
import { BlockList, isIP, isIPv4 } from "node:net";
import { UkemiError } from "../errors.ts";

/** A list of addresses and ranges that can be asked about one address. */
export interface AddressList {
  /** True where the list is empty, or the address lies in it. What is no address is never allowed. */
  allows(address: string): boolean;
}

/** Reads addresses (`3.18.12.63`, `2001:db8::1`) and ranges (`10.0.0.0/8`, `2001:db8::/32`); empty allows all. */
export function createAddressList(ranges: readonly string[]): AddressList {
  const list = new BlockList();
  for (const range of ranges) add(list, range);
  return {
    allows(address) {
      if (ranges.length === 0) return true;
      const plain = withoutZone(address);
      if (isIP(plain) === 0) return false;
      return list.check(plain, isIPv4(plain) ? "ipv4" : "ipv6");
    },
  };
}

/** Checks the ranges and hands back a copy that nobody else can change. */
export function readAddresses(ranges: readonly string[] = []): readonly string[] {
  createAddressList(ranges);
  return Object.freeze([...ranges]);
}

function add(list: BlockList, range: unknown): void {
  const [address = "", bits, ...rest] = typeof range === "string" ? range.split("/") : [];
  const version = isIP(address);
  const bitsMax = version === 4 ? 32 : 128;
  const prefix = bits === undefined ? bitsMax : /^\d{1,3}$/.test(bits) ? Number(bits) : Infinity;
  if (version === 0 || address.includes("%") || rest.length > 0 || prefix > bitsMax) {
    throw new UkemiError(
      "invalid_option",
      `allowedAddresses: ${JSON.stringify(range)} is neither an address nor a range; write 203.0.113.7 or 203.0.113.0/24`,
    );
  }
  const mapped = version === 6 ? mappedIpv4(address) : undefined;
  if (mapped !== undefined && prefix >= 96) list.addSubnet(mapped, prefix - 96, "ipv4");
  else list.addSubnet(address, prefix, version === 4 ? "ipv4" : "ipv6");
}

/** The IPv4 address inside `::ffff:203.0.113.7`, however it is written. */
function mappedIpv4(address: string): string | undefined {
  const normal = new URL(`http://[${address}]`).hostname;
  const words = /^\[::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})\]$/.exec(normal);
  if (!words) return undefined;
  return words
    .slice(1)
    .map((word) => parseInt(word, 16))
    .flatMap((word) => [word >> 8, word & 255])
    .join(".");
}

/** Link-local addresses arrive as `fe80::1%eth0`; the zone is ours, not the sender's. */
function withoutZone(address: string): string {
  return address.replace(/%.*$/, "");
}

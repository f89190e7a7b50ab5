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
      // IPv4 written as IPv6 (`::ffff:10.0.0.1`) and zones (`fe80::1%eth0`) are understood by the list itself.
      return isIP(address) !== 0 && list.check(address, isIPv4(address) ? "ipv4" : "ipv6");
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
  list.addSubnet(address, prefix, version === 4 ? "ipv4" : "ipv6");
}

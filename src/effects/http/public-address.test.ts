import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isPublicAddress } from "./public-address.ts";

/** What a URL makes of a host, as it comes to the guard. */
function hostOf(host: string): string {
  return new URL(`https://${host}/`).hostname.replace(/^\[|\]$/g, "");
}

test.each([
  // loopback, in the forms that a URL understands
  "127.0.0.1",
  "127.1",
  "127.0.1",
  "2130706433",
  "0x7f000001",
  "0x7f.1",
  "0177.0.0.1",
  "017700000001",
  "①②⑦.0.0.1",
  "127。0。0。1",
  "127.255.255.254",
  "[::1]",
  "[0:0:0:0:0:0:0:1]",
  "[::ffff:127.0.0.1]",
  "[::ffff:7f00:1]",
  "[0:0:0:0:0:FFFF:7F00:0001]",
  "[::127.0.0.1]",
  "[::7f00:1]",
  "[::ffff:0:127.0.0.1]",
  "[64:ff9b::127.0.0.1]",
  "[64:ff9b:1::7f00:1]",
  "[2002:7f00:1::]",
  "[2001:0:7f00:1::]",
  // nowhere
  "0.0.0.0",
  "0",
  "0.1.2.3",
  "[::]",
  "[100::1]",
  // private
  "10.0.0.1",
  "167772161",
  "172.16.0.1",
  "172.31.255.255",
  "192.168.1.1",
  "0xc0a80101",
  "[fc00::1]",
  "[fdff::1]",
  "[fec0::1]",
  // the metadata of clouds
  "169.254.169.254",
  "2852039166",
  "0xa9.0xfe.0xa9.0xfe",
  "[::ffff:169.254.169.254]",
  "[64:ff9b::a9fe:a9fe]",
  "[fd00:ec2::254]",
  "[fe80::1]",
  "[febf::1]",
  // of carriers, of many, and of nobody
  "100.64.0.1",
  "100.100.100.200",
  "100.127.255.255",
  "192.0.0.192",
  "224.0.0.1",
  "239.255.255.250",
  "[ff02::1]",
  "240.0.0.1",
  "255.255.255.255",
  "192.0.2.1",
  "198.18.0.1",
  "198.51.100.1",
  "203.0.113.1",
  "192.88.99.1",
  "[2001:db8::1]",
  "[3fff::1]",
  "[5f00::1]",
  "[4000::1]",
])("%s is not public", (host) => expect(isPublicAddress(hostOf(host))).toBe(false));

test.each([
  "8.8.8.8",
  "1.1.1.1",
  "134744072",
  "9.255.255.255",
  "11.0.0.0",
  "100.63.255.255",
  "100.128.0.0",
  "126.255.255.255",
  "128.0.0.0",
  "169.253.255.255",
  "172.15.255.255",
  "172.32.0.0",
  "192.167.255.255",
  "223.255.255.255",
  "[2606:4700:4700::1111]",
  "[2a00:1450:4001:81b::200e]",
])("%s is public", (host) => expect(isPublicAddress(hostOf(host))).toBe(true));

test.each([
  "",
  "localhost",
  "127.1",
  "0x8.8.8.8",
  "8.8.8.8:80",
  "fe80::1%eth0",
  "2606:4700::1%eth0",
  "8.8.8.8 ",
])("%j is no address, and so not public", (text) => expect(isPublicAddress(text)).toBe(false));

describe("every form of every special range of IPv4", () => {
  /** IANA's registry of special addresses, with multicast. */
  const RANGES = [
    [0, 0, 0, 0, 8],
    [10, 0, 0, 0, 8],
    [100, 64, 0, 0, 10],
    [127, 0, 0, 0, 8],
    [169, 254, 0, 0, 16],
    [172, 16, 0, 0, 12],
    [192, 0, 0, 0, 24],
    [192, 0, 2, 0, 24],
    [192, 88, 99, 0, 24],
    [192, 168, 0, 0, 16],
    [198, 18, 0, 0, 15],
    [198, 51, 100, 0, 24],
    [203, 0, 113, 0, 24],
    [224, 0, 0, 0, 4],
    [240, 0, 0, 0, 4],
  ].map(([a = 0, b = 0, c = 0, d = 0, bits = 0]) => ({
    first: ((a * 256 + b) * 256 + c) * 256 + d,
    size: 2 ** (32 - bits),
  }));
  const octets = (n: number) => [24, 16, 8, 0].map((shift) => Math.floor(n / 2 ** shift) % 256);
  const halves = (n: number) => `${Math.floor(n / 65_536).toString(16)}:${(n % 65_536).toString(16)}`;
  const PLAIN: ((n: number) => string)[] = [
    (n) => octets(n).join("."),
    (n) => String(n),
    (n) => `0x${n.toString(16)}`,
    (n) => `0${n.toString(8)}`,
    (n) =>
      octets(n)
        .map((part) => `0x${part.toString(16)}`)
        .join("."),
    (n) =>
      octets(n)
        .map((part) => `0${part.toString(8)}`)
        .join("."),
    (n) => `${octets(n)[0]}.${n % 2 ** 24}`,
    (n) => `${octets(n).slice(0, 2).join(".")}.${n % 2 ** 16}`,
    (n) => `${octets(n).join(".")}.`,
  ];
  const INSIDE: ((n: number) => string)[] = [
    (n) => `[::ffff:${octets(n).join(".")}]`,
    (n) => `[::ffff:${halves(n)}]`,
    (n) => `[0:0:0:0:0:FFFF:${halves(n).toUpperCase()}]`,
    (n) => `[::${octets(n).join(".")}]`,
    (n) => `[::${halves(n)}]`,
    (n) => `[::ffff:0:${halves(n)}]`,
    (n) => `[64:ff9b::${halves(n)}]`,
    (n) => `[64:ff9b:1::${halves(n)}]`,
    (n) => `[2002:${halves(n)}::1]`,
    (n) => `[2001:0:${halves(n)}::1]`,
  ];
  const special = fc
    .constantFrom(...RANGES)
    .chain(({ first, size }) =>
      fc.oneof(fc.constantFrom(first, first + size - 1), fc.integer({ min: first, max: first + size - 1 })),
    );

  test("is not public", () => {
    fc.assert(
      fc.property(special, fc.constantFrom(...PLAIN, ...INSIDE), (address, form) => {
        expect(isPublicAddress(hostOf(form(address)))).toBe(false);
      }),
      { numRuns: 3000 },
    );
  });

  test("nor is any address at all that is wrapped in IPv6", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 32 - 1 }), fc.constantFrom(...INSIDE), (address, form) => {
        expect(isPublicAddress(hostOf(form(address)))).toBe(false);
      }),
      { numRuns: 1000 },
    );
  });

  /** Given out, but for tasks of the network itself (AS112, AMT): refused too. */
  const TASKS = [0xc01fc400, 0xc034c100, 0xc0af3000].map((first) => ({ first, size: 256 }));
  test("and outside of them an address is public in every plain form", () => {
    const outside = fc
      .integer({ min: 0, max: 2 ** 32 - 1 })
      .filter((n) => ![...RANGES, ...TASKS].some(({ first, size }) => n >= first && n < first + size));
    fc.assert(
      fc.property(outside, fc.constantFrom(...PLAIN), (address, form) => {
        expect(isPublicAddress(hostOf(form(address)))).toBe(true);
      }),
      { numRuns: 1000 },
    );
  });
});

import { createHmac, randomBytes } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { createMac } from "./mac.ts";

const algorithm = fc.constantFrom("sha1" as const, "sha256" as const, "sha512" as const);
const bytes = (maxLength: number) => fc.uint8Array({ maxLength }).map((given) => Buffer.from(given));

test("is what node:crypto makes of any key and any message, in whatever parts it comes", () => {
  const part = fc.oneof(bytes(300), fc.string({ unit: "binary", maxLength: 100 }));
  fc.assert(
    // keys shorter than a block, as long as one, and longer
    fc.property(algorithm, bytes(300), fc.array(part, { maxLength: 5 }), (name, key, parts) => {
      const hmac = createHmac(name, key);
      for (const one of parts) hmac.update(one);
      const mac = createMac(name, key);
      expect(mac(...parts)).toEqual(hmac.digest());
      expect(mac(...parts)).toEqual(mac(...parts));
    }),
    { numRuns: 1000 },
  );
});

test("a message of any size has its digest, whatever was signed before it", () => {
  const key = randomBytes(32);
  const mac = createMac("sha256", key);
  for (const size of [0, 1, 65_471, 65_472, 65_473, 1_000_000, 3]) {
    const body = randomBytes(size);
    expect(mac("1790000000.", body)).toEqual(
      createHmac("sha256", key).update("1790000000.").update(body).digest(),
    );
  }
});

test("agrees with the test cases of RFC 4231 and RFC 2202", () => {
  const hex = (mac: Buffer) => mac.toString("hex");
  const jefe = Buffer.from("Jefe");
  const question = "what do ya want for nothing?";
  expect(hex(createMac("sha256", jefe)(question))).toBe(
    "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
  );
  expect(hex(createMac("sha1", jefe)(question))).toBe("effcdf6ae5eb2fa2d27416d5f184df9c259a7c79");
  const long = Buffer.alloc(131, 0xaa);
  expect(hex(createMac("sha256", long)("Test Using Larger Than Block-Size Key - Hash Key First"))).toBe(
    "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
  );
});

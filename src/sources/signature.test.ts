import { expect, test } from "vitest";
import { checkAge, decodeDigest, fingerprint, readDecimal, sameDigest } from "./signature.ts";

test("names a secret by the first 12 digits of its SHA-256", () => {
  expect(fingerprint("abc")).toBe("ba7816bf8f01");
});

test("compares digests of different length without throwing", () => {
  expect(sameDigest(Buffer.from("a"), Buffer.from("ab"))).toBe(false);
  expect(sameDigest(Buffer.from("ab"), Buffer.from("ab"))).toBe(true);
  expect(sameDigest(Buffer.from("ab"), Buffer.from("ac"))).toBe(false);
});

test("decodes a digest only from its canonical text", () => {
  expect(decodeDigest("00ff", "hex", 2)).toEqual(Buffer.from([0, 255]));
  expect(decodeDigest("AP8=", "base64", 2)).toEqual(Buffer.from([0, 255]));
  expect(decodeDigest("AP8", "base64url", 2)).toEqual(Buffer.from([0, 255]));
  const wrong = ["00FF", "00f", "00ffzz", " 00ff", ""];
  expect(wrong.map((text) => decodeDigest(text, "hex", 2))).toEqual(wrong.map(() => undefined));
  // The last character's spare bits must be zero: otherwise several texts would mean one digest.
  const loose = ["AP9=", "AP8", "AP8==", "AP_="];
  expect(loose.map((text) => decodeDigest(text, "base64", 2))).toEqual(loose.map(() => undefined));
});

test("reads whole positive numbers and nothing else", () => {
  expect(readDecimal("1790000000")).toBe(1_790_000_000);
  for (const text of ["", "0", "01", "-1", "+1", "1.0", "1e9", "0x1", " 1", "1 ", "NaN", "Infinity", "٣"]) {
    expect(readDecimal(text)).toBeUndefined();
  }
  expect(readDecimal("9".repeat(16))).toBeUndefined();
});

test("says by how much a time is off", () => {
  expect(checkAge(1000, 1_421_900, 300)).toEqual({
    refused: "stale",
    diagnosis: "stale by 421 s (tolerance 300 s)",
  });
  expect(checkAge(2000, 1_000_000, 300)).toEqual({
    refused: "future",
    diagnosis: "in the future by 1000 s (tolerance 300 s)",
  });
  expect(checkAge(1000, 1_300_999, 300)).toBeNull();
});

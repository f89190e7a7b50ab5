// What is set for a destination is checked at the start, and wins over what an effect brings.
import { expect, test } from "vitest";
import { readDestinations, type DestinationOptions } from "./destination-options.ts";
import { createHttp } from "./performer.ts";

const URL = "https://api.example.com";

test.each<[DestinationOptions, string]>([
  [{ perSecond: 0 }, "perSecond"],
  [{ perSecond: Number.NaN }, "perSecond"],
  [{ gapMs: -1 }, "gapMs"],
  [{ perDay: 1.5 }, "perDay"],
  [{ concurrency: 0 }, "concurrency"],
  [{ keyValidMs: -1 }, "keyValidMs"],
  [{ headers: { authorization: "Bearer canary\r\nx-evil: 1" } }, "line breaks"],
  [{ headers: { host: "elsewhere" } }, "set by Ukemi"],
  [{ headers: { "Idempotency-Key": "mine" } }, "leave it out"],
])("%j is refused, and nothing secret is repeated", (options, words) => {
  const read = () => readDestinations({ [URL]: options });
  expect(read).toThrow(words);
  expect(read).not.toThrow("canary");
  expect(() => createHttp({ destinations: { [URL]: options } })).toThrow(words);
});

test("limits and headers are found by destination, however its origin is written", () => {
  const known = readDestinations({
    "https://API.example.com./": { perSecond: 0.5, headers: { "X-Key": "a" } },
  });
  expect(known.get(URL)).toEqual({ perSecond: 0.5, headers: { "x-key": "a" } });
});

test.each([
  { timeoutMs: 0 },
  { timeoutMs: Number.NaN },
  { concurrency: 0 },
  { concurrency: 1.5 },
  { tries: 0 },
])("%j is refused", (options) => expect(() => createHttp(options)).toThrow(Object.keys(options)[0]));

test("a URL of any length that may be called has a target that the ledger can keep, and tells two apart", () => {
  const http = createHttp();
  const draft = (end: string) =>
    http.draft({ url: `${URL}/${"x".repeat(2000)}${end}`, method: "DELETE", dedupe: "k" }).target;
  expect(Buffer.byteLength(draft("a"))).toBeLessThanOrEqual(2048);
  expect(draft("a")).not.toBe(draft("b"));
  expect(() => http.draft({ url: `https://${"a.".repeat(130)}example.com`, dedupe: "k" })).toThrow(
    "too long",
  );
});

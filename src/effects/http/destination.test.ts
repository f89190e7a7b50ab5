import { expect, test } from "vitest";
import { UkemiError } from "../../errors.ts";
import { destinationOf, readUrl } from "./destination.ts";

test.each([
  ["https://api.example.com/v1/charges?expand=1#top", "https://api.example.com"],
  ["HTTPS://API.Example.COM:443/", "https://api.example.com"],
  ["http://api.example.com:80", "http://api.example.com"],
  ["http://api.example.com:8080/a", "http://api.example.com:8080"],
  ["https://api.example.com:80/", "https://api.example.com:80"],
  ["https://api.example.com./v1", "https://api.example.com"],
  ["https://bücher.example/", "https://xn--bcher-kva.example"],
  ["http://0x7f.1:81/", "http://127.0.0.1:81"],
  ["https://[2001:DB8::1]/", "https://[2001:db8::1]"],
])("%s goes to %s", (url, destination) => expect(destinationOf(url)).toBe(destination));

test.each([
  ["", /such as https/],
  ["api.example.com", /such as https/],
  ["/v1/charges", /such as https/],
  ["https://", /such as https/],
  ["https://./", /such as https/],
  ["https://exa\nmple.com/", /such as https/],
  ["https://api.example.com/\0", /such as https/],
  ["ftp://api.example.com/", /https:\/\//],
  ["file:///etc/passwd", /https:\/\//],
  ["javascript:alert(1)", /https:\/\//],
  ["https://user:hunter2@api.example.com/", /Authorization/],
  ["https://hunter2@api.example.com/", /Authorization/],
  [`https://api.example.com/${"hunter2".repeat(300)}`, /longer than 2048/],
  [`https://api.example.com/${"ü".repeat(400)}`, /longer than 2048/],
])("refuses %j", (url, words) => {
  expect(() => destinationOf(url)).toThrow(UkemiError);
  expect(() => destinationOf(url)).toThrow(words);
  expect(() => destinationOf(url)).not.toThrow(/hunter2/);
});

test.each([undefined, null, 7, {}, new URL("https://api.example.com")])(
  "refuses %o, which is no text",
  (url) => {
    expect(() => readUrl(url)).toThrow(/such as https/);
  },
);

test("a URL of just the length that is allowed is taken, its fragment not counted", () => {
  const url = `https://api.example.com/${"a".repeat(2048 - 24)}`;
  expect(readUrl(`${url}#fragment`).href).toBe(url);
});

import { expect, test } from "vitest";
import { readAllowedDestinations } from "./allowed.ts";

const allowed = readAllowedDestinations([
  "http://127.0.0.1:8080",
  "HTTPS://Billing.Internal:443/",
  "mail.internal",
  "[::1]",
  "10.1",
]);

test.each([
  "http://127.0.0.1:8080",
  "https://billing.internal",
  "http://mail.internal",
  "https://mail.internal:8443",
  "http://[::1]:9000",
  "http://10.0.0.1:81",
])("allows %s", (origin) => expect(allowed.includes(origin)).toBe(true));

test.each([
  "https://127.0.0.1:8080",
  "http://127.0.0.1",
  "http://127.0.0.1:8081",
  "http://billing.internal",
  "https://a.mail.internal",
  "https://mail.internal.example.com",
  "http://[::2]",
])("does not allow %s", (origin) => expect(allowed.includes(origin)).toBe(false));

test.each([
  "",
  "mail.internal:25",
  "mail.internal/a",
  "http://mail.internal/a",
  "http://user:hunter2@mail.internal",
  "user:hunter2@mail.internal",
  "ftp://mail.internal",
  "::1",
  "*.internal",
  "a b",
  undefined,
])("refuses %j", (entry) => {
  expect(() => readAllowedDestinations([entry as string])).toThrow(/entry 1 is neither/);
});

import { expect, test } from "vitest";
import { classifyFault, describeFault } from "./faults.ts";

const error = (code: string | undefined, more: object = {}) =>
  Object.assign(new Error("message"), code === undefined ? more : { code, ...more });

test.each([
  ["connection refused", error("ECONNREFUSED"), "infrastructure"],
  ["connection lost", error(undefined), "infrastructure"],
  ["written to a lost connection", error("EPIPE"), "infrastructure"],
  ["shutdown", error("57P01"), "infrastructure"],
  ["too many connections", error("53300"), "infrastructure"],
  ["disk full", error("53100"), "infrastructure"],
  ["read-only", error("25006"), "infrastructure"],
  ["no such database", error("3D000"), "infrastructure"],
  ["any fatal error", error("55000", { severity: "FATAL" }), "infrastructure"],
  ["not an error at all", "text", "infrastructure"],
  ["deadlock", error("40P01"), "contention"],
  ["serialization", error("40001"), "contention"],
  ["lock timeout", error("55P03"), "contention"],
  ["statement timeout", error("57014"), "contention"],
  ["bad character", error("22021"), "refused"],
  ["check violation", error("23514"), "refused"],
  ["index row too large", error("54000"), "refused"],
  ["a fault of our own", new TypeError("x is not a function"), "refused"],
  ["prepared statement lost", error("26000"), "infrastructure"],
  ["raised by a trigger", error("P0001"), "refused"],
])("%s", (_, given, fault) => {
  expect(classifyFault(given)).toBe(fault);
});

test("describes an error without the row values of its detail", () => {
  const described = describeFault(error("23505", { detail: "Key (email)=(a@example.com) already exists." }));
  expect(described).toBe("message (SQLSTATE 23505)");
});

import { expect, test } from "vitest";
import { DEFAULTS, readSettings, showOption } from "./options.ts";

test("takes flags over the environment over defaults, and says where each came from", () => {
  const { settings, origins } = readSettings({ port: "1" }, { UKEMI_PORT: "2", UKEMI_HOST: "::1" });
  expect([settings.port, settings.host, settings.data]).toEqual([1, "::1", ".ukemi"]);
  expect([origins.port, origins.host, origins.data]).toEqual(["flag", "env", "default"]);
});

test("treats an empty variable as not set", () => {
  expect(readSettings({}, { DATABASE_URL: "", UKEMI_PORT: "" }).settings).toEqual(DEFAULTS);
});

test("splits lists at commas", () => {
  expect(readSettings({}, { STRIPE_WEBHOOK_SECRET: "whsec_a, whsec_b," }).settings.stripeSecrets).toEqual([
    "whsec_a",
    "whsec_b",
  ]);
});

test("never quotes a wrong value: it may be a secret", () => {
  expect(() => readSettings({}, { DATABASE_URL: "hunter2" })).toThrow(
    /^DATABASE_URL must begin with postgres:/,
  );
  expect(() => readSettings({}, { DATABASE_URL: "hunter2" })).not.toThrow(/hunter2/);
});

test("shows secrets only as set", () => {
  const { settings } = readSettings(
    {},
    { DATABASE_URL: "postgres://u:pw@h/d", STRIPE_WEBHOOK_SECRET: "whsec_a,whsec_b" },
  );
  expect(showOption("database", settings.database)).toBe("(set, hidden)");
  expect(showOption("stripeSecrets", settings.stripeSecrets)).toBe("(2 set, hidden)");
  expect(showOption("adminToken", settings.adminToken)).toBe("(not set)");
  expect(showOption("port", settings.port)).toBe("8787");
});

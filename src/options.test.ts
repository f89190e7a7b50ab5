import { expect, test } from "vitest";
import { DEFAULTS, examineSettings, readSettings, showOption } from "./options.ts";

test("takes flags over the environment over defaults, and says where each came from", () => {
  const { settings, origins } = readSettings({
    flags: { port: "1" },
    env: { UKEMI_PORT: "2", UKEMI_HOST: "::1" },
  });
  expect([settings.port, settings.host, settings.data]).toEqual([1, "::1", ".ukemi"]);
  expect([origins.port, origins.host, origins.data]).toEqual(["flag", "env", "default"]);
});

test("treats an empty variable as not set", () => {
  expect(readSettings({ env: { DATABASE_URL: "", UKEMI_PORT: "" } }).settings).toEqual(DEFAULTS);
});

test("splits lists at commas", () => {
  expect(
    readSettings({ env: { STRIPE_WEBHOOK_SECRET: "whsec_a, whsec_b," } }).settings.stripeSecrets,
  ).toEqual(["whsec_a", "whsec_b"]);
});

test("never quotes a wrong value: it may be a secret", () => {
  expect(() => readSettings({ env: { DATABASE_URL: "hunter2" } })).toThrow(
    /^DATABASE_URL must begin with postgres:/,
  );
  expect(() => readSettings({ env: { DATABASE_URL: "hunter2" } })).not.toThrow(/hunter2/);
});

test("shows secrets only as set", () => {
  const { settings } = readSettings({
    env: {
      DATABASE_URL: "postgres://u:pw@h/d?sslmode=require&password=pw",
      STRIPE_WEBHOOK_SECRET: "whsec_a,whsec_b",
    },
  });
  expect(showOption("database", settings.database)).toBe("postgres://u:***@h/d?sslmode=…&password=…");
  expect(showOption("stripeSecrets", settings.stripeSecrets)).toBe("(2 set, hidden)");
  expect(showOption("adminToken", settings.adminToken)).toBe("(not set)");
  expect(showOption("port", settings.port)).toBe("8787");
});

test.each(["postgres://u:p@w@h:x/d", "postgres://:pw@h", "postgresql://u:p%40w@h/d", "postgres://pw@"])(
  "hides the password of %s, whatever else it says",
  (address) => expect(showOption("database", address)).not.toMatch(/pw@|p@w|p%40w/),
);

test("goes on after a fault, and says what each was called where it was written", () => {
  const { settings, faults } = examineSettings({
    flags: { port: "eighty" },
    env: { UKEMI_LANES: "0", DATABASE_URL: "hunter2", LOG_LEVEL: "a-secret-in-the-wrong-place" },
    config: { pollMs: "5", data: 7, trustedProxies: "10.0.0.1", adminToken: "  " },
    file: "ukemi.config.ts",
  });
  expect(faults).toEqual([
    "DATABASE_URL must begin with postgres:// or postgresql://.",
    "ukemi.config.ts: data must be text that is not blank, not 7.",
    '--port must be a whole number from 0 to 65535, not "eighty".',
    "ukemi.config.ts: adminToken must be text that is not blank.",
    'ukemi.config.ts: trustedProxies must be a list of texts, not "10.0.0.1".',
    'UKEMI_LANES must be a whole number from 1 to 16, not "0".',
    'ukemi.config.ts: pollMs must be a whole number from 10 to 60000, not "5".',
    "LOG_LEVEL must be one of trace, debug, info, warn, error, fatal, silent.",
  ]);
  expect(settings).toEqual(DEFAULTS);
});

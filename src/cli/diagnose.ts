// The checks behind `ukemi doctor`: each gives one finding, none of them changes anything.
import { statfs } from "node:fs/promises";
import { UkemiError } from "../errors.ts";
import type { Settings } from "../options.ts";
import { startEmbedded } from "../storage/embedded/embedded.ts";
import { describeFault } from "../storage/faults.ts";
import { readMigrations, readSchema, requireSchema } from "../storage/migrate.ts";
import { openPool, readServerFacts, type Pool, type ServerFacts } from "../storage/postgres.ts";
import { readHealth } from "../storage/upkeep.ts";

/** What one check found, and what to do about it. */
export interface Finding {
  readonly check: string;
  readonly state: "ok" | "warn" | "bad";
  readonly found: string;
  readonly remedy?: string;
}

const ok = (check: string, found: string): Finding => ({ check, state: "ok", found });
const warn = (check: string, found: string, remedy: string): Finding => ({
  check,
  state: "warn",
  found,
  remedy,
});
const bad = (check: string, found: string, remedy: string): Finding => ({
  check,
  state: "bad",
  found,
  remedy,
});

/** Runs every check. The embedded server is started for it where none runs, and stopped again. */
export async function diagnose(settings: Settings): Promise<Finding[]> {
  const findings: Finding[] = [checkSecrets(settings), checkAccess(settings), await checkDisk(settings)];
  try {
    const embedded =
      settings.database === undefined ? await startEmbedded({ data: settings.data }) : undefined;
    const pool = openPool(embedded?.url ?? settings.database!, { max: 2, name: "ukemi doctor" });
    try {
      findings.unshift(...(await checkServer(pool, settings)));
    } finally {
      await pool.end();
      await embedded?.stop();
    }
  } catch (error) {
    const remedy =
      error instanceof UkemiError ? error.remedy : "Check DATABASE_URL, and that the server runs.";
    const found = error instanceof UkemiError ? error.message : `cannot be reached: ${describeFault(error)}`;
    findings.unshift(bad("store", found, remedy));
  }
  return findings;
}

async function checkServer(pool: Pool, settings: Settings): Promise<Finding[]> {
  const askedAt = Date.now();
  const facts = await readServerFacts(pool);
  const skewMs = (askedAt + Date.now()) / 2 - facts.now.getTime();
  const findings = [
    checkVersion(facts),
    checkDurability(facts, settings),
    checkPooler(facts, settings),
    checkClock(skewMs),
  ];
  const schema = await checkSchema(pool);
  findings.push(schema);
  if (schema.state === "ok") findings.push(...(await checkHealth(pool)));
  return findings;
}

function checkVersion(facts: ServerFacts): Finding {
  if (facts.major < 15) return bad("store", `PostgreSQL ${facts.version}`, "Use PostgreSQL 15 or newer.");
  if (facts.encoding !== "UTF8")
    return bad("store", `encoding ${facts.encoding}`, "Create the database with UTF8.");
  if (facts.readOnly)
    return bad("store", "the server is read-only (a standby?)", "Point DATABASE_URL at the primary.");
  return ok("store", `PostgreSQL ${facts.version}, ${facts.encoding}`);
}

function checkDurability(facts: ServerFacts, settings: Settings): Finding {
  if (!facts.fsync) {
    const remedy = "Set fsync = on: a crash would lose acknowledged events.";
    return settings.allowUnsafeDurability
      ? warn("durability", "fsync = off", remedy)
      : bad("durability", "fsync = off", remedy);
  }
  if (!facts.fullPageWrites) {
    return warn(
      "durability",
      "full_page_writes = off",
      "Turn it on unless the file system makes torn pages impossible.",
    );
  }
  const raised = ["off", "local"].includes(facts.synchronousCommit)
    ? " (raised to on for received events)"
    : "";
  return ok("durability", `fsync on, synchronous_commit ${facts.synchronousCommit}${raised}`);
}

function checkPooler(facts: ServerFacts, settings: Settings): Finding {
  if (!facts.pooled) return ok("pooler", "direct connection");
  if (settings.directUrl !== undefined) return ok("pooler", "a pooler, and UKEMI_DIRECT_URL goes round it");
  return warn(
    "pooler",
    "a transaction pooler stands in between: no session settings, no LISTEN, slower statements",
    "Set UKEMI_DIRECT_URL to a connection string that goes round it.",
  );
}

function checkClock(skewMs: number): Finding {
  const found = `this machine is ${Math.abs(skewMs).toFixed(0)} ms ${skewMs >= 0 ? "ahead of" : "behind"} the database`;
  if (Math.abs(skewMs) < 2000) return ok("clock", found);
  return warn("clock", found, "Check NTP on both. Signatures are judged by the database's clock meanwhile.");
}

async function checkSchema(pool: Pool): Promise<Finding> {
  const schema = await readSchema(pool);
  try {
    requireSchema(schema, await readMigrations());
    return ok("schema", `version ${schema.version}`);
  } catch (error) {
    if (!(error instanceof UkemiError)) throw error;
    return bad("schema", error.message, error.remedy);
  }
}

async function checkHealth(pool: Pool): Promise<Finding[]> {
  const health = await readHealth(pool);
  const findings: Finding[] = [];
  if (health.clockShiftSeconds !== 0) {
    findings.push(
      bad(
        "test clock",
        `ukemi.now() is moved by ${health.clockShiftSeconds} s`,
        "update ukemi.clock set shift = '0'",
      ),
    );
  }
  if (health.strayBodies > 0) {
    findings.push(
      warn(
        "partitions",
        "some bodies lie in the default partition",
        "Start `ukemi serve` once: it makes the missing month.",
      ),
    );
  }
  if (health.oldestTransactionSeconds > 3600) {
    const hours = (health.oldestTransactionSeconds / 3600).toFixed(1);
    findings.push(
      warn(
        "vacuum",
        `a transaction is open for ${hours} h`,
        "End it: it keeps dead rows from being removed.",
      ),
    );
  }
  return findings;
}

function checkSecrets(settings: Settings): Finding {
  const count = settings.stripeSecrets.length;
  if (count === 0)
    return warn(
      "secrets",
      "no Stripe signing secret",
      "Set STRIPE_WEBHOOK_SECRET (whsec_…) to receive from Stripe.",
    );
  if (!settings.stripeSecrets.every((secret) => secret.startsWith("whsec_"))) {
    return warn(
      "secrets",
      "a Stripe signing secret does not begin with whsec_",
      "Copy it again from the endpoint's page.",
    );
  }
  return ok("secrets", `${count} Stripe signing secret${count === 1 ? "" : "s (rolling?)"}`);
}

function checkAccess(settings: Settings): Finding {
  if (settings.adminToken === undefined)
    return ok("access", "no admin token: the API answers on this machine only");
  if (settings.adminToken.length < 24) {
    return warn("access", "the admin token is short", "Use 32 random bytes: openssl rand -hex 32");
  }
  return ok("access", "an admin token guards the API");
}

async function checkDisk(settings: Settings): Promise<Finding> {
  if (settings.database !== undefined) return ok("disk", "kept by the database server: watch it there");
  const disk = await statfs(settings.data).catch(() => statfs("."));
  const freeGiB = (disk.bavail * disk.bsize) / 1024 ** 3;
  const found = `${freeGiB.toFixed(1)} GiB free`;
  return freeGiB < 1
    ? warn("disk", found, "Free some: a full disk stops the embedded PostgreSQL.")
    : ok("disk", found);
}

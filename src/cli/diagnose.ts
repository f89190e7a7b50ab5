// The checks behind `ukemi doctor`: each gives a finding of its own, and none of them changes anything.
import { existsSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { join } from "node:path";
import type { Config } from "../config.ts";
import { UkemiError } from "../errors.ts";
import type { Settings } from "../options.ts";
import { fingerprint } from "../sources/signature.ts";
import { startEmbedded } from "../storage/embedded/embedded.ts";
import { PLAIN, readBodyKeys } from "../body-keys.ts";
import { readDataKeys } from "../storage/data-keys.ts";
import { sealed, unwrap } from "../storage/keyring.ts";
import { readMigrations, readSchema, requireSchema } from "../storage/migrate.ts";
import { explain } from "../storage/open.ts";
import { closePool, openPool, readServerFacts, type Pool, type ServerFacts } from "../storage/postgres.ts";
import { adminUntil, hasTokens } from "../storage/tokens.ts";
import { readHealth } from "../storage/upkeep.ts";
import { signStripe } from "../testing/sign.ts";
import { showSpan } from "./moment.ts";
import { describeUrl } from "./store.ts";

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

/** What is known of the configuration. */
export interface Configuration {
  readonly config: Config | undefined;
  /** What the file found in the place of STRIPE_WEBHOOK_SECRET where that is not set. */
  readonly standIn: string;
  /** What is wrong with flags, environment and file, one sentence each. */
  readonly faults: readonly string[];
  /** Variables that mean nothing, one sentence each. */
  readonly strays: readonly string[];
}

/** Runs every check. The embedded server is started for it where it has been set up and none runs, and stopped again. */
export async function diagnose(settings: Settings, configuration: Configuration): Promise<Finding[]> {
  const { config, standIn, faults, strays } = configuration;
  const store = await checkStore(settings);
  return [
    // each says what is expected; the rest is examined as if it were not there
    ...faults.map((found): Finding => ({ check: "config", state: "bad", found })),
    ...strays.map((stray) => warn("config", stray, "Correct its name, or take it away: it has no effect.")),
    ...store,
    ...(await checkDirectUrl(settings)),
    ...(config ? checkSources(config.sources, standIn) : [checkSecrets(settings)]),
    ...(store.some(({ check }) => check === "access") ? [] : [checkAccess(settings)]),
    await checkDisk(settings),
  ];
}

async function checkStore(settings: Settings): Promise<Finding[]> {
  if (settings.database !== undefined) return checkServer(settings.database, settings);
  if (!existsSync(join(settings.data, "postgres")) && !existsSync(join(settings.data, "postgres.location"))) {
    return [ok("store", `nothing in ${settings.data} yet: the first start sets up the embedded PostgreSQL`)];
  }
  return attempt("store", async () => {
    const embedded = await startEmbedded({ data: settings.data });
    try {
      return await checkServer(embedded.url, settings);
    } finally {
      await embedded.stop();
    }
  });
}

/** A check that cannot be made is a finding too, with the reason. */
async function attempt(check: string, work: () => Promise<Finding[]>): Promise<Finding[]> {
  try {
    return await work();
  } catch (error) {
    const explained = explain(error);
    if (!(explained instanceof UkemiError)) throw error;
    return [bad(check, explained.message, explained.remedy)];
  }
}

function checkServer(url: string, settings: Settings): Promise<Finding[]> {
  return attempt("store", async () => {
    const pool = openPool(url, { max: 2, name: "ukemi doctor", queryTimeoutMs: 10_000 });
    try {
      const askedAt = Date.now();
      const facts = await readServerFacts(pool);
      const skewMs = (askedAt + Date.now()) / 2 - facts.now.getTime();
      return [
        checkVersion(facts, url),
        checkDurability(facts, settings),
        checkPooler(facts, settings),
        checkClock(skewMs),
        ...(await attempt("schema", async () => [
          ...(await checkSchema(pool)),
          await checkBodies(pool, settings),
          ...(await checkTokens(pool, settings)),
        ])),
      ];
    } finally {
      await closePool(pool);
    }
  });
}

function checkVersion(facts: ServerFacts, url: string): Finding {
  if (facts.major < 15) return bad("store", `PostgreSQL ${facts.version}`, "Use PostgreSQL 15 or newer.");
  if (facts.encoding !== "UTF8")
    return bad("store", `encoding ${facts.encoding}`, "Create the database with UTF8.");
  if (facts.readOnly) {
    return bad("store", "the server takes no writes (a standby?)", "Point DATABASE_URL at the primary.");
  }
  return ok("store", `PostgreSQL ${facts.version}, ${facts.encoding}, ${describeUrl(url)}`);
}

function checkDurability(facts: ServerFacts, settings: Settings): Finding {
  if (!facts.fsync) {
    const found = settings.allowUnsafeDurability ? warn : bad;
    return found("durability", "fsync = off", "Set fsync = on: a crash would lose acknowledged events.");
  }
  if (!facts.fullPageWrites) {
    return warn(
      "durability",
      "full_page_writes = off",
      "Turn it on, unless the file system cannot tear pages.",
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

async function checkSchema(pool: Pool): Promise<Finding[]> {
  const schema = await readSchema(pool);
  requireSchema(schema, await readMigrations());
  const health = await readHealth(pool);
  const findings = [ok("schema", `version ${schema.version}`)];
  if (health.clockShiftSeconds !== 0) {
    const remedy = "Run: update ukemi.clock set shift = '0'";
    findings.push(bad("test clock", `ukemi.now() is moved by ${health.clockShiftSeconds} s`, remedy));
  }
  if (health.strayBodies > 0) {
    const remedy =
      "The server makes this month and the next by itself: check its log, and the user's right to make tables.";
    findings.push(warn("partitions", "some bodies lie in the default partition", remedy));
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

/** Whether every data key can be opened: a server or a worker would refuse to start. */
async function checkBodies(pool: Pool, { bodyKeys }: Settings): Promise<Finding> {
  const masters = readBodyKeys(bodyKeys);
  const rows = await readDataKeys(pool);
  const shut = rows.filter((row) => !unwrap(masters, row));
  if (shut[0]) {
    const { message, remedy } = sealed(masters, shut[0]);
    return bad(
      "bodies",
      shut.length === 1 ? message : `${message} So it is with ${shut.length} keys.`,
      remedy,
    );
  }
  const first = bodyKeys[0] === PLAIN ? undefined : masters[0];
  if (!first) return ok("bodies", "new ones are stored as they come");
  const old = rows.filter((row) => row.wrapped_by !== first.name).length;
  const others = old === 0 ? "" : `; ${old} older data keys still need another master key`;
  return ok("bodies", `sealed, with data keys under the master key ${first.name}${others}`);
}

async function checkDirectUrl(settings: Settings): Promise<Finding[]> {
  const { directUrl } = settings;
  if (directUrl === undefined) return [];
  return attempt("direct url", async () => {
    const pool = openPool(directUrl, { max: 1, name: "ukemi doctor", queryTimeoutMs: 10_000 });
    try {
      const { pooled } = await readServerFacts(pool);
      if (!pooled) return [ok("direct url", describeUrl(directUrl))];
      return [
        warn("direct url", "it goes through a pooler too", "Name the server itself in UKEMI_DIRECT_URL."),
      ];
    } finally {
      await closePool(pool);
    }
  });
}

/** The sources of the file have secrets of their own; only one that was made up for it can be told. */
function checkSources(sources: Config["sources"], standIn: string): Finding[] {
  const body = Buffer.from("{}");
  const request = { headers: signStripe(body, standIn), body };
  return Object.entries(sources).map(([name, source]) => {
    if (source.kind === "sns")
      return ok("secrets", `the source ${name} needs none: AWS signs with its certificates`);
    const madeUp = source.kind === "stripe" && source.verify(request, Date.now()).refused === undefined;
    return madeUp
      ? warn("secrets", `the source ${name} has no signing secret`, "Set STRIPE_WEBHOOK_SECRET (whsec_…).")
      : ok("secrets", `the source ${name} has its own, from the configuration file`);
  });
}

function checkSecrets(settings: Settings): Finding {
  const secrets = settings.stripeSecrets;
  if (secrets.length === 0) {
    return warn(
      "secrets",
      "no Stripe signing secret",
      "Set STRIPE_WEBHOOK_SECRET (whsec_…) to receive from Stripe.",
    );
  }
  if (!secrets.every((secret) => secret.startsWith("whsec_"))) {
    const remedy = "Copy it again from the endpoint's page.";
    return warn("secrets", "a Stripe signing secret does not begin with whsec_", remedy);
  }
  // the fingerprint is the beginning of the secret's SHA-256: it tells two secrets apart and gives neither away
  return ok("secrets", `Stripe signing secrets with the fingerprints ${secrets.map(fingerprint).join(", ")}`);
}

/** So long before the last admin's token expires it is told. */
const EXPIRY_WARNING_MS = 14 * 86_400_000;

/** Who asks without a token is answered only as long as nobody has one. */
async function checkTokens(pool: Pool, { adminToken }: Settings): Promise<Finding[]> {
  if (adminToken !== undefined || !(await hasTokens(pool))) return [];
  const guarded = "tokens guard the API (ukemi token lists them)";
  const until = await adminUntil(pool);
  if (until === null) return [ok("access", guarded)];
  const remedy = "Make one with ukemi token create --scope admin.";
  if (until === undefined) {
    return [warn("access", `${guarded}, and nobody has an active one of scope admin`, remedy)];
  }
  const leftMs = until.getTime() - Date.now();
  const found = `${guarded}; the last of scope admin expires in ${showSpan(leftMs)}`;
  return [leftMs < EXPIRY_WARNING_MS ? warn("access", found, remedy) : ok("access", found)];
}

function checkAccess(settings: Settings): Finding {
  if (settings.adminToken === undefined) {
    return warn(
      "access",
      "no admin token: the API answers every caller on this machine",
      "Make one with ukemi token create, or set UKEMI_ADMIN_TOKEN, before you put a reverse proxy in front.",
    );
  }
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

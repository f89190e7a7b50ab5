// The command line as a person or a script meets it.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { readMigrations } from "../../src/storage/migrate.ts";
import { runCli } from "../support/cli.ts";
import { asAdmin, createDatabase } from "../support/database.ts";
import { BIN, cleanEnv, SECRET, startServerProcess } from "../support/server.ts";
import { withUser } from "../support/url.ts";

async function scratchFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "ukemi-cli-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

test("sends a signed test event and shows what became of it", async () => {
  const { url: database } = await createDatabase();
  const server = await startServerProcess({ DATABASE_URL: database });
  onTestFinished(async () => void (await server.kill("SIGTERM")));
  const send = (...args: string[]) =>
    runCli(["send", ...args, "--url", server.url], { STRIPE_WEBHOOK_SECRET: SECRET });
  const first = await send("charge.succeeded", "--id", "evt_1");
  expect(first.code).toBe(0);
  expect(first.stdout).toMatch(/204: committed in \d+ ms/);
  expect(first.stdout).toMatch(/status +unrouted/);
  const second = await send("charge.succeeded", "--id", "evt_1", "--json");
  expect(JSON.parse(second.stdout)).toMatchObject({
    answer: { status: 204, duplicate: true },
    event: { status: "unrouted" },
  });
  const wrong = await send("--secret", "whsec_other");
  expect(wrong.code).toBe(1);
  expect(wrong.stdout).toContain("400");
});

test("says what to do when no server answers, or there is no secret", async () => {
  const data = await scratchFolder();
  const none = await runCli(["send", "--data", data]);
  expect(none).toMatchObject({ code: 2, stderr: expect.stringContaining("no signing secret") });
  const away = await runCli(["send", "--url", "http://127.0.0.1:9", "--secret", SECRET]);
  expect(away).toMatchObject({ code: 1, stderr: expect.stringContaining("No server answers") });
});

test("migrates a given database once, and says so", async () => {
  const { url } = await createDatabase({ empty: true });
  const first = await runCli(["migrate"], { DATABASE_URL: url });
  const to = (await readMigrations()).at(-1)!.version;
  expect(first).toMatchObject({ code: 0, stdout: `Migrated from version 0 to ${to}.\n` });
  const second = await runCli(["migrate", "--json"], { DATABASE_URL: url });
  expect(JSON.parse(second.stdout)).toEqual({ from: to, to });
});

test("does not migrate a given database unless told to", async () => {
  const { url } = await createDatabase({ empty: true });
  const refused = await runCli(["serve"], { DATABASE_URL: url, UKEMI_PORT: "0" });
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining("ukemi migrate") });
  const server = await startServerProcess({ DATABASE_URL: url }, ["--migrate"]);
  expect(await server.kill("SIGTERM")).toBe(0);
});

test.each([
  [["serve", "--port", "eighty"], {}, "--port must be a whole number"],
  [["serve"], { UKEMI_PORT: "99999" }, "UKEMI_PORT must be a whole number"],
  [["serve"], { DATABASE_URL: "mysql://x" }, "DATABASE_URL must begin with postgres://"],
  [["serve", "--colour"], {}, "unknown option '--colour'"],
  [["sevre"], {}, "Did you mean serve?"],
  [
    ["serve"],
    { STRIPE_WEBHOOK_SECRET: "sk_live_x", DATABASE_URL: "postgres://127.0.0.1:9/x" },
    "signing secret",
  ],
  [["serve"], { LOG_LEVEL: "loud", UKEMI_LANES: "0" }, "LOG_LEVEL must be one of"],
] as [string[], Record<string, string>, string][])(
  "ends with 2 and a clear message: %j %j",
  async (args, env, message) => {
    const { code, stderr } = await runCli(args, env);
    expect(stderr).toContain(message);
    expect(code).toBe(2);
  },
);

test("names every wrong option at once", async () => {
  const { stderr } = await runCli(["serve"], { LOG_LEVEL: "loud", UKEMI_LANES: "0", UKEMI_PORT: "x" });
  for (const name of ["LOG_LEVEL", "UKEMI_LANES", "UKEMI_PORT"]) expect(stderr).toContain(name);
});

test("says that the database cannot be reached, or the port is taken", async () => {
  const unreachable = await runCli(["serve"], { DATABASE_URL: "postgres://u:p@127.0.0.1:9/x" });
  expect(unreachable).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("PostgreSQL cannot be reached: ECONNREFUSED"),
  });
  const { url: database } = await createDatabase();
  const server = await startServerProcess({ DATABASE_URL: database });
  const taken = await runCli(["serve", "--port", new URL(server.url).port], { DATABASE_URL: database });
  expect(taken).toMatchObject({ code: 1, stderr: expect.stringContaining("is taken") });
  await server.kill("SIGTERM");
});

test("examines the store, its durability, clock, schema, secrets and disk", async () => {
  const { url: database, pool, name } = await createDatabase();
  const healthy = await runCli(["doctor", "--json"], {
    DATABASE_URL: database,
    STRIPE_WEBHOOK_SECRET: SECRET,
  });
  const findings = (JSON.parse(healthy.stdout) as { findings: { check: string; state: string }[] }).findings;
  expect(findings.map(({ check, state }) => `${check} ${state}`)).toEqual([
    "store ok",
    "durability ok",
    "pooler ok",
    "clock ok",
    "schema ok",
    "bodies ok",
    "secrets ok",
    "access warn",
    "disk ok",
  ]);
  expect(healthy.code).toBe(0);
  await pool.query("update ukemi.clock set shift = '1 hour'");
  await pool.query(`alter database ${name} set default_transaction_read_only = on`);
  const sick = await runCli(["doctor"], { DATABASE_URL: database });
  expect(sick.code).toBe(1);
  expect(sick.stdout).toMatch(/BAD +store +the server takes no writes/);
  expect(sick.stdout).toMatch(/BAD +test clock +ukemi.now\(\) is moved by 3600 s/);
  expect(sick.stdout).toMatch(/warn +secrets/);
});

test("tells in time that the last admin's token expires, and when nobody has one", async () => {
  const { url, pool } = await createDatabase();
  const env = { DATABASE_URL: url };
  const make = (...flags: string[]) =>
    runCli(["token", "create", "--name", "x", "--scope", "admin", "--reason", "x", ...flags], env);
  const access = async () => /^(\w+) +access +(.*)$/m.exec((await runCli(["doctor"], env)).stdout)?.slice(1);
  expect(await access()).toEqual(["warn", expect.stringContaining("no admin token")]);
  expect((await make("--expires-in", "3d")).code).toBe(0);
  expect(await access()).toEqual(["warn", expect.stringMatching(/the last of scope admin expires in 3 d$/)]);
  expect((await make("--expires-in", "90d")).code).toBe(0);
  expect(await access()).toEqual(["ok", expect.stringMatching(/expires in 90 d$/)]);
  await pool.query("update ukemi.tokens set revoked_at = ukemi.now()");
  expect(await access()).toEqual(["warn", expect.stringContaining("nobody has an active one")]);
  expect((await make("--tenant", "org_1")).code).toBe(0);
  expect(await access()).toEqual(["warn", expect.stringContaining("nobody has an active one")]);
  expect((await make()).code).toBe(0);
  expect(await access()).toEqual(["ok", expect.not.stringContaining("expires")]);
}, 120_000);

test("finds a missing schema and an unreachable server", async () => {
  const { url } = await createDatabase({ empty: true });
  const empty = await runCli(["doctor"], { DATABASE_URL: url });
  expect(empty.stdout).toMatch(/BAD +schema .*no Ukemi schema[^]*→ Run `ukemi migrate`/);
  const away = await runCli(["doctor"], { DATABASE_URL: "postgres://u:p@127.0.0.1:9/x" });
  expect(away).toMatchObject({ code: 1, stdout: expect.stringMatching(/BAD +store +.*ECONNREFUSED/) });
});

test("prints help and version for every command", async () => {
  for (const command of ["", "dev", "serve", "migrate", "doctor", "send"]) {
    const { code, stdout } = await runCli([...(command ? [command] : []), "--help"]);
    expect([code, stdout]).toEqual([0, expect.stringContaining("Usage: ukemi")]);
  }
  expect((await runCli(["--version"])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
});

test("survives a reader that closes its output early", async () => {
  const { url } = await createDatabase();
  const child = spawn("sh", ["-c", `"${process.execPath}" "${BIN}" doctor | true`], {
    env: { ...cleanEnv(), DATABASE_URL: url },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let stderr = "";
  child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
  await once(child, "close");
  expect(stderr).toBe("");
});

test("leaves an empty data folder as it was when it is examined", async () => {
  const data = await scratchFolder();
  const { code, stdout } = await runCli(["doctor", "--data", data]);
  expect([code, stdout]).toEqual([0, expect.stringMatching(/ok +store +nothing in .* yet/)]);
  expect(await readdir(data)).toEqual([]);
});

test.each([
  ["a file", (folder: string) => writeFile(join(folder, "data"), ""), "data"],
  ["a place where no folder can be made", async () => {}, "/proc/nope/data"],
])("says that %s cannot be the data folder", async (_, prepare, data) => {
  const folder = await scratchFolder();
  await prepare(folder);
  for (const command of ["dev", "serve"]) {
    const run = await runCli(
      [command, "--data", data, "--port", "0"],
      { STRIPE_WEBHOOK_SECRET: "" },
      { cwd: folder },
    );
    expect(run.stderr).not.toContain("    at ");
    expect(run).toMatchObject({ code: 1, stderr: expect.stringContaining("data") });
  }
});

test("says which right is missing", async () => {
  const { url, name } = await createDatabase({ empty: true });
  const role = `${name}_guest`;
  await asAdmin(async (admin) => {
    await admin.query(`create role ${role} login password 'pw'`);
    await admin.query(`grant connect on database ${name} to ${role}`);
  });
  onTestFinished(async () => {
    await asAdmin(async (admin) => {
      await admin.query(`revoke all on database ${name} from ${role}`);
      await admin.query(`drop role ${role}`);
    });
  });
  const { code, stderr } = await runCli(["migrate"], { DATABASE_URL: withUser(url, role, "pw") });
  expect(stderr).toMatch(/permission denied for database .*\n +Connect as the owner/);
  expect(code).toBe(1);
});

// The configuration file: found, loaded as TypeScript without a build step, and its faults told in words.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { OPTION_NAMES } from "../../src/options.ts";
import { startEmbedded } from "../../src/storage/embedded/embedded.ts";
import { runCli } from "../support/cli.ts";
import { createDatabase } from "../support/database.ts";
import { deliver } from "../support/deliver.ts";
import { freePort } from "../support/port.ts";
import { BIN, cleanEnv, SECRET, startServerProcess } from "../support/server.ts";
import { until } from "../support/until.ts";
import { untilDrained } from "../support/work.ts";

const INDEX = pathToFileURL(join(BIN, "../../index.js")).href;

/** A folder with a configuration file in it. */
async function writeConfig(name: string, text: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "ukemi-config-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, name);
  await writeFile(file, text);
  return file;
}

const HANDLERS = `
import { defineConfig, stripe, terminal } from ${JSON.stringify(INDEX)};

interface Entry { readonly event: string }
const entry = (event: string): Entry => ({ event });

export default defineConfig({
  sources: { stripe: stripe({ secrets: [${JSON.stringify(SECRET)}] }) },
  pollMs: 50,
  handlers(ukemi) {
    ukemi.on("stripe", "payment_intent.succeeded", async ({ event, tx }) => {
      if (event.id.startsWith("evt_bad")) throw terminal("bad");
      await tx.query("insert into ledger values ($1)", [entry(event.id).event]);
    });
  },
});
`;

test("serves and works with a configuration in TypeScript", async () => {
  const { url, pool } = await createDatabase();
  await pool.query("create table ledger (event text not null)");
  const config = await writeConfig("ukemi.config.ts", HANDLERS);
  const server = await startServerProcess({ DATABASE_URL: url }, ["--config", config]);
  onTestFinished(async () => void (await server.kill("SIGKILL")));
  for (const id of ["evt_1", "evt_2", "evt_bad"]) expect((await deliver(server.url, id)).status).toBe(204);
  const jobs = await untilDrained(pool);
  // the words of terminal() are understood although the file has its own copy of the module
  expect(Object.fromEntries(jobs.map(({ event_id, state, death }) => [event_id, [state, death]]))).toEqual({
    evt_1: ["done", null],
    evt_2: ["done", null],
    evt_bad: ["dead", "terminal"],
  });
  expect((await pool.query("select from ledger")).rowCount).toBe(2);
  expect(await server.kill("SIGTERM")).toBe(0);
});

test("knows its handlers before it receives the first event", async () => {
  const { url, pool } = await createDatabase();
  await pool.query("create table ledger (event text not null)");
  const config = await writeConfig("ukemi.config.ts", HANDLERS);
  const port = await freePort();
  const starting = startServerProcess({ DATABASE_URL: url, UKEMI_PORT: String(port) }, ["--config", config]);
  onTestFinished(async () => void (await (await starting).kill("SIGKILL")));
  // a sender that does not wait until the server says that it is ready
  await until(
    async () => (await deliver(`http://127.0.0.1:${port}`, "evt_1")).status === 204,
    "the first answer",
  );
  expect(await untilDrained(pool)).toMatchObject([{ event_id: "evt_1", state: "done" }]);
});

test("receives in one process and works in another", async () => {
  const { url, pool } = await createDatabase();
  await pool.query("create table ledger (event text not null)");
  const config = await writeConfig("ukemi.config.ts", HANDLERS);
  const worker = await startServerProcess({ DATABASE_URL: url }, ["--config", config], "work");
  const server = await startServerProcess({ DATABASE_URL: url }, ["--config", config, "--no-work"]);
  onTestFinished(async () => void (await Promise.all([worker.kill("SIGKILL"), server.kill("SIGKILL")])));
  await Promise.all(Array.from({ length: 20 }, (_, index) => deliver(server.url, `evt_${index}`)));
  const jobs = await untilDrained(pool);
  expect(jobs.every((job) => job.state === "done")).toBe(true);
  expect((await pool.query("select from ledger")).rowCount).toBe(20);
  expect((await pool.query("select from ukemi.workers")).rowCount).toBe(1);
  expect(await worker.kill("SIGTERM")).toBe(0);
  expect(worker.output()).toContain('"msg":"stopped"');
});

test.each([
  ["a syntax error", "export default {{", "cannot be loaded: SyntaxError: Unexpected token '{' (FILE:1)"],
  [
    "no default export",
    "export const config = {};",
    "must export its configuration: export default defineConfig",
  ],
  [
    "a function in its place",
    "export default () => ({});",
    "an object, not a function: export default defineConfig",
  ],
  ["a list in its place", "export default [];", "an object, not a list: export default defineConfig"],
  [
    "an unknown option",
    "export default { sources: {}, prot: 1 };",
    ": there is no option named prot: did you mean port?",
  ],
  [
    "the name of a variable",
    "export default { sources: {}, LOG_LEVEL: 'info' };",
    ": there is no option named LOG_LEVEL: did you mean logLevel?",
  ],
  [
    "an option of the wrong kind",
    "export default { sources: {}, port: 'x' };",
    ': port must be a whole number from 0 to 65535, not "x".',
  ],
  [
    "handlers that are none",
    "export default { sources: {}, handlers: 5 };",
    ": handlers must be a function, not 5.",
  ],
  ["no sources", "export default {};", ": sources must be an object of sources"],
  [
    "a source that was not made",
    "export default { sources: { stripe: () => 1 } };",
    ": sources.stripe is a function: call it",
  ],
  [
    "a source that is none",
    "export default { sources: { stripe: {} } };",
    ": sources.stripe is not a source: make it with",
  ],
  [
    "a queue with text for a number",
    "export default { sources: {}, queues: { mail: { concurrency: '5' } } };",
    ': queues.mail.concurrency must be a whole number from 1 to 1000, not "5".',
  ],
  [
    "a queue with an unknown option",
    "export default { sources: {}, queues: { mail: { concurency: 5 } } };",
    ": queues.mail has no option named concurency: did you mean concurrency?",
  ],
  [
    "an alert for nobody",
    "export default { sources: {}, onAlert: 'me' };",
    ': onAlert must be a function, not "me".',
  ],
  [
    "a logger that lacks methods",
    "export default { sources: {}, logger: console };",
    ": logger must be one of pino's, or have its methods: it lacks fatal, isLevelEnabled.",
  ],
  [
    "secrets in the wrong place",
    "export default { sources: {}, stripeSecrets: ['whsec_hunter2'] };",
    ": stripeSecrets has no place here",
  ],
  ["a throw", "\nthrow new TypeError('no luck');", "cannot be loaded: TypeError: no luck (FILE:2)"],
  [
    "a throw that quotes a secret",
    "throw new Error('cannot reach postgres://u:hunter2@h/d with whsec_hunter2');",
    "cannot reach postgres://u:***@h/d with whsec_***",
  ],
  ["something that is not there", "import './nowhere.mjs';", "cannot be loaded: Error: Cannot find module"],
  [
    "handlers that fail",
    "export default { sources: {}, handlers() {\n\n  throw new TypeError('no luck');\n} };",
    "its handlers cannot be added: TypeError: no luck (FILE:3)",
  ],
  [
    "a handler for nobody",
    "export default { sources: {}, handlers(ukemi) {\n  ukemi.on('stripe', '*', () => {});\n} };",
    'its handlers cannot be added: There is no source named "stripe". (FILE:2)',
  ],
])("says what is wrong with a file that has %s", async (_, text, message) => {
  const config = await writeConfig("ukemi.config.mjs", text);
  const { code, stderr } = await runCli(["serve", "--config", config], {});
  expect(stderr).toContain(message.replace("FILE", config));
  expect(stderr).not.toMatch(/^ +at /m);
  expect(stderr).not.toContain("hunter2");
  expect(code).toBe(2);
});

test.each([
  ["a syntax error", "export default {\n  {\n", "SyntaxError: Unexpected token", 2],
  ["a throw", "const said: string = 'no luck';\nthrow new TypeError(said);", "TypeError: no luck", 2],
  [
    "a source without its secret",
    `import { stripe } from ${JSON.stringify(INDEX)};\n\nexport default { sources: {\n  stripe: stripe({ secrets: [process.env.NOPE!] }) } };`,
    "stripe: secrets[0] is not set",
    4,
  ],
])("names the line of TypeScript that has %s", async (_, text, message, line) => {
  const config = await writeConfig("ukemi.config.ts", text);
  const { code, stderr } = await runCli(["serve"], {}, { cwd: dirname(config) });
  expect(stderr).toMatch(/^ukemi: ukemi\.config\.ts cannot be loaded: .*\n$/);
  expect(stderr).toContain(message);
  expect(stderr).toContain(`(ukemi.config.ts:${line})`);
  expect(code).toBe(2);
});

test("names the faults of flags, environment and file at once, each as it was written", async () => {
  const config = await writeConfig(
    "ukemi.config.mjs",
    "export default { sources: {}, concurency: 5, pollMs: 1.5, queues: { mail: 5 } };",
  );
  const env = { UKEMI_LANES: "0", DATABASE_URL: "mysql://u:hunter2@h/d" };
  const { code, stderr } = await runCli(["serve", "--config", config, "--port", "eighty"], env);
  expect(stderr.replaceAll(config, "FILE")).toBe(
    [
      "ukemi: FILE: there is no option named concurency: did you mean concurrency?",
      "FILE: queues.mail must be an object, such as { concurrency: 5 }, not 5.",
      "DATABASE_URL must begin with postgres:// or postgresql://.",
      '--port must be a whole number from 0 to 65535, not "eighty".',
      'UKEMI_LANES must be a whole number from 1 to 16, not "0".',
      "FILE: pollMs must be a whole number from 10 to 60000, not 1.5.",
      "",
    ]
      .join("\n       ")
      .trimEnd() + "\n",
  );
  expect(code).toBe(2);
  // doctor goes on, and says them all as findings
  const doctor = await runCli(["doctor", "--config", config, "--port", "eighty"], env);
  expect(doctor).toMatchObject({ code: 2, stderr: "" });
  expect(doctor.stdout.match(/^BAD +config /gm)).toHaveLength(6);
  expect(doctor.stdout).toMatch(/^ok +store/m);
  expect(doctor.stdout).not.toContain("hunter2");
});

test("says that a variable means nothing, in the log and by doctor", async () => {
  const { url } = await createDatabase();
  const env = { DATABASE_URL: url, UKEMI_CONCURENCY: "hunter2", UKEMI_ZEBRA: "1", UKEMI_PROT: "" };
  const server = await startServerProcess(env);
  expect(await server.kill("SIGTERM")).toBe(0);
  const lines = server.output().split("\n");
  const warned = lines.filter((line) => line.includes("there is no variable"));
  expect(warned.map((line) => (JSON.parse(line) as { level: string; msg: string }).msg)).toEqual([
    "there is no variable named UKEMI_CONCURENCY: did you mean UKEMI_CONCURRENCY?",
    "there is no variable named UKEMI_ZEBRA.",
  ]);
  const doctor = await runCli(["doctor"], env);
  expect(doctor.code).toBe(0);
  expect(doctor.stdout).toMatch(/^warn +config +there is no variable named UKEMI_CONCURENCY: did you mean/m);
  expect(doctor.stdout + server.output()).not.toContain("hunter2");
});

test("doctor shows every option with where it came from, those that somebody set first", async () => {
  const { url } = await createDatabase();
  const config = await writeConfig(
    "ukemi.config.mjs",
    "export default { sources: {}, pollMs: 50, adminToken: 'hunter2', trustedProxies: ['10.0.0.0/8'] };",
  );
  const secret = new URL(url);
  secret.searchParams.set("application_name", "hunter2");
  const env = { DATABASE_URL: secret.href, LOG_LEVEL: "warn", STRIPE_WEBHOOK_SECRET: "whsec_hunter2" };
  const there = { cwd: dirname(config) };
  const { stdout, code } = await runCli(["doctor", "--concurrency", "7"], env, there);
  expect(code).toBe(0);
  const rows = stdout
    .split("\n\n")[0]!
    .split("\n")
    .map((line) => line.split(/ {2,}/));
  expect(
    rows.slice(0, 9).map(([option, value, from]) => [option, option === "database" ? "" : value, from]),
  ).toEqual([
    ["option", "value", "from"],
    ["database", "", "DATABASE_URL"],
    ["adminToken", "(set, hidden)", "ukemi.config.mjs"],
    ["stripeSecrets", "(1 set, hidden)", "STRIPE_WEBHOOK_SECRET"],
    ["trustedProxies", "10.0.0.0/8", "ukemi.config.mjs"],
    ["concurrency", "7", "--concurrency"],
    ["pollMs", "50", "ukemi.config.mjs"],
    ["logLevel", "warn", "LOG_LEVEL"],
    ["directUrl", "(not set)", "default"],
  ]);
  expect(rows[1]![1]).toContain(secret.pathname);
  if (secret.password) expect(stdout).not.toContain(`${secret.password}@`);
  expect(stdout).not.toContain("hunter2");
  expect(new Set(rows.slice(1).map(([option]) => option))).toEqual(new Set(OPTION_NAMES));
  const { file, options } = JSON.parse((await runCli(["doctor", "--json"], env, there)).stdout) as Doctor;
  expect(file).toBe("ukemi.config.mjs");
  expect(options).toHaveLength(OPTION_NAMES.length);
  expect(options).toContainEqual({ option: "pollMs", value: "50", from: "ukemi.config.mjs", changed: true });
});

interface Doctor {
  readonly file: string | null;
  readonly options: readonly object[];
}

test("says what is missing when there is nothing to work for", async () => {
  expect(await runCli(["work"], {})).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("no handlers") as string,
  });
  const gone = await runCli(["work", "--config", "nowhere.ts"], {});
  expect(gone).toMatchObject({ code: 2, stderr: expect.stringContaining("no configuration file") as string });
});

test("lets the environment win over the file, and a flag over both", async () => {
  const config = await writeConfig(
    "ukemi.config.mjs",
    "export default { sources: {}, port: 1, logLevel: 'fatal' };",
  );
  const { url } = await createDatabase();
  const server = await startServerProcess({ DATABASE_URL: url, LOG_LEVEL: "info" }, [
    "--config",
    config,
    "--port",
    "0",
  ]);
  expect(await server.kill("SIGTERM")).toBe(0);
});

/** A file as the guide has it: the secret comes from the environment. */
const guide = (options: string) => `
import { defineConfig, stripe } from ${JSON.stringify(INDEX)};
setInterval(() => {}, 1000); // as a connection would
export default defineConfig({
  ${options}
  sources: { stripe: stripe({ secrets: [process.env.STRIPE_WEBHOOK_SECRET!] }) },
  handlers(ukemi) {
    ukemi.on("stripe", "payment_intent.succeeded", () => {});
  },
});
`;

test("every command finds the store that the file names, also where the secret is not set", async () => {
  const { url } = await createDatabase({ empty: true });
  const config = await writeConfig("ukemi.config.ts", guide(`database: ${JSON.stringify(url)},`));
  const there = { cwd: dirname(config) };
  expect(await runCli(["migrate"], {}, there)).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^Migrated from version 0/) as string,
  });
  for (const args of [
    ["dead", "list"],
    ["queues"],
    ["handlers"],
    ["events", "route", "--since", "1h", "--dry-run"],
  ]) {
    expect(await runCli(args, {}, there), args.join(" ")).toMatchObject({ code: 0, stderr: "" });
  }
  expect((await runCli(["queues", "--config", config])).code).toBe(0);
  const doctor = await runCli(["doctor"], {}, there);
  expect(doctor.stdout).toMatch(/^ok +schema/m);
  expect(doctor.stdout).toMatch(/^warn +secrets +the source stripe has no signing secret$/m);
  expect(doctor.stdout).toMatch(/^database +postgres:.* +ukemi\.config\.ts$/m);
  expect(doctor.stdout).toMatch(/^stripeSecrets +\(not set\) +default$/m);
  // the environment wins over the file
  expect(await runCli(["queues"], { DATABASE_URL: "postgres://u:p@127.0.0.1:9/x" }, there)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("cannot be reached") as string,
  });
});

test("doctor believes the sources of the file, and says when the file cannot be loaded", async () => {
  const { url } = await createDatabase();
  const config = await writeConfig("ukemi.config.ts", HANDLERS);
  const good = await runCli(["doctor", "--config", config], { DATABASE_URL: url });
  expect(good.stdout).toMatch(/^ok +secrets +the source stripe has its own/m);
  expect(good.stdout).not.toContain("no Stripe signing secret");
  const broken = await writeConfig("ukemi.config.mjs", "throw new Error('no luck')");
  const bad = await runCli(["doctor", "--config", broken], { DATABASE_URL: url });
  expect(bad).toMatchObject({ code: 2, stderr: "" });
  expect(bad.stdout).toMatch(/^BAD +config +.* cannot be loaded: Error: no luck \(.*:1\)$/m);
  expect(bad.stdout).toMatch(/^ok +schema/m);
  // and a broken file keeps nobody from a store that is given
  const there = { cwd: dirname(broken) };
  expect(await runCli(["queues"], { DATABASE_URL: url }, there)).toMatchObject({ code: 0 });
});

test("operates on the data folder that the file names", async () => {
  const config = await writeConfig("ukemi.config.ts", guide('data: "kept",'));
  const there = { cwd: dirname(config) };
  expect(await runCli(["queues"], {}, there)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("There is no store in kept") as string,
  });
  const server = await startEmbedded({ data: join(there.cwd, "kept") });
  onTestFinished(() => server.stop());
  expect((await runCli(["migrate"], {}, there)).code).toBe(0);
  expect((await runCli(["queues"], {}, there)).stdout).toContain("There are no queues yet");
});

test("dev runs the guide's file with nothing to set up, and accepts what send signs", async () => {
  const { url, pool } = await createDatabase();
  const config = await writeConfig("ukemi.config.ts", guide('data: "kept",'));
  const there = { cwd: dirname(config) };
  const dev = spawn(process.execPath, [BIN, "dev", "--port", "0"], {
    env: { ...cleanEnv(), DATABASE_URL: url },
    stdio: ["ignore", "pipe", "pipe"],
    ...there,
  });
  const ended = once(dev, "close");
  onTestFinished(() => void dev.kill("SIGKILL"));
  let output = "";
  for (const stream of [dev.stdout, dev.stderr])
    stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
  await until(() => output.includes("Ctrl-C") || dev.exitCode !== null, "the greeting");
  const [, send] = /npx ukemi send (.*)\n/.exec(output) ?? [];
  expect(send, output).toBeDefined();
  const sent = await runCli(["send", ...send!.split(" ")], {}, there);
  expect(sent).toMatchObject({ code: 0, stdout: expect.stringContaining("204: committed") as string });
  expect(await untilDrained(pool)).toMatchObject([{ state: "done" }]);
  dev.kill("SIGTERM");
  await ended;
  expect(dev.exitCode).toBe(0);
});

test("a secret of the file's own .env is used by dev and by send, and no secret is made up", async () => {
  const { url, pool } = await createDatabase();
  const config = await writeConfig(
    "ukemi.config.ts",
    `process.loadEnvFile(".env");${guide("port: Number(process.env.OWN_PORT),")}`,
  );
  const there = { cwd: dirname(config) };
  const port = await freePort();
  await writeFile(join(there.cwd, ".env"), `STRIPE_WEBHOOK_SECRET=${SECRET}\nOWN_PORT=${port}\n`);
  const dev = spawn(process.execPath, [BIN, "dev"], {
    env: { ...cleanEnv(), DATABASE_URL: url },
    stdio: ["ignore", "pipe", "pipe"],
    ...there,
  });
  const ended = once(dev, "close");
  onTestFinished(() => void dev.kill("SIGKILL"));
  let output = "";
  for (const stream of [dev.stdout, dev.stderr])
    stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
  await until(() => output.includes("Ctrl-C") || dev.exitCode !== null, "the greeting");
  // signed with the file's secret, and not with one that was made up; the port is the file's too
  expect((await deliver(`http://127.0.0.1:${port}`, "evt_1")).status, output).toBe(204);
  const sent = await runCli(["send", "--id", "evt_2"], {}, there);
  expect(sent, sent.output).toMatchObject({ code: 0 });
  expect(new Set((await untilDrained(pool)).map((job) => job.event_id))).toEqual(new Set(["evt_1", "evt_2"]));
  expect(existsSync(join(there.cwd, ".ukemi"))).toBe(false);
  dev.kill("SIGTERM");
  await ended;
});

test("a blank secret is none: the file finds one, and the settings do not", async () => {
  const { url } = await createDatabase();
  const config = await writeConfig("ukemi.config.ts", guide(""));
  const env = { DATABASE_URL: url, STRIPE_WEBHOOK_SECRET: "" };
  const { stdout } = await runCli(["doctor"], env, { cwd: dirname(config) });
  expect(stdout).toMatch(/^stripeSecrets +\(not set\) +default$/m);
  expect(stdout).toMatch(/^warn +secrets +the source stripe has no signing secret$/m);
});

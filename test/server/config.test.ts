// The configuration file: found, loaded as TypeScript without a build step, and its faults told in words.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, onTestFinished, test } from "vitest";
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
  ["a syntax error", "export default {{", /cannot be loaded/],
  ["no default export", "export const config = {};", /must export its configuration/],
  ["an unknown option", "export default { sources: {}, prot: 1 };", /there is no option named prot/],
  [
    "an option of the wrong kind",
    "export default { sources: {}, port: 'x' };",
    /port must be a whole number/,
  ],
  ["handlers that are none", "export default { sources: {}, handlers: 5 };", /handlers must be a function/],
  ["no sources", "export default {};", /sources must be an object/],
])("says what is wrong with a file that has %s", async (_, text, message) => {
  const config = await writeConfig("ukemi.config.mjs", text);
  const { code, stderr } = await runCli(["serve", "--config", config], {});
  expect(stderr).toMatch(message);
  expect(code).toBe(2);
});

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
  expect(doctor.stdout).toMatch(/^database +\(set, hidden\) +config$/m);
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
  expect(bad).toMatchObject({ code: 1, stderr: "" });
  expect(bad.stdout).toMatch(/^BAD +config +.* cannot be loaded: Error: no luck$/m);
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

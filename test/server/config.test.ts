// The configuration file: found, loaded as TypeScript without a build step, and its faults told in words.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { runCli } from "../support/cli.ts";
import { createDatabase } from "../support/database.ts";
import { deliver } from "../support/deliver.ts";
import { BIN, SECRET, startServerProcess } from "../support/server.ts";
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

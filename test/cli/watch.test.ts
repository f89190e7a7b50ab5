// Watching at a terminal: lists that are drawn again in place, operations with a bar, and questions before a change.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, onTestFinished, test } from "vitest";
import { runCli } from "../support/cli.ts";
import { createDatabase } from "../support/database.ts";
import { HANDLER, makeDead, readAudit, register } from "../support/dead.ts";
import { endJobs } from "../support/operations.ts";
import { BIN, cleanEnv, startServerProcess } from "../support/server.ts";
import { CTRL_C, inTerminal } from "../support/terminal.ts";
import { until } from "../support/until.ts";
import { storeElsewhere } from "../support/work.ts";

const LIMIT_MS = 300_000;
const numbered = (count: number, name = "evt") =>
  Array.from({ length: count }, (_, index) => `${name}_${index}`);

async function start() {
  const store = await createDatabase();
  await register(store.pool);
  return { ...store, env: { DATABASE_URL: store.url } };
}

test("draws a list again in place, and leaves the terminal as it was", { timeout: LIMIT_MS }, async () => {
  const { env, ...store } = await start();
  await storeElsewhere(store.url, ["evt_first"]);
  const terminal = inTerminal(["events", "--watch", "0.2"], { rows: 12, env });
  await terminal.shows("evt_first");
  expect(terminal.isAlternate()).toBe(true);
  expect(terminal.lines()[0]).toMatch(/^ukemi events list {2}\d{4}-\d\d-\d\d .*Z {2}Ctrl-C ends$/);
  expect(terminal.text()).not.toContain("$ ukemi");
  await storeElsewhere(store.url, ["evt_second"]);
  await terminal.shows("evt_second");
  expect(terminal.text().match(/evt_first/g)).toHaveLength(1);
  await storeElsewhere(store.url, numbered(30, "evt_more"));
  await terminal.shows(/… 24 more lines$/);
  expect(terminal.lines()).toHaveLength(12);
  expect(terminal.lines()[0]).toContain("ukemi events list");
  terminal.resize(60, 20);
  await terminal.shows(/… 16 more lines$/);
  expect([terminal.wrapped(), terminal.lines().length]).toEqual([[], 20]);
  terminal.type(CTRL_C);
  expect(await terminal.ended()).toBe(0);
  expect(terminal.isAlternate()).toBe(false);
  expect(terminal.text()).toMatch(/^\$ ukemi(?:\n\^C)?$/);
  // the kernel tells the process of Ctrl-C before it echoes it: the echo comes when it comes
  const last = "\u001B[?25h\u001B[?1049l";
  expect(terminal.raw().replaceAll("^C", "").slice(-last.length)).toBe(last);
});

test("watches on while connections to the database break", { timeout: LIMIT_MS }, async () => {
  const { env, ...store } = await start();
  const terminal = inTerminal(["events", "--watch", "0.2"], { env });
  await terminal.shows("There are no events here.");
  await store.pool.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'ukemi cli'",
  );
  await storeElsewhere(store.url, ["evt_after"]);
  await terminal.shows("evt_after");
  terminal.type(CTRL_C);
  expect(await terminal.ended()).toBe(0);
});

test("says that the server has gone, and shows it again when it is back", { timeout: LIMIT_MS }, async () => {
  const { env, ...store } = await start();
  await storeElsewhere(store.url, ["evt_first"]);
  const server = await startServerProcess(env);
  onTestFinished(async () => void (await server.kill("SIGKILL")));
  const terminal = inTerminal(["events", "--watch", "0.2"], { env: { UKEMI_URL: server.url } });
  await terminal.shows("evt_first");
  await server.kill("SIGKILL");
  await terminal.shows(/^NO ANSWER, trying again[^]*No server answers at [^]*evt_first/);
  expect(terminal.wrapped()).toEqual([]);
  const again = await startServerProcess({ ...env, UKEMI_PORT: new URL(server.url).port });
  onTestFinished(async () => void (await again.kill("SIGKILL")));
  await storeElsewhere(store.url, ["evt_second"]);
  await terminal.shows(/^ukemi events[^]*evt_second/);
  await again.kill("SIGKILL");
  await terminal.shows("NO ANSWER");
  terminal.type(CTRL_C); // also while nobody answers
  expect(await terminal.ended()).toBe(0);
  const never = inTerminal(["events", "--watch"], { env: { UKEMI_URL: server.url } });
  expect(await never.ended()).toBe(1);
  expect(never.raw()).not.toContain("\u001B");
  expect(never.text()).toContain("No server answers at");
});

test("writes one line of JSON per look, until it is told to end", { timeout: LIMIT_MS }, async () => {
  const { env, ...store } = await start();
  const server = await startServerProcess(env);
  onTestFinished(async () => void (await server.kill("SIGKILL")));
  const child = spawn(process.execPath, [BIN, "events", "--json", "--watch", "0.2"], {
    env: { ...cleanEnv(), UKEMI_URL: server.url },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const ended = once(child, "close");
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
  await until(() => stdout.split("\n").length > 3, "three lines", 100_000);
  await storeElsewhere(store.url, ["evt_1"]);
  await until(() => stdout.includes("evt_1"), "the new event", 100_000);
  await server.kill("SIGKILL");
  await until(() => stderr.includes("Trying again."), "a word on the server", 100_000);
  child.kill("SIGINT");
  await ended;
  expect(child.exitCode).toBe(0);
  for (const line of stdout.trimEnd().split("\n")) expect(JSON.parse(line)).toHaveProperty("items");
  expect(stderr).toMatch(/^ukemi: No server answers at \S+ Trying again\.\n$/);
});

test(
  "asks a person before it changes anything, and takes silence for no",
  { timeout: LIMIT_MS },
  async () => {
    const { env, ...store } = await start();
    await makeDead(store, numbered(3));
    const args = ["dead", "replay", "--all", "--reason", "the cause is mended"];
    for (const answer of ["\r", "n\r", "maybe\r", CTRL_C, "\u0004"]) {
      const terminal = inTerminal(args, { env });
      await terminal.shows("Replay 3 dead letters? [y/N]");
      expect(terminal.text()).toContain("3 dead letters would be replayed.");
      terminal.type(answer);
      expect(await terminal.ended()).toBe(1);
      expect(terminal.text()).toContain("ukemi: nothing was changed.");
    }
    const piped = await runCli(args, env);
    expect(piped).toMatchObject({ code: 1, stdout: "" });
    expect(piped.stderr).toContain("ukemi: nothing was changed. Add --yes to go ahead.");
    expect(await readAudit(store.pool)).toEqual([]);
    const yes = inTerminal(args, { env });
    await yes.shows("[y/N]");
    yes.type("y\r");
    expect(await yes.ended()).toBe(0);
    expect(yes.text()).toMatch(/\nReplayed 3 dead letters\.$/);
    expect(await readAudit(store.pool)).toHaveLength(3);
  },
);

/** Many dead letters, an operation on them at a snail's pace, and an impatient person. */
async function watchSlowly(env: Readonly<Record<string, string>>) {
  const manner = ["--canary", "--rate", "1", "--watch", "--name", "十一月", "--reason", "mended"];
  const terminal = inTerminal(["operations", "create", "--all", ...manner], { env });
  await terminal.shows("Begin the replay of 1001 dead letters? [y/N]");
  expect(terminal.text()).toContain("At this rate it takes about 17 min.");
  terminal.type("y\r");
  return terminal;
}

test(
  "more than a thousand take an operation: a bar, and Ctrl-C leaves it running",
  { timeout: LIMIT_MS },
  async () => {
    const { env, ...store } = await start();
    await makeDead(store, numbered(1001));
    const refused = await runCli(["dead", "replay", "--all", "--reason", "mended", "--yes"], env);
    expect(refused).toMatchObject({ code: 2, stdout: "" });
    expect(refused.stderr).toContain("ukemi operations create --kind replay");
    expect(await readAudit(store.pool)).toEqual([]);
    // nobody else is there: this process makes the steps
    const terminal = await watchSlowly(env);
    const ends = setInterval(() => void endJobs(store.pool).catch(() => {}), 50);
    onTestFinished(() => clearInterval(ends));
    await terminal.shows(/replaying █*░+ \d+\/1001 {2}\d+ % {2}[\d.]+\/s {2}\d+ \w+ left/);
    terminal.type(CTRL_C);
    expect(await terminal.ended()).toBe(1);
    expect(terminal.text()).not.toContain("replaying █");
    const [, id] = /ukemi operations show (\S+) --watch/.exec(terminal.text())!;
    expect(terminal.text()).toMatch(/Not stopped: servers and workers go on with it/);
    expect(terminal.wrapped()).toEqual([]);
    const { rows } = await store.pool.query<{ state: string }>("select state from ukemi.operations");
    expect(rows).toEqual([{ state: "running" }]);
    // and goes on from there
    await store.pool.query("update ukemi.operations set rate_per_second = null");
    const rest = inTerminal(["operations", "show", id!, "--watch"], { env });
    expect(await rest.ended()).toBe(0);
    expect(rest.text()).toMatch(/state +done\nprogress +100 %: 1001 done/);
  },
);

test(
  "watches an operation that a server runs, also while the server is away",
  { timeout: LIMIT_MS },
  async () => {
    const { env, ...store } = await start();
    await makeDead(store, numbered(1001));
    const server = await startServerProcess(env);
    onTestFinished(async () => void (await server.kill("SIGKILL")));
    const terminal = await watchSlowly({ UKEMI_URL: server.url });
    await terminal.shows(/replaying ░+ \d+\/1001/);
    await server.kill("SIGKILL");
    await terminal.shows("no answer, trying again");
    const again = await startServerProcess({ ...env, UKEMI_PORT: new URL(server.url).port });
    onTestFinished(async () => void (await again.kill("SIGKILL")));
    const dying = numbered(1001);
    const ends = setInterval(() => void endJobs(store.pool, dying).catch(() => {}), 50);
    onTestFinished(() => clearInterval(ends));
    expect(await terminal.ended()).toBe(1); // the canary died
    expect(terminal.text()).toMatch(/state +STOPPED: /);
    expect(terminal.text()).toMatch(/progress +0 %: 1000 waiting, 1 dead/);
    expect(terminal.wrapped()).toEqual([]);
  },
);

test(
  "an operation of one, dropped by this process alone, ends with what was done",
  { timeout: LIMIT_MS },
  async () => {
    const { env, ...store } = await start();
    await makeDead(store, numbered(3));
    const args = [
      "operations",
      "create",
      "--kind",
      "drop",
      "--handler",
      HANDLER,
      "--name",
      "x",
      "--reason",
      "x",
    ];
    const run = await runCli([...args, "--watch", "--yes"], env);
    expect(run).toMatchObject({ code: 0, stdout: expect.stringMatching(/^operation [^]*state +done\n/) });
    expect(run.stderr).toContain("3 dead letters would be dropped.");
    const json = await runCli([...args, "--dry-run", "--json"], env);
    expect(JSON.parse(json.stdout)).toMatchObject({ preview: { count: 0 } });
  },
);

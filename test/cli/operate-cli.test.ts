// `ukemi dead`, `events route`, `queues` and `handlers` as a person or a script meets them.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { startEmbedded } from "../../src/storage/embedded/embedded.ts";
import { migrateStore } from "../../src/storage/open.ts";
import { closePool, openPool } from "../../src/storage/postgres.ts";
import { runCli } from "../support/cli.ts";
import { createDatabase } from "../support/database.ts";
import { HANDLER, makeDead, readAudit, readOutcomes, register } from "../support/dead.ts";
import { BIN, cleanEnv } from "../support/server.ts";
import { makeUkemi, storeElsewhere, untilDrained } from "../support/work.ts";

const ACTOR = `cli:${userInfo().username}`;

async function start() {
  const store = await createDatabase();
  await register(store.pool);
  const ukemi = (...args: string[]) => runCli(args, { DATABASE_URL: store.url });
  return { ...store, ukemi };
}

async function scratchFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "ukemi-cli-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

test("lists, groups and shows dead letters, as a table and as JSON", async () => {
  const { ukemi, ...store } = await start();
  expect((await ukemi("dead", "list")).stdout).toBe("There are no dead letters here.\n");
  const ids = await makeDead(store, ["evt_1", "evt_2"], { refs: [{ kind: "payment_intent", id: "pi_1" }] });
  await makeDead(store, ["evt_3"], { errorClass: "RangeError", tenant: "org_1" });
  const list = await ukemi("dead", "list", "--error-class", "TypeError", "--since", "1h");
  expect(list).toMatchObject({ code: 0, stderr: "" });
  expect(list.stdout).toMatch(/^id +died +death +handler +event +type +error\n/);
  expect(list.stdout).toMatch(
    /\d+ s ago +exhausted +stripe\/payment_intent.succeeded +evt_1 +payment_intent.succeeded +TypeError: TypeError of job/,
  );
  expect((await ukemi("dead", "list", "--death", "crashed")).stdout).toBe(
    "There are no dead letters here.\n",
  );
  expect(list.stdout).not.toContain("evt_3");
  const first = JSON.parse((await ukemi("dead", "list", "--json", "--limit", "2")).stdout) as {
    items: unknown[];
    cursor: string;
  };
  expect(first.items).toHaveLength(2);
  const second = await ukemi("dead", "list", "--json", "--limit", "2", "--cursor", first.cursor);
  expect((JSON.parse(second.stdout) as { items: unknown[] }).items).toHaveLength(1);
  expect((await ukemi("dead", "list", "--limit", "1")).stdout).toMatch(
    /There are more: add --cursor \d+\.\d+\n/,
  );
  expect((await ukemi("dead", "groups")).stdout).toMatch(/2 +TypeError +stripe\/payment_intent.succeeded/);
  expect(JSON.parse((await ukemi("dead", "groups", "--json", "--tenant", "org_1")).stdout)).toMatchObject({
    items: [{ error_class: "RangeError", count: 1 }],
  });
  const shown = await ukemi("dead", "show", String(ids.get("evt_1")));
  expect(shown.stdout).toMatch(/^job +\d+ {2}dead \(exhausted\) since \d{4}-/);
  expect(shown.stdout).toContain("ref        payment_intent pi_1");
  expect(shown.stdout).toMatch(/^tries +4 of 4$/m);
  expect(shown.stdout).toMatch(/try 4 .* failed, dead\n +TypeError: TypeError of job \d+\n +at there/);
  const json = await ukemi("dead", "show", String(ids.get("evt_1")), "--json");
  expect(JSON.parse(json.stdout)).toMatchObject({ event_id: "evt_1", tries: [{ error_stack: "at there" }] });
  expect(await ukemi("dead", "show", "999999")).toMatchObject({
    code: 1,
    stderr: "ukemi: There is no job with this id.\n       Check the name or the id.\n",
  });
});

test("says what a job waits for, and finds what a worker holds by the name that people see", async () => {
  const { ukemi, ...store } = await start();
  const ids = await makeDead(store, ["evt_later", "evt_running", "evt_waiting"]);
  const set = (event: string, change: string) =>
    store.pool.query(
      `update ukemi.jobs set death = null, finished_at = null, attempt = 1, ${change} where id = $1`,
      [ids.get(event)!],
    );
  await set("evt_later", "state = 'scheduled', run_at = ukemi.now() + interval '3 h'");
  await set("evt_waiting", "state = 'waiting', key = 'cus_1'");
  const { rows } = await store.pool.query<{ id: string }>(
    `insert into ukemi.workers (id, host, pid, version, handlers, queues, has_session, lease_ms)
     values (gen_random_uuid(), 'web-1', 42, '0', '{}', '{default}', false, 60000) returning id`,
  );
  await set(
    "evt_running",
    `state = 'running', started_at = ukemi.now(), lease_until = ukemi.now() + interval '1 h',
     lease_token = gen_random_uuid(), worker = '${rows[0]!.id}'`,
  );
  const show = async (event: string) => (await ukemi("jobs", "show", String(ids.get(event)))).stdout;
  expect(await show("evt_later")).toMatch(/^next +tried again at \d{4}-.*Z, in 3 h$/m);
  expect(await show("evt_waiting")).toMatch(/^next +waits for an earlier job of the same key$/m);
  expect(await show("evt_waiting")).toMatch(/^key +cus_1 /m);
  expect(await show("evt_running")).toMatch(/^next +at work since \d{4}-.*Z, \d+ s ago$/m);
  expect(await show("evt_running")).toContain(rows[0]!.id);
  for (const worker of ["web-1/42", rows[0]!.id]) {
    const { stdout } = await ukemi("jobs", "--worker", worker, "--json");
    expect(JSON.parse(stdout)).toMatchObject({ items: [{ event_id: "evt_running" }] });
  }
  expect(JSON.parse((await ukemi("jobs", "--worker", "web-1/43", "--json")).stdout)).toEqual({ items: [] });
});

test("names the flag that is wrong, as it is written, with what it may be", async () => {
  const { ukemi } = await start();
  const role = await ukemi("audit", "--role", "people?");
  expect(role).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("operator, system, handler, people"),
  });
  const limit = ["operations", "create", "--all", "--name", "x", "--reason", "x", "--failure-limit", "7"];
  expect(await ukemi(...limit)).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/--failure-limit must be a number from 0 to 1/),
  });
});

test("tells the life of a job in the order in which it happened, and each stack once", async () => {
  const { ukemi, ...store } = await start();
  const id = String((await makeDead(store, ["evt_1"])).get("evt_1"));
  await store.pool.query("delete from ukemi.attempts where job = $1", [id]);
  await store.pool.query("update ukemi.jobs set attempt = 2, recoveries = 4, revivals = 1 where id = $1", [
    id,
  ]);
  const stack = "Error: no\n    at charge (/app/charge.ts:3:9)\n    at node:internal/process:1:1";
  await store.pool.query(
    `insert into ukemi.attempts (job, number, outcome, error_class, error_message, error_stack, ended_at, duration_ms)
     select $1, number, outcome, class, 'no', $2, at, ms
     from (values
       (1, 'retry', 'Error', timestamptz '2026-01-01 10:00Z', 109.4),
       (2, 'not_yet', null, timestamptz '2026-01-01 10:01Z', 3),
       (2, 'crashed', null, timestamptz '2026-01-01 10:02Z', null),
       (2, 'returned', null, timestamptz '2026-01-01 10:03Z', null),
       (2, 'dead', 'Error', timestamptz '2026-01-01 10:04Z', 6),
       (1, 'done', null, timestamptz '2026-01-01 10:06Z', 12)
     ) as t (number, outcome, class, at, ms)`,
    [id, stack],
  );
  await store.pool.query(
    `insert into ukemi.audit_log (actor, role, action, target, details, at)
     values ('ukemi', 'system', 'job.dead', $1, '{}', '2026-01-01 10:04Z'),
       ('cli:jane', 'operator', 'job.replayed', $1, '{"reason": "mended"}', '2026-01-01 10:05Z')`,
    [id],
  );
  const { stdout } = await ukemi("dead", "show", id);
  expect(stdout).toContain("tries      2 of 4, its process died 4 times, revived by the sender once\n");
  const timeline = stdout.split("\n").filter((line) => line.includes("2026-01-01"));
  expect(timeline).toEqual([
    "try 1  2026-01-01 10:00:00Z  failed in 109 ms, tried again",
    "try 2  2026-01-01 10:01:00Z  not yet",
    "try 2  2026-01-01 10:02:00Z  crashed",
    "try 2  2026-01-01 10:03:00Z  given back",
    "try 2  2026-01-01 10:04:00Z  failed in 6 ms, dead",
    "replayed  2026-01-01 10:05:00Z  by cli:jane: mended",
    "try 1  2026-01-01 10:06:00Z  done in 12 ms",
  ]);
  expect(stdout.match(/at charge/g)).toHaveLength(1);
  expect(stdout).not.toContain("node:internal");
  expect(stdout).toContain("at the same place as in try 1");
});

test("shows what a replay would do, and does it only when told to", async () => {
  const { ukemi, ...store } = await start();
  await makeDead(store, ["evt_1", "evt_2"]);
  const args = ["dead", "replay", "--error-class", "TypeError"];
  const dry = await ukemi(...args, "--dry-run");
  expect(dry.stdout).toMatch(
    /count +error +handler +workers\n2 +TypeError +stripe\/payment_intent.succeeded +0\n/,
  );
  expect(dry.stdout).toContain("2 dead letters would be replayed.");
  expect(dry.stdout).toContain(`No live worker has ${HANDLER}`);
  expect(dry).toMatchObject({ code: 0, stderr: "" });
  const unasked = await ukemi(...args, "--reason", "mended");
  expect(unasked).toMatchObject({
    code: 1,
    stdout: "",
    stderr: `${dry.stdout}ukemi: nothing was changed. Add --yes to go ahead.\n`,
  });
  expect(await readOutcomes(store.pool)).toEqual({ evt_1: "failed", evt_2: "failed" });
  const { ukemi: worker } = makeUkemi(store.url);
  worker.on("stripe", "payment_intent.succeeded", () => {});
  await worker.work();
  const done = await ukemi(...args, "--reason", "mended", "--yes");
  expect(done).toMatchObject({ code: 0, stdout: expect.stringContaining("Replayed 2 dead letters.") });
  await untilDrained(store.pool);
  expect(await readOutcomes(store.pool)).toEqual({ evt_1: "success", evt_2: "success" });
  expect(await readAudit(store.pool)).toMatchObject([
    { actor: ACTOR, action: "job.replayed", details: { reason: "mended" } },
    { actor: ACTOR, action: "job.replayed", details: { reason: "mended" } },
  ]);
  const none = await ukemi(...args, "--reason", "mended", "--yes", "--json");
  expect(JSON.parse(none.stdout)).toEqual({
    preview: {
      dry_run: true,
      count: 0,
      without_body: 0,
      groups: [],
      effects: { would_run: { count: 0, items: [] }, done: { count: 0, items: [] } },
    },
  });
  expect(none.code).toBe(0);
});

test("drops by id, and says which it could not", async () => {
  const { ukemi, ...store } = await start();
  const ids = await makeDead(store, ["evt_1"]);
  const id = String(ids.get("evt_1"));
  const dropped = await ukemi("dead", "drop", id, "999999", "--reason", "a test", "--yes");
  expect(dropped.stdout).toContain(
    "Dropped 1 dead letter, skipped 1.\n  999999 was skipped: there is no such job",
  );
  expect(dropped.code).toBe(1);
  const again = await ukemi("dead", "drop", id, "--reason", "a test", "--yes", "--json");
  expect(again.code).toBe(1);
  expect(JSON.parse(again.stdout)).toMatchObject({
    result: { changed: 0, skips: [{ id: Number(id), reason: "not_dead" }] },
  });
});

test.each([
  [["dead", "replay", "1"], "--reason must say why"],
  [["dead", "drop", "--all", "--yes"], "--reason must say why"],
  [["dead", "drop", "--all", "--reason", " "], "--reason must say why"],
  [["dead", "replay", "--reason", "x"], "Say which: ids"],
  [["dead", "replay", "1", "--all", "--reason", "x"], "not more than one"],
  [["dead", "replay", "evt_1", "--reason", "x"], '"evt_1" is not the id of a job'],
  [["dead", "show"], "missing required argument 'id'"],
  [["dead", "list", "--since", "yesterday"], "--since must be a time such as"],
  [["dead", "list", "--limit", "0"], "ukemi: --limit must be a whole number from 1 to 200."],
  [["dead", "list", "--cursor", "x"], "ukemi: --cursor must be the cursor"],
  [["dead", "list", "--death", "old"], "Allowed choices are exhausted, terminal"],
  [["dead", "list", "--error-class", " "], "--error-class must be text"],
  [
    ["dead", "lst"],
    "unknown command ukemi dead lst (there is list, groups, show, replay, drop): did you mean list?",
  ],
  [["events", "route", "--reason", "x"], "--since must say from when on"],
  [["events", "route", "--since", "1d"], "--reason must say why"],
  [["queues", "pause", "--reason", "x"], "missing required argument 'queue'"],
  [["events", "route", "--since", "1d", "--handler", "nobody", "--dry-run"], 'no handler named "nobody"'],
  [["queues", "pause", "default"], "--reason must say why"],
  [["queues", "pause", "nope", "--dry-run"], 'There is no queue "nope"; there is default.'],
  [["queues", "resume", "nope", "--reason", "x", "--yes"], 'There is no queue "nope"'],
  [["queues", "pause", "inline", "--reason", "x"], "The queue inline cannot be paused"],
  [["handlers", "remove", "nobody", "--reason", "x"], 'no active handler named "nobody"'],
] as [string[], string][])("ends with 2 and a clear message: %j", async (args, message) => {
  const { ukemi } = await start();
  const { code, stderr } = await ukemi(...args);
  expect(stderr).toContain(message);
  expect(code).toBe(2);
});

test("gives stored events to a handler that came later", async () => {
  const { url, pool } = await createDatabase();
  await storeElsewhere(url, ["evt_1", "evt_2"]);
  await register(pool);
  const route = (...args: string[]) =>
    runCli(["events", "route", "--since", "1h", ...args], { DATABASE_URL: url });
  expect((await route("--dry-run")).stdout).toMatch(
    /jobs +handler +type\n2 +stripe\/payment_intent.succeeded +payment_intent.succeeded\n\n2 jobs would be made for 2 events/,
  );
  expect(await route("--reason", "new handler")).toMatchObject({ code: 1 });
  expect((await route("--reason", "new handler", "--yes")).stdout).toContain("Made 2 jobs for 2 events.");
  expect((await route("--reason", "new handler", "--yes")).stdout).toMatch(
    /^There are no unrouted events since \d{4}-.*Z\.\n$/m,
  );
  await storeElsewhere(url, ["evt_3", "evt_4", "evt_5"], { type: "customer.created" });
  expect((await route("--dry-run")).stdout).toMatch(
    /^There are 3 unrouted events since \d{4}-.*Z, of type customer\.created \(3\); no handler wants them\.\n$/m,
  );
  expect((await route("--dry-run", "--handler", HANDLER)).stdout).toContain(
    `; ${HANDLER} does not want them.`,
  );
});

test("shows queues, pauses and resumes one", async () => {
  const { ukemi, pool } = await start();
  expect((await ukemi("queues")).stdout).toMatch(
    /^queue +ready +scheduled +waiting +running +dead +oldest\ndefault/,
  );
  const unasked = await ukemi("queues", "pause", "default", "--reason", "the bank is down");
  expect(unasked).toMatchObject({ code: 1, stderr: expect.stringContaining("would be paused") });
  expect(
    (await ukemi("queues", "pause", "default", "--reason", "the bank is down", "--yes")).stdout,
  ).toContain("The queue default is paused.");
  expect((await ukemi("queues", "list")).stdout).toMatch(/default .* PAUSED: the bank is down/);
  expect(JSON.parse((await ukemi("queues", "--json")).stdout)).toMatchObject({
    items: [{ name: "default", paused: true, reason: "the bank is down" }],
  });
  expect((await ukemi("queues", "resume", "default", "--reason", "it is back", "--yes")).stdout).toContain(
    "is open.",
  );
  expect((await readAudit(pool)).map((row) => [row.actor, row.action])).toEqual([
    [ACTOR, "queue.paused"],
    [ACTOR, "queue.resumed"],
  ]);
});

test("shows handlers whose jobs nobody runs, and removes one", async () => {
  const { ukemi, url, pool } = await start();
  expect((await ukemi("handlers")).stdout).toMatch(/default +0 +0 +0 +no worker\n/);
  await storeElsewhere(url, ["evt_1"]);
  const list = await ukemi("handlers");
  expect(list.stdout).toMatch(
    /stripe\/payment_intent.succeeded +stripe payment_intent.succeeded +default +0 +1 +0 +ORPHANED/,
  );
  expect(list.stdout).toContain("no live worker has the handler");
  const { ukemi: worker } = makeUkemi(url);
  worker.on("stripe", "charge.failed", () => {});
  await worker.work();
  const still = await ukemi("handlers", "remove", "stripe/charge.failed", "--dry-run");
  expect(still.stdout).toContain("1 live worker still has it");
  await worker.stop();
  const removed = await ukemi("handlers", "remove", HANDLER, "--reason", "moved away", "--yes");
  expect(removed.stderr).toContain("1 unfinished one stays");
  expect(JSON.parse((await ukemi("handlers", "list", "--json")).stdout)).toMatchObject({
    items: [
      { name: "stripe/charge.failed", active: true },
      { name: HANDLER, active: false, unfinished: 1, orphaned: true },
    ],
  });
  expect(await readAudit(pool)).toMatchObject([{ actor: ACTOR, action: "handler.removed", target: HANDLER }]);
});

test("works on the embedded store while a server uses it, and leaves an empty folder empty", async () => {
  const data = await scratchFolder();
  const nothing = await runCli(["queues", "--data", data]);
  expect(nothing).toMatchObject({ code: 2, stderr: expect.stringContaining("There is no store in") });
  expect(await readdir(data)).toEqual([]);
  const server = await startEmbedded({ data });
  onTestFinished(() => server.stop());
  await migrateStore(server.url);
  const pool = openPool(server.url, { max: 1 });
  await register(pool);
  await closePool(pool);
  const paused = await runCli(["queues", "pause", "default", "--reason", "x", "--yes", "--data", data]);
  expect(paused).toMatchObject({ code: 0 });
  const listed = await runCli(["queues", "--json", "--data", data]);
  expect(JSON.parse(listed.stdout)).toMatchObject({ items: [{ name: "default", paused: true }] });
  await server.stop();
  // and when nobody does
  const alone = await runCli(["queues", "--json", "--data", data]);
  expect(JSON.parse(alone.stdout)).toMatchObject({ items: [{ name: "default", paused: true }] });
});

test("says that the schema is missing, or the database away", async () => {
  const { url } = await createDatabase({ empty: true });
  expect(await runCli(["dead", "list"], { DATABASE_URL: url })).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("ukemi migrate"),
  });
  expect(await runCli(["queues"], { DATABASE_URL: "postgres://u:p@127.0.0.1:9/x" })).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("PostgreSQL cannot be reached"),
  });
});

/** Runs the command in a terminal of its own, by util-linux' script(1). */
async function inTerminal(url: string, columns: number, args: readonly string[], answer: string) {
  const quoted = [process.execPath, BIN, ...args].map((part) => `'${part}'`).join(" ");
  const child = spawn("script", ["-qec", `stty cols ${columns}; ${quoted}`, "/dev/null"], {
    env: { ...cleanEnv(), DATABASE_URL: url },
    stdio: ["pipe", "pipe", "inherit"],
  });
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => {
    output += chunk.toString();
    if (output.includes("[y/N]") && child.stdin.writable) child.stdin.end(answer);
  });
  await once(child, "close");
  return { code: child.exitCode, output: output.replaceAll("\r\n", "\n") };
}

test.skipIf(process.platform !== "linux")(
  "asks a person at a terminal, and keeps within its width",
  async () => {
    const { ukemi: _, ...store } = await start();
    await makeDead(
      store,
      Array.from({ length: 500 }, (__, index) => `evt_with_a_rather_long_name_${index}`),
      { errorClass: "StripeInvalidRequestError resource_missing", tenant: "an organiser with a long name" },
    );
    for (const columns of [80, 200]) {
      const { output } = await inTerminal(store.url, columns, ["dead", "list", "--limit", "5"], "");
      for (const line of output.split("\n")) expect(line.length).toBeLessThanOrEqual(columns);
      expect(output.split("\n")[1]!.length).toBeGreaterThan(70);
      expect(/^id +died +death .* type /.test(output)).toBe(columns === 200);
    }
    const no = await inTerminal(store.url, 80, ["dead", "drop", "--all", "--reason", "tests"], "n\n");
    expect(no).toMatchObject({ code: 1, output: expect.stringContaining("nothing was changed.\n") });
    const yes = await inTerminal(store.url, 80, ["dead", "drop", "--all", "--reason", "tests"], "y\n");
    expect(yes.output).toContain("Drop 500 dead letters? [y/N]");
    expect(yes.output).toContain("Dropped 500 dead letters.");
    expect(yes.code).toBe(0);
  },
);

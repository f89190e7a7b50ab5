// The same commands against a server and against the database itself: the same answers, and clear words where there are none.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { userInfo } from "node:os";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { createOperate } from "../../src/operate/operate.ts";
import { fillAwkwardly, type AwkwardStore } from "../support/awkward.ts";
import { runCli, type CliRun } from "../support/cli.ts";
import { createSharedDatabase } from "../support/database.ts";
import { readAudit } from "../support/dead.ts";
import { inTwos } from "../support/in-twos.ts";
import { startServerProcess, type ServerProcess } from "../support/server.ts";

const LIMIT_MS = 400_000;
const MANDATE = { actor: "test:jane", reason: "a test" };

let store: Awaited<ReturnType<typeof createSharedDatabase>>;
let ids: AwkwardStore;
let server: ServerProcess;
const tokens: Record<string, string> = {};

beforeAll(async () => {
  store = await createSharedDatabase();
  // first: a server does not start where data keys lie that it cannot open
  server = await startServerProcess({ DATABASE_URL: store.url });
  ids = await fillAwkwardly(store);
  const { tokens: made } = createOperate({ open: () => Promise.resolve(store.pool) });
  const make = async (name: string, scope: "read" | "operate" | "admin", tenants?: string[]) => {
    const { secret } = await made.make({ name, scope, ...(tenants && { tenants }) }, MANDATE);
    tokens[name] = secret;
  };
  await make("reader", "read");
  await make("operator", "operate");
  await make("root", "admin");
  await make("of acme", "operate", ["acme"]);
  await make("old", "admin");
  await store.pool.query(
    "update ukemi.tokens set expires_at = ukemi.now() - interval '1 day' where name = 'old'",
  );
}, 120_000);
afterAll(async () => {
  await server.kill("SIGTERM");
  await store.drop();
});

const direct = (...args: string[]) => runCli(args, { DATABASE_URL: store.url });
const remote = (token: string | undefined, ...args: string[]) =>
  runCli(args, {
    UKEMI_URL: server.url,
    ...(token === undefined ? {} : { UKEMI_TOKEN: tokens[token] ?? token }),
  });

/** What passes between two looks. */
const withoutTimes = ({ stdout }: CliRun) =>
  stdout
    .replaceAll(
      /"(\w+_at|oldest_ready_seconds|since|until|counted_until)":(?:"[^"]*"|[\d.]+|null)/g,
      '"$1":0',
    )
    .replaceAll(/\d+ (?:s|min|h|d)( ago|\b)/g, "a time");

const COMMANDS = [
  "events",
  "events show EVENT",
  "jobs --state dead",
  "jobs show JOB",
  "dead",
  "dead groups",
  "dead show JOB",
  "queues",
  "handlers",
  "workers",
  "rejections",
  "rejections show REJECTION",
  "stats",
  "stats hours",
  "stats anomalies",
  "audit",
  "token list",
  "operations",
  "operations show OPERATION",
  "operations items OPERATION",
  "bodies keys",
];

/** Where --json gets its answer from, and that answer as it is sent. */
async function ask(path: string): Promise<string> {
  const response = await fetch(`${server.url}/api/v1${path}`, {
    headers: { authorization: `Bearer ${tokens.root}` },
  });
  return response.text();
}

test("answers the same through a server as from the database", { timeout: LIMIT_MS }, async () => {
  for (const command of COMMANDS) {
    const args = command
      .replace("OPERATION", ids.operation)
      .replace("EVENT", ids.event)
      .replace("JOB", ids.job)
      .replace("REJECTION", ids.rejection)
      .split(" ");
    const json = command.includes("show") || command.length % 2 === 0 ? ["--json"] : [];
    const [here, there] = await Promise.all([direct(...args, ...json), remote("root", ...args, ...json)]);
    expect([command, here.code, here.stderr]).toEqual([command, 0, ""]);
    expect([command, there.code, there.stderr]).toEqual([command, 0, ""]);
    expect(withoutTimes(there)).toBe(withoutTimes(here));
  }
});

test("prints with --json what the API answers, byte for byte", { timeout: LIMIT_MS }, async () => {
  const pairs = [
    ["/events?limit=2", ["events", "--limit", "2"]],
    [`/jobs/${ids.job}`, ["jobs", "show", ids.job]],
    ["/rejections", ["rejections"]],
    [`/operations/${ids.operation}/items`, ["operations", "items", ids.operation]],
  ] as const;
  for (const [path, args] of pairs) {
    const answer = `${await ask(path)}\n`;
    const [here, there] = await Promise.all([direct(...args, "--json"), remote("root", ...args, "--json")]);
    expect(here.stdout).toBe(answer);
    expect(there.stdout).toBe(answer);
  }
});

test("the audit says who it was: the token there, the person here", { timeout: LIMIT_MS }, async () => {
  const change = ["queues", "resume", "default", "--yes", "--reason"];
  expect(await direct(...change, "by hand")).toMatchObject({
    code: 0,
    stdout: "The queue default is open.\n",
  });
  const paused = await remote("operator", "queues", "pause", "default", "--yes", "--reason", "from afar");
  expect(paused).toMatchObject({ code: 0, stdout: "The queue default is paused.\n" });
  expect((await readAudit(store.pool)).slice(-2)).toMatchObject([
    { actor: `cli:${userInfo().username}`, action: "queue.resumed", details: { reason: "by hand" } },
    { actor: "token:operator", action: "queue.paused", details: { reason: "from afar" } },
  ]);
});

test("a token of a tenant sees and changes what is that tenant's", { timeout: LIMIT_MS }, async () => {
  const events = JSON.parse((await remote("of acme", "events", "--json")).stdout) as {
    items: { tenant: string }[];
  };
  expect(new Set(events.items.map(({ tenant }) => tenant))).toEqual(new Set(["acme"]));
  expectClear(await remote("of acme", "dead", "show", ids.job), 1, "There is no job with this id.");
  expectClear(await remote("of acme", "queues", "pause", "default", "--reason", "x", "--yes"), 1, "tenant");
});

function expectClear(run: CliRun, code: number, ...words: readonly string[]): void {
  expect(run).toMatchObject({ code, stdout: "" });
  for (const word of words) expect(run.stderr).toContain(word);
  expect(run.stderr).toMatch(/^ukemi: [A-Z"-][^\n]+\n(?: {7}\S[^\n]+\n)?$|^ukemi: UKEMI_URL[^\n]+\n$/);
  expect(run.stderr).not.toContain("    at ");
}

test("says what is wrong with a token, and what to do", { timeout: LIMIT_MS }, async () => {
  const help = "Set UKEMI_TOKEN";
  expectClear(await remote("ukemi_wrong", "jobs"), 1, help);
  expectClear(await remote(undefined, "jobs"), 1, help);
  expectClear(await remote("old", "jobs"), 1, help);
  const small = await remote("reader", "queues", "pause", "default", "--reason", "x", "--yes");
  expectClear(
    { ...small, stderr: small.stderr.split("\n").slice(-3).join("\n") },
    1,
    "scope",
    "ukemi token create",
  );
  expectClear(await remote("operator", "token", "list"), 1, "admin", "ukemi token create");
});

/** Something that answers, and is no Ukemi. */
async function startOther(type: string, body: string, status = 200): Promise<string> {
  const other = createServer((_, response) => response.writeHead(status, { "content-type": type }).end(body));
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void other.close());
  return `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
}

test.each([
  ["a page", "text/html", "<h1>It works!</h1>", 200],
  ["a page that is missing", "text/html", "<h1>Not found</h1>", 404],
  ["other JSON", "application/json", '{"status":"ok"}', 200],
  ["no object", "application/json", "null", 200],
  ["broken JSON", "application/json", '{"items":[', 200],
  ["a proxy without a server", "text/html", "Bad gateway", 502],
])("says that %s is not Ukemi", { timeout: LIMIT_MS }, async (_, type, body, status) => {
  const url = await startOther(type, body, status);
  await inTwos([["jobs"], ["jobs", "show", "1"]], async (args) => {
    expectClear(await runCli(args, { UKEMI_URL: url }), 1, "Check UKEMI_URL or --url");
  });
});

test("says that no server answers, or that the URL is none", { timeout: LIMIT_MS }, async () => {
  expectClear(
    await runCli(["jobs"], { UKEMI_URL: "http://127.0.0.1:9" }),
    1,
    "No server answers at http://127.0.0.1:9",
  );
  expectClear(await runCli(["jobs"], { UKEMI_URL: "localhost:8080" }), 2, "UKEMI_URL must be a URL such as");
  expectClear(await runCli(["jobs", "--url", "ftp://x"]), 2, "--url must be a URL such as");
  const both = ["jobs", "--url", server.url, "--database", store.url];
  expectClear(await runCli(both), 2, "Give --url, or --database or --data: not both.");
});

test(
  "a database that a flag names is nearer than a server of the environment",
  { timeout: LIMIT_MS },
  async () => {
    const run = await runCli(["queues", "--json", "--database", store.url], {
      UKEMI_URL: "http://127.0.0.1:9",
    });
    expect(run).toMatchObject({ code: 0, stderr: "" });
  },
);

/** Whose exit code a script goes by: done, failed, wrong usage. */
const CODES: readonly (readonly [string, 0 | 1 | 2])[] = [
  ["events --type nothing", 0],
  ["events show nothing", 1],
  ["events --limit many", 2],
  ["events --status lost", 2],
  ["events route --dry-run --since yesterday", 2],
  ["jobs show 999999", 1],
  ["jobs show", 2],
  ["dead groups --since soon", 2],
  ["dead show 999999", 1],
  ["dead replay", 2],
  ["dead replay --all", 2],
  ["dead replay --all --dry-run", 0],
  ["dead drop --all --reason x", 1],
  ["queues pause nothing --reason x --yes", 2],
  ["queues pasue default", 2],
  ["handlers remove nothing --reason x --yes", 2],
  ["workers --watch never", 2],
  ["rejections show 999999", 1],
  ["stats hours --since 1h", 0],
  ["audit --limit 0", 2],
  ["token create --reason x", 2],
  ["token create --name x", 2],
  ["token revoke 00000000-0000-7000-8000-000000000000 --reason x", 1],
  ["operations show 00000000-0000-7000-8000-000000000000", 1],
  ["operations create --all --reason x", 2],
  ["operations create --all --name x --reason x", 1],
  ["operations abort 00000000-0000-7000-8000-000000000000 --reason x --yes", 1],
  ["bodies erase --ref nobody --dry-run", 0],
  ["bodies erase --dry-run", 2],
  ["prune --dry-run --body-days some", 2],
];

test(
  "ends with 0, 1 or 2, and says on standard output nothing but a result",
  { timeout: LIMIT_MS },
  async () => {
    await inTwos(CODES, async ([command, code]) => {
      const run = await direct(...command.split(" "));
      expect([command, run.code, run.output]).toEqual([command, code, expect.any(String)]);
      expect([command, code === 0 ? run.stderr : run.stdout]).toEqual([command, ""]);
      expect(run.stderr).not.toContain("    at ");
    });
    const skipped = await direct(..."dead replay 999999 --reason x --yes".split(" "));
    expect(skipped).toMatchObject({ code: 1, stdout: expect.stringContaining("there is no such job") });
  },
);

test("prints a token's secret alone, so that a file can hold it", { timeout: LIMIT_MS }, async () => {
  const args = ["token", "create", "--name", "deploy", "--scope", "read", "--reason", "a test"];
  for (const run of [await direct(...args), await remote("root", ...args)]) {
    expect(run.stdout).toMatch(/^ukemi_[\w-]+\n$/);
    expect(run.stderr).toContain("It is shown this once");
    tokens.fresh = run.stdout.trim();
    expect(await remote("fresh", "queues", "--json")).toMatchObject({ code: 0 });
  }
});

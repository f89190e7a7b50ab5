// The command line as a person at a terminal meets it: what is shown fits, and nothing that was stored commands the terminal.
import { afterAll, beforeAll, expect, test } from "vitest";
import { COMMANDS, fillAwkwardly, READABLE, type AwkwardStore } from "../support/awkward.ts";
import { createSharedDatabase } from "../support/database.ts";
import { inTwos } from "../support/in-twos.ts";
import { inTerminal, type Terminal } from "../support/terminal.ts";

const LIMIT_MS = 400_000;

let store: Awaited<ReturnType<typeof createSharedDatabase>>;
let ids: AwkwardStore;

beforeAll(async () => {
  store = await createSharedDatabase();
  ids = await fillAwkwardly(store);
}, 120_000);
afterAll(() => store.drop());

/** A table: the columns that are there at 80, and those that come at 200. */
const TABLES: readonly (readonly [string, readonly string[], readonly string[]])[] = [
  ["events", ["event", "received", "status", "type"], ["source", "tenant", "refs", "error"]],
  ["jobs", ["id", "made", "state", "handler", "tries", "error"], ["queue", "event", "tenant"]],
  ["dead", ["id", "died", "handler", "error"], ["death", "event", "type", "tenant"]],
  ["dead groups", ["count", "error", "handler", "newest", "sample"], ["oldest"]],
  ["queues", ["queue", "ready", "running", "dead", "oldest", "paused"], ["scheduled", "waiting"]],
  ["handlers", ["handler", "workers", "unfinished", "dead", "note"], ["wants", "queue"]],
  ["workers", ["worker", "state", "running", "handlers", "since"], ["queues", "version", "seen", "id"]],
  ["rejections", ["id", "when", "source", "reason", "diagnosis"], ["address", "bytes"]],
  ["stats", ["type", "received", "success", "failed", "pending"], ["source", "success %", "last"]],
  ["stats hours", ["hour", "type", "received", "success", "failed"], ["source", "pending", "unrouted"]],
  ["stats anomalies", ["since", "type", "kind", "received", "usual", "lasted"], ["source"]],
  ["audit", ["when", "actor", "action", "target", "why"], ["id", "tenant"]],
  ["token list", ["id", "name", "scope", "state"], ["token", "tenants", "used", "made by"]],
  ["operations", ["id", "name", "state", "progress", "died"], ["made", "kind", "items", "by", "end"]],
  ["operations items OPERATION", ["job", "state", "handler", "event", "message"], ["when"]],
  ["bodies keys", ["data key", "made", "opened by", "opens"], []],
];

/** One thing, or a preview: words that are to be found in it. */
const WORDS: readonly (readonly [string, readonly string[]])[] = [
  ["events show EVENT", ["株式会社テスト", "cus_日本", READABLE, "bill_請求", "body, "]],
  ["jobs show JOB", ["dead (exhausted)", READABLE, "at 決済 (/app/x.ts:1:1)"]],
  ["dead show JOB", ["dead (exhausted)", "株式会社テスト", "4 of 4"]],
  ["rejections show REJECTION", ["署名が違います", "request_1", "1234 bytes", "user-agent: Bot"]],
  ["operations show OPERATION", ["STOPPED", "which is more than", "5 per second", "50 %"]],
  ["prune --dry-run", ["bodies 90 days", "1 ended workers"]],
  ["dead replay --all --dry-run", ["4 dead letters would be replayed", "these jobs will wait for one"]],
];

function argumentsOf(command: string): string[] {
  return command
    .replace("OPERATION", ids.operation)
    .replace("EVENT", ids.event)
    .replace("JOB", ids.job)
    .replace("REJECTION", ids.rejection)
    .split(" ");
}

async function see(command: string, columns: number): Promise<Terminal> {
  const terminal = inTerminal(argumentsOf(command), { columns, env: { DATABASE_URL: store.url } });
  expect([command, await terminal.ended(), terminal.text()]).toEqual([command, 0, expect.any(String)]);
  expect([command, terminal.wrapped()]).toEqual([command, []]);
  const commanding = /[^\P{C}\r\n]/u; // any control or format character but the ends of lines
  expect([command, commanding.exec(terminal.raw())]).toEqual([command, null]);
  return terminal;
}

/** Where columns begin by the header, every row has room before. */
function expectAligned(command: string, terminal: Terminal, columns: readonly string[]): void {
  const [, header = ""] = terminal.lines();
  for (const name of columns) {
    const start = new RegExp(`(?:^| {2})${name}(?: {2}|$)`).exec(header);
    if (!start) throw new Error(`${command} has no column ${name}:\n${terminal.text()}`);
    const at = start.index + (start[0].startsWith(" ") ? 2 : 0);
    if (at === 0) continue;
    for (let line = 2; terminal.lines()[line] !== undefined && terminal.lines()[line] !== ""; line++) {
      const before = terminal.cells(line).slice(at - 2, at);
      expect([command, name, terminal.lines()[line], before]).toEqual([
        command,
        name,
        terminal.lines()[line],
        [" ", " "],
      ]);
    }
  }
}

test.each([80, 200])(
  "every list fits a terminal of %i columns, lined up, and what matters most is there",
  { timeout: LIMIT_MS },
  async (columns) => {
    await inTwos(TABLES, async ([command, always, more]) => {
      const terminal = await see(command, columns);
      expectAligned(command, terminal, columns === 80 ? always : [...always, ...more]);
      const header = terminal.lines()[1]!;
      for (const name of columns === 80 ? more : []) expect(header.split(/ {2,}/)).not.toContain(name);
    });
  },
);

test.each([80, 200])(
  "one thing in words is folded to a terminal of %i columns",
  { timeout: LIMIT_MS },
  async (columns) => {
    await inTwos(WORDS, async ([command, words]) => {
      const text = (await see(command, columns)).text();
      for (const word of words) expect(text).toContain(word);
    });
  },
);

test("what commands a terminal is in the store, or the tests above show nothing", async () => {
  const { rows } = await store.pool.query("select from ukemi.jobs where position($1 in error_message) > 0", [
    COMMANDS,
  ]);
  expect(rows.length).toBeGreaterThan(2);
});

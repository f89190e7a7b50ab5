import { afterAll, beforeAll, test } from "vitest";
import { writeFile } from "node:fs/promises";
import { createSharedDatabase } from "../support/database.ts";
import { fillAwkwardly } from "../support/awkward.ts";
import { inTerminal } from "../support/terminal.ts";
let db: Awaited<ReturnType<typeof createSharedDatabase>>;
let ids: Awaited<ReturnType<typeof fillAwkwardly>>;
beforeAll(async () => { db = await createSharedDatabase(); ids = await fillAwkwardly(db); }, 120_000);
afterAll(() => db?.drop());
test("look", async () => {
  const commands = ["events", `events show ${ids.event}`, "jobs", `jobs show ${ids.job}`, "dead", "dead groups", `dead show ${ids.job}`, "queues", "handlers", "workers", "rejections", `rejections show ${ids.rejection}`, "stats", "stats hours", "stats anomalies", "audit", "token list", "operations", `operations show ${ids.operation}`, `operations items ${ids.operation}`, "bodies keys", "prune --dry-run", "dead replay --all --dry-run", "events --limit 2"];
  for (const columns of [80, 200]) {
    let out = "";
    for (const command of commands) {
      const terminal = inTerminal(command.split(" "), { columns, env: { DATABASE_URL: db.url } });
      const code = await terminal.ended();
      out += `\n#### ${command} (${code}) ${terminal.wrapped().length > 0 ? "WRAPPED" : ""}${terminal.raw().replace(/\u001B\]777;\d+\u0007/, "").includes("\u001B") ? "RAW" : ""}\n${terminal.text()}\n`;
    }
    await writeFile(`/tmp/h/look-${columns}.txt`, out);
  }
}, 500_000);

// The README's program is run as it stands there.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, rm, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { createDatabase } from "../support/database.ts";
import { deliver } from "../support/deliver.ts";
import { cleanEnv, SECRET } from "../support/server.ts";
import { untilDrained } from "../support/work.ts";

test("the README's program receives an event, answers by itself, and ends on SIGTERM", async () => {
  const readme = await readFile(new URL("../../README.md", import.meta.url), "utf8");
  const program = /```js\n([^]*?)```/.exec(readme)![1]!;
  // inside the package, so that `import … from "ukemi"` finds it
  const file = new URL("../../dist/readme-example.mjs", import.meta.url);
  await writeFile(file, program);
  onTestFinished(() => rm(file));
  const { url, pool } = await createDatabase({ empty: true });
  const child = spawn(process.execPath, [fileURLToPath(file)], {
    env: { ...cleanEnv(), DATABASE_URL: url, STRIPE_WEBHOOK_SECRET: SECRET, PORT: "0", LOG_LEVEL: "info" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(child, "close");
  const port = await new Promise<string>((resolve, reject) => {
    child.stdout.on("data", (chunk: Buffer) => {
      const found = /^ready (\d+)/m.exec(chunk.toString())?.[1];
      if (found !== undefined) resolve(found);
    });
    void ended.then(() => reject(new Error("the program ended")));
  });
  expect(await deliver(`http://127.0.0.1:${port}`, "evt_1")).toMatchObject({ status: 204, duplicate: false });
  expect(await deliver(`http://127.0.0.1:${port}`, "evt_1")).toMatchObject({ status: 204, duplicate: true });
  await untilDrained(pool);
  const { rows } = await pool.query("select event_id, status from ukemi.webhook_events");
  expect(rows).toEqual([{ event_id: "evt_1", status: "success" }]);
  expect((await pool.query("select from payments")).rowCount).toBe(1);
  child.kill("SIGTERM");
  expect(await ended).toEqual([0, null]);
});

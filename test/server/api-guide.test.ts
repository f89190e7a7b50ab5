// The program of the guide to the API is run as it stands there, and its error is the one that a server gives.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, rm, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { createDatabase } from "../support/database.ts";
import { makeDead, MANDATE, readAudit, register } from "../support/dead.ts";
import { startTestServer } from "../support/in-process.ts";
import { cleanEnv } from "../support/server.ts";

async function readBlock(language: string): Promise<string> {
  const guide = await readFile(new URL("../../docs/guides/api.md", import.meta.url), "utf8");
  return new RegExp(`\`\`\`${language}\n([^]*?)\`\`\``).exec(guide)![1]!;
}

test("the guide's program pages, previews, replays once under its key, and names an error", async () => {
  // inside the package, so that `import … from "ukemi/client"` finds it
  const file = new URL("../../dist/api-guide-example.mjs", import.meta.url);
  await writeFile(file, await readBlock("js"));
  onTestFinished(() => rm(file));
  const store = await createDatabase();
  await register(store.pool);
  await makeDead(store, ["evt_1", "evt_2", "evt_3"]);
  await makeDead(store, ["evt_4"], { errorClass: "RangeError" });
  const { url, ukemi } = await startTestServer({ database: store.url });
  const { secret } = await ukemi.operate.tokens.make({ name: "script", scope: "operate" }, MANDATE);

  const child = spawn(process.execPath, [fileURLToPath(file)], {
    env: { ...cleanEnv(), UKEMI_URL: url, UKEMI_TOKEN: secret },
    stdio: ["ignore", "pipe", "inherit"],
  });
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  await once(child, "close");

  expect(child.exitCode).toBe(0);
  const lines = output.trimEnd().split("\n");
  // those of one moment come in any order, each of them once
  expect(new Set(lines.slice(0, 4).map((line) => line.replace(/\d+$/, "N")))).toEqual(
    new Set([
      "evt_1 TypeError of job N",
      "evt_2 TypeError of job N",
      "evt_3 TypeError of job N",
      "evt_4 RangeError of job N",
    ]),
  );
  expect(lines.slice(4, 6)).toEqual(["3 would be replayed", "3 3"]);
  expect(lines[6]).toMatch(/^404 not_found /);
  expect(lines).toHaveLength(7);
  const replays = (await readAudit(store.pool)).filter(({ action }) => action === "job.replayed");
  expect(replays).toHaveLength(3);
  expect(replays[0]).toMatchObject({ actor: "token:script", details: { reason: "fixed in v1.4" } });
});

test("the guide's error is what the server answers", async () => {
  const { url: database } = await createDatabase();
  const { url } = await startTestServer({ database });
  const shown = JSON.parse(await readBlock("json")) as Record<string, unknown>;
  const response = await fetch(`${url}/api/v1/events?limit=1000`);
  const answered = (await response.json()) as Record<string, unknown>;
  const { instance, request_id } = answered;
  expect(answered).toEqual({ ...shown, instance, request_id });
  expect(Object.keys(answered)).toEqual(Object.keys(shown));
});

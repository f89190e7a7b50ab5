// The examples of query builders and ORMs: each compiled and run in a process of its own.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { createDatabase } from "../support/database.ts";
import { SECRET } from "../support/server.ts";
import { storeElsewhere, untilDrained } from "../support/work.ts";
import { until } from "../support/until.ts";
import { compileExample, unpackExample } from "./example.ts";

const FILES = ["drizzle.ts", "kysely.ts", "knex.ts", "prisma.ts"] as const;
let example: Awaited<ReturnType<typeof unpackExample>>;

beforeAll(async () => {
  example = await unpackExample("databases");
  await compileExample(example.folder, ...FILES);
});
afterAll(() => example.remove());

test.each(FILES)("examples/databases/%s writes a payment and ends by itself when asked to", async (file) => {
  const { url, pool } = await createDatabase();
  await pool.query("create table payments (id text primary key, status text not null)");
  const child = spawn(process.execPath, [file.replace(".ts", ".js")], {
    cwd: example.folder,
    env: { PATH: process.env.PATH, DATABASE_URL: url, STRIPE_WEBHOOK_SECRET: SECRET },
    stdio: ["ignore", "ignore", "inherit"],
  });
  const ended = once(child, "close");
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  const isWorking = async () =>
    (await pool.query("select from ukemi.workers where ended_at is null")).rowCount === 1;
  await until(isWorking, "the example's worker");
  const event = { id: "evt_1", type: "payment_intent.succeeded", data: { object: { id: "pi_1" } } };
  await storeElsewhere(url, ["evt_1"], { body: Buffer.from(JSON.stringify(event)) });
  const [job] = await untilDrained(pool);
  const tries = await pool.query("select number, outcome, error_message from ukemi.attempts order by id");
  expect(job, JSON.stringify(tries.rows)).toMatchObject({ state: "done", attempt: 1 });
  const { rows } = await pool.query("select id, status from payments");
  expect(rows).toEqual([{ id: "pi_1", status: "paid" }]);
  child.kill("SIGTERM");
  expect(await ended).toEqual([0, null]);
});

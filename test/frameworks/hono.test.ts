// Ukemi in Hono: examples/hono.ts in a process of its own.
import { afterAll, beforeAll, expect, test } from "vitest";
import { createDatabase } from "../support/database.ts";
import { compileExample, startExample, unpackExample } from "./example.ts";
import { testReceiver } from "./receives.ts";

let example: Awaited<ReturnType<typeof unpackExample>>;
let script: string;

beforeAll(async () => {
  example = await unpackExample("hono.ts");
  script = await compileExample(example.folder, "hono.ts");
});
afterAll(() => example.remove());

const start = (database: string) => startExample(example.folder, [script], database);

testReceiver({ start, address: "::ffff:127.0.0.1", answersEveryMethod: true });

test("ends by itself when asked to", async () => {
  const { url } = await createDatabase();
  const app = await start(url);
  expect(await app.stop()).toBe(0);
});

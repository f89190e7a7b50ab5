// Ukemi in Fastify: examples/fastify.ts in a process of its own.
import { afterAll, beforeAll, expect, test } from "vitest";
import { createDatabase } from "../support/database.ts";
import { compileExample, startExample, unpackExample } from "./example.ts";
import { testReceiver } from "./receives.ts";

let example: Awaited<ReturnType<typeof unpackExample>>;
let script: string;

beforeAll(async () => {
  example = await unpackExample("fastify.ts");
  script = await compileExample(example.folder, "fastify.ts");
});
afterAll(() => example.remove());

const start = (database: string) => startExample(example.folder, [script], database);

testReceiver({ start, address: "203.0.113.7", answersEveryMethod: true });

test("ends by itself when asked to", async () => {
  const { url } = await createDatabase();
  const app = await start(url);
  expect(await app.stop()).toBe(0);
});

test("leaves the other routes their parsed bodies", async () => {
  const { url } = await createDatabase();
  const app = await start(url);
  const answer = await fetch(`${app.url}/echo`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: '{ "名": 1 }',
  });
  expect(await answer.json()).toEqual({ 名: 1 });
});

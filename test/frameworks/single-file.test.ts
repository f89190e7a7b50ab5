// Ukemi in Hono, Express and Fastify: each single-file example compiled and run in a process of its own.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createDatabase } from "../support/database.ts";
import { compileExample, startExample, unpackExample } from "./example.ts";
import { testReceiver } from "./receives.ts";

describe.each([
  { file: "hono.ts", address: "::ffff:127.0.0.1", hasOtherRoutes: false },
  { file: "express.ts", address: "203.0.113.7", hasOtherRoutes: true },
  { file: "fastify.ts", address: "203.0.113.7", hasOtherRoutes: true },
])("examples/$file", ({ file, address, hasOtherRoutes }) => {
  let example: Awaited<ReturnType<typeof unpackExample>>;
  let script: string;

  beforeAll(async () => {
    example = await unpackExample(file);
    script = await compileExample(example.folder, file);
  });
  afterAll(() => example.remove());

  const start = (database: string) => startExample(example.folder, [script], database);

  testReceiver({ start, address, answersEveryMethod: true });

  test("ends by itself when asked to", async () => {
    const { url } = await createDatabase();
    const app = await start(url);
    expect(await app.stop()).toBe(0);
  });

  if (!hasOtherRoutes) return;
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
});

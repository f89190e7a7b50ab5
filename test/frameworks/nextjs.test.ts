// Ukemi in Next.js: examples/nextjs built by `next build`, run by `next start`.
import { afterAll, beforeAll } from "vitest";
import { NEXT, runIn, startExample, unpackExample } from "./example.ts";
import { testReceiver } from "./receives.ts";

let app: Awaited<ReturnType<typeof unpackExample>>;

beforeAll(async () => {
  app = await unpackExample("nextjs");
  await runIn(app.folder, [NEXT, "build"]);
});
afterAll(() => app.remove());

testReceiver({
  start: (database) => startExample(app.folder, [NEXT, "start", "-H", "127.0.0.1", "-p", "0"], database),
  address: "203.0.113.7",
  answersEveryMethod: false,
});

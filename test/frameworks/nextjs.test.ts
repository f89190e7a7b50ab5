// Ukemi in Next.js: examples/nextjs built by `next build`, run by `next start`.
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";
import { NEXT, runIn, startExample, unpackExample } from "./example.ts";
import { testReceiver } from "./receives.ts";

let app: Awaited<ReturnType<typeof unpackExample>>;

beforeAll(async () => {
  app = await unpackExample("nextjs");
  await standInForReactTypes(app.folder);
  await runIn(app.folder, [NEXT, "build"]);
});
afterAll(() => app.remove());

testReceiver({
  start: (database) => startExample(app.folder, [NEXT, "start", "-H", "127.0.0.1", "-p", "0"], database),
  address: "203.0.113.7",
  answersEveryMethod: false,
});

/** `next build` wants @types/react in every TypeScript project; the app has no page, so that this much is enough. */
async function standInForReactTypes(folder: string): Promise<void> {
  const types = join(folder, "node_modules/@types/react");
  await mkdir(types, { recursive: true });
  await writeFile(join(types, "package.json"), `{ "name": "@types/react", "version": "19.0.0" }\n`);
  await writeFile(
    join(types, "index.d.ts"),
    "export as namespace React;\nexport type ReactNode = unknown;\n",
  );
}

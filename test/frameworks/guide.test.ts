// The guide shows the very files that the tests run.
import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { readExample } from "./example.ts";

const GUIDE = new URL("../../docs/guides/frameworks.md", import.meta.url);

test("the guide's code is the code of the examples", async () => {
  const guide = await readFile(GUIDE, "utf8");
  const blocks = [...guide.matchAll(/^```(.*)\n([\s\S]*?)^```$/gm)].map(([, info, code]) => ({
    file: /^ts title="examples\/([^"]+)"$/.exec(info!)?.[1],
    code,
  }));
  expect(blocks.map((block) => block.file)).toEqual([
    "hono.ts",
    "express.ts",
    "fastify.ts",
    "nextjs/app/webhooks/stripe/route.ts",
    "nextjs/next.config.ts",
  ]);
  for (const { file, code } of blocks) expect(code, file).toBe(await readExample(file!));
});

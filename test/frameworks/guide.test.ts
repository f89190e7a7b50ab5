// The guides show the very files that the tests run.
import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { readExample } from "./example.ts";

test.each([
  {
    guide: "frameworks.md",
    files: [
      "hono.ts",
      "express.ts",
      "fastify.ts",
      "nextjs/app/webhooks/stripe/route.ts",
      "nextjs/next.config.ts",
    ],
  },
  {
    guide: "databases.md",
    files: ["databases/drizzle.ts", "databases/kysely.ts", "databases/knex.ts", "databases/prisma.ts"],
  },
])("the code of $guide is the code of the examples", async ({ guide, files }) => {
  const text = await readFile(new URL(`../../docs/guides/${guide}`, import.meta.url), "utf8");
  const blocks = [...text.matchAll(/^```ts(.*)\n([\s\S]*?)^```$/gm)].map(([, title, code]) => ({
    file: /^ title="examples\/([^"]+)"$/.exec(title!)?.[1],
    code,
  }));
  expect(blocks.map((block) => block.file)).toEqual(files);
  for (const { file, code } of blocks) expect(code, file).toBe(await readExample(file!));
});

// The reference says what the code does, no more and no less.
import { readFile, writeFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { createApp } from "../../src/server/app.ts";
import { createDocument } from "../../src/server/openapi.ts";
import { ROUTES } from "../../src/server/routes/routes.ts";
import { catalogue } from "../../src/errors.ts";
import { stripe } from "../../src/sources/stripe.ts";
import { createUkemi } from "../../src/ukemi.ts";
import { clientSource } from "../support/client-source.ts";
import { format } from "../support/format.ts";
import { referencePages } from "../support/reference.ts";

const FOLDER = new URL("../../docs/reference/", import.meta.url);
const read = (name: string) => readFile(new URL(name, FOLDER), "utf8");

test.each(["options.md", "errors.md", "refusals.md", "cli.md", "metrics.md", "admin-api.md"])(
  "docs/reference/%s is what the code says",
  async (name) => {
    const made = (await referencePages())[name]!;
    if (process.env.UPDATE_DOCS) await writeFile(new URL(name, FOLDER), made);
    expect(await read(name), "UPDATE_DOCS=1 npx vitest run --project unit test/docs").toBe(made);
  },
);

test("src/client/generated.ts is what the OpenAPI document says", async () => {
  const file = new URL("../../src/client/generated.ts", import.meta.url);
  const made = await format(clientSource(createDocument(ROUTES)), "generated.ts");
  if (process.env.UPDATE_DOCS) await writeFile(file, made);
  expect(await readFile(file, "utf8"), "UPDATE_DOCS=1 npx vitest run --project unit test/docs").toBe(made);
});

test("docs/reference/http-api.md names every route but those of the admin API, and every error status", async () => {
  const page = await read("http-api.md");
  const ukemi = createUkemi({ sources: { stripe: stripe({ secrets: ["whsec_x"] }) }, logLevel: "silent" });
  const routes = createApp(ukemi, () => false)
    .routes.filter((route) => route.method !== "ALL")
    .map((route) => `${route.method} ${route.path}`);
  await ukemi.stop();
  expect(routes.length).toBe(3);
  const named = [...page.matchAll(/`((?:GET|POST|PUT|PATCH|DELETE) \/[^`]*)`/g)].map(([, route]) => route!);
  expect(new Set(named)).toEqual(new Set([...routes, "POST /webhooks/{source}"]));
  for (const entry of Object.values(catalogue))
    if ("status" in entry) expect(page).toContain(`\`${entry.status}\``);
});

test("every link of the papers leads to a file that is there", async () => {
  const papers = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "docs/guides/api.md",
    "docs/guides/bodies.md",
    "docs/guides/configuration.md",
    "docs/guides/effects.md",
    "docs/guides/databases.md",
    "docs/guides/frameworks.md",
    "docs/guides/handlers.md",
    "docs/guides/operating.md",
    "docs/decisions/README.md",
    "docs/reference/http-api.md",
  ];
  for (const paper of papers) {
    const text = await readFile(new URL(`../../${paper}`, import.meta.url), "utf8");
    for (const [, target] of text.matchAll(/\]\((?!https?:|#|mailto:)([^)#]+)/g)) {
      await expect(
        readFile(new URL(target!, new URL(`../../${paper}`, import.meta.url))).catch(
          (error: NodeJS.ErrnoException) => (error.code === "EISDIR" ? "" : Promise.reject(error)),
        ),
        `${paper} → ${target}`,
      ).resolves.toBeDefined();
    }
  }
});

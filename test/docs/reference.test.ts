// The reference says what the code does, no more and no less.
import { readFile, writeFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { createApp } from "../../src/server/app.ts";
import { EVENT_PARAMETERS } from "../../src/server/routes/events.ts";
import { catalogue } from "../../src/errors.ts";
import { stripe } from "../../src/sources/stripe.ts";
import { createUkemi } from "../../src/ukemi.ts";
import { referencePages } from "../support/reference.ts";

const FOLDER = new URL("../../docs/reference/", import.meta.url);
const read = (name: string) => readFile(new URL(name, FOLDER), "utf8");

test.each(["options.md", "errors.md", "refusals.md", "cli.md", "metrics.md"])(
  "docs/reference/%s is what the code says",
  async (name) => {
    const made = (await referencePages())[name]!;
    if (process.env.UPDATE_DOCS) await writeFile(new URL(name, FOLDER), made);
    expect(await read(name), "UPDATE_DOCS=1 npx vitest run --project unit test/docs").toBe(made);
  },
);

test("docs/reference/http-api.md names every route, query parameter and error status", async () => {
  const page = await read("http-api.md");
  const ukemi = createUkemi({ sources: { stripe: stripe({ secrets: ["whsec_x"] }) }, logLevel: "silent" });
  const routes = createApp(ukemi, () => false)
    .routes.filter((route) => route.method !== "ALL")
    .map((route) => `${route.method} ${route.path.replace(/:(\w+)/, "{$1}").replace(/\/$/, "")}`);
  await ukemi.stop();
  expect(routes.length).toBeGreaterThan(3);
  const named = [...page.matchAll(/`((?:GET|POST|PUT|PATCH|DELETE) \/[^`]*)`/g)].map(([, route]) => route!);
  expect(new Set(named)).toEqual(new Set([...routes, "POST /webhooks/{source}"]));
  for (const parameter of EVENT_PARAMETERS) expect(page).toContain(`\`${parameter}\``);
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
    "docs/guides/operating.md",
    "docs/guides/frameworks.md",
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

// `ukemi init`: what it finds, what it writes, and that what it writes works as it stands.
import { execFile } from "node:child_process";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import { runIn, startExample, unpackExample } from "../frameworks/example.ts";
import { post } from "../frameworks/receives.ts";
import { runCli } from "../support/cli.ts";
import { createDatabase } from "../support/database.ts";
import { cleanEnv, SECRET, startServerProcess } from "../support/server.ts";
import { sampleEvent } from "../../src/testing/sample-events.ts";
import { until } from "../support/until.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const TSC = join(ROOT, "node_modules/typescript/bin/tsc");
const JITI = join(ROOT, "node_modules/jiti/lib/jiti-cli.mjs");

const STRICT = {
  target: "es2023",
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  skipLibCheck: true,
  noEmit: true,
  allowJs: true,
  checkJs: true,
  types: ["node"],
};

interface Kind {
  readonly name: string;
  readonly manifest: object;
  /** Compiler options of its tsconfig.json, where it has one. */
  readonly typescript?: object;
  /** Files that are there already. */
  readonly has?: readonly string[];
  readonly writes: readonly string[];
  readonly finds: string;
  /** The file of its server, and what stands before and after the lines that init prints. */
  readonly server?: { readonly file: string; readonly before: string; readonly after: string };
}

const LISTENING = "console.log(`listening on http://127.0.0.1:${server.address().port}`)";
const TYPED_LISTENING = LISTENING.replace("server.address()", "(server.address() as { port: number })");

const KINDS: readonly Kind[] = [
  {
    name: "hono",
    manifest: {
      type: "module",
      dependencies: { hono: "4" },
      devDependencies: { typescript: "7", vitest: "4" },
    },
    typescript: { module: "nodenext", verbatimModuleSyntax: true, allowImportingTsExtensions: true },
    has: ["pnpm-lock.yaml"],
    finds: "Hono, TypeScript, ES modules, pnpm",
    writes: ["ukemi.config.ts", "webhooks/payments.ts", "test/webhooks.check.mjs"],
    server: {
      file: "server.ts",
      before:
        'import { serve } from "@hono/node-server";\nimport { Hono } from "hono";\nconst app = new Hono();',
      after:
        "serve({ fetch: app.fetch, port: 0 }, ({ port }) => console.log(`listening on http://127.0.0.1:${port}`));",
    },
  },
  {
    name: "express",
    manifest: {
      type: "module",
      dependencies: { express: "5", ukemi: "0" },
      devDependencies: { typescript: "7" },
    },
    typescript: { module: "nodenext", verbatimModuleSyntax: true },
    has: ["src/index.ts", "tests/other.mjs"],
    finds: "Express, TypeScript, ES modules, npm",
    writes: ["ukemi.config.ts", "src/webhooks/payments.ts", "tests/webhooks.test.mjs"],
    server: {
      file: "src/server.ts",
      before: 'import express from "express";\nconst app = express();',
      after: `app.use(express.json());\nconst server = app.listen(0, "127.0.0.1", () => ${TYPED_LISTENING});`,
    },
  },
  {
    name: "express in CommonJS",
    manifest: { dependencies: { express: "5" }, devDependencies: { typescript: "7" } },
    typescript: { module: "nodenext", esModuleInterop: true },
    has: ["yarn.lock"],
    finds: "Express, TypeScript, CommonJS, yarn",
    writes: ["ukemi.config.mts", "webhooks/payments.mts", "test/webhooks.test.mjs"],
    server: {
      file: "server.ts",
      before: 'import express from "express";\nconst app = express();',
      after: `const server = app.listen(0, "127.0.0.1", () => ${TYPED_LISTENING});`,
    },
  },
  {
    name: "fastify",
    manifest: { dependencies: { fastify: "5" } },
    has: ["bun.lock"],
    finds: "Fastify, JavaScript, CommonJS, bun",
    writes: ["ukemi.config.mjs", "webhooks/payments.mjs", "test/webhooks.test.mjs"],
    server: {
      file: "server.js",
      before: 'const { fastify } = require("fastify");\nconst app = fastify();',
      after: 'app.listen({ host: "127.0.0.1", port: 0 }).then((url) => console.log(`listening on ${url}`));',
    },
  },
  {
    name: "next with the app router",
    manifest: { dependencies: { next: "16", express: "5" }, devDependencies: { typescript: "7" } },
    typescript: { module: "esnext", moduleResolution: "bundler", lib: ["dom", "esnext"], jsx: "react-jsx" },
    has: ["src/app/page.tsx", "package-lock.json"],
    finds: "Next.js, its app router in src/app, TypeScript, ES modules, npm",
    writes: [
      "ukemi.config.ts",
      "src/webhooks/payments.ts",
      "test/webhooks.test.mjs",
      "src/app/api/webhooks/stripe/route.ts",
    ],
  },
  {
    name: "next with the pages router",
    manifest: { type: "module", dependencies: { next: "16" } },
    has: ["pages/index.js"],
    finds: "Next.js, its pages router in pages, JavaScript, ES modules, npm",
    writes: [
      "ukemi.config.js",
      "webhooks/payments.js",
      "test/webhooks.test.mjs",
      "pages/api/webhooks/stripe.js",
    ],
  },
  {
    name: "no framework",
    manifest: { type: "module" },
    finds: "no framework that Ukemi knows, JavaScript, ES modules, npm",
    writes: ["ukemi.config.js", "webhooks/payments.js", "test/webhooks.test.mjs"],
  },
];

interface Initiated {
  readonly files: readonly { readonly path: string; readonly state: string }[];
  readonly mount: { readonly code: string } | null;
}

async function makeProject(kind: Pick<Kind, "manifest" | "typescript" | "has">): Promise<string> {
  const { folder, remove } = await unpackExample();
  onTestFinished(remove);
  await writeFile(join(folder, "package.json"), JSON.stringify(kind.manifest));
  if (kind.typescript) {
    const options = { ...STRICT, ...kind.typescript };
    await writeFile(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions: options }));
  }
  for (const path of kind.has ?? []) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), "");
  }
  return folder;
}

const init = async (folder: string, ...args: string[]) => runCli(["init", ...args], {}, { cwd: folder });

describe.each(KINDS)("a project with $name", (kind) => {
  test("gets files that type-check, pass their own test, and do their work in a server", async () => {
    const folder = await makeProject(kind);
    const words = await init(folder, "--dry-run");
    expect(words).toMatchObject({ code: 0, stderr: "" });
    expect(words.stdout.split("\n")[0]).toBe(`Found  ${kind.finds}`);

    const run = await init(folder, "--json");
    expect(run).toMatchObject({ code: 0, stderr: "" });
    const { files, mount } = JSON.parse(run.stdout) as Initiated;
    expect(files.map(({ path, state }) => [path, state])).toEqual(
      kind.writes.map((path) => [path, "written"]),
    );

    const { server } = kind;
    if (server) {
      await writeFile(join(folder, server.file), [server.before, mount!.code, server.after, ""].join("\n"));
    }
    const checked = server && !server.file.endsWith(".js") ? [...kind.writes, server.file] : kind.writes;
    // a project without a tsconfig.json is checked as an editor does
    const flags = Object.entries({ ...STRICT, module: "nodenext" }).flatMap(([name, value]) => [
      `--${name}`,
      String(value),
    ]);
    await runIn(folder, kind.typescript ? [TSC, "-p", "."] : [TSC, "--ignoreConfig", ...flags, ...checked]);

    const written = kind.writes.find((path) => path.endsWith(".mjs") && path.startsWith("test"))!;
    await runIn(folder, ["--test", written]);

    const { url, pool } = await createDatabase();
    const noted = async () =>
      (await pool.query("select details from ukemi.audit_log where action = 'payment.paid'")).rowCount;
    const serving = await startServerProcess({ DATABASE_URL: url }, [
      "--config",
      join(folder, kind.writes[0]!),
    ]);
    onTestFinished(async () => void (await serving.kill("SIGKILL")));
    const sent = await runCli(["send", "--url", serving.url], { STRIPE_WEBHOOK_SECRET: SECRET });
    expect(sent, sent.output).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("204: committed") as string,
    });
    await until(async () => (await noted()) === 1, "the handler's line in the audit");
    expect(await serving.kill("SIGTERM")).toBe(0);

    if (!server) return;
    const args = server.file.endsWith(".ts") ? [JITI, server.file] : [server.file];
    const app = await startExample(folder, args, url);
    const answer = await post(app.url, sampleEvent("payment_intent.succeeded"));
    expect(answer.status, app.output()).toBe(204);
    await until(async () => (await noted()) === 2, "the handler's line in the audit");
  }, 300_000);
});

test("the test that is written finds a handler that fails it, and never looks at DATABASE_URL", async () => {
  const folder = await makeProject({ manifest: { type: "module" } });
  expect((await init(folder)).code).toBe(0);
  const run = promisify(execFile);
  const env = { ...cleanEnv(), DATABASE_URL: "postgres://u:p@127.0.0.1:9/production" };
  const runTest = () => run(process.execPath, ["--test", "test/webhooks.test.mjs"], { cwd: folder, env });
  await runTest();
  const file = join(folder, "webhooks/payments.js");
  const text = await readFile(file, "utf8");
  for (const [before, after] of [
    ['throw terminal("nothing was paid")', "return"],
    ["amount: intent.amount_received", "amount: 1"],
  ]) {
    expect(text).toContain(before);
    await writeFile(file, text.replace(before!, after!));
    await expect(runTest(), after).rejects.toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/fail 1$/m) as string,
    });
  }
}, 300_000);

test("leaves what is there alone, byte for byte, and says so", async () => {
  const folder = await makeProject({
    manifest: { type: "module" },
    has: ["ukemi.config.mjs", "webhooks/payments.js"],
  });
  const first = await init(folder);
  expect(first.code).toBe(0);
  expect(first.stdout).toMatch(/^left alone +ukemi\.config\.mjs +it is there already$/m);
  expect(first.stdout).toMatch(/^left alone +webhooks\/payments\.js +it is there already$/m);
  expect(first.stdout).toMatch(/^written +test\/webhooks\.test\.mjs/m);
  expect(await readFile(join(folder, "ukemi.config.mjs"), "utf8")).toBe("");
  expect(await readdir(folder)).not.toContain("ukemi.config.js");
  const before = await readFile(join(folder, "test/webhooks.test.mjs"), "utf8");
  expect(before).toContain("../ukemi.config.mjs");

  const second = await init(folder);
  expect(second.code).toBe(1);
  expect(second.stdout.match(/^left alone /gm)).toHaveLength(3);
  expect(await readFile(join(folder, "test/webhooks.test.mjs"), "utf8")).toBe(before);
});

test("shows what it would write, and writes nothing", async () => {
  const folder = await makeProject({ manifest: {} });
  const before = await readdir(folder);
  const { code, stdout } = await init(folder, "--dry-run");
  expect(code).toBe(0);
  expect(stdout.match(/^would be written /gm)).toHaveLength(3);
  expect(await readdir(folder)).toEqual(before);
});

test("goes on where one file cannot be written, and says which", async () => {
  const folder = await makeProject({ manifest: {}, has: ["webhooks"] });
  const { code, stdout } = await init(folder);
  expect(code).toBe(1);
  expect(stdout).toMatch(/^failed +webhooks\/payments\.mjs +(?:EEXIST|ENOTDIR)$/m);
  expect(stdout.match(/^written /gm)).toHaveLength(2);
});

test("says what is missing in a folder that is no project", async () => {
  const folder = await makeProject({ manifest: {} });
  const empty = join(folder, "empty");
  await mkdir(empty);
  expect(await init(empty)).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^ukemi: There is no package\.json in .*: run npm init -y first/) as string,
  });
  expect(await readdir(empty)).toEqual([]);
  await writeFile(join(empty, "package.json"), "{ oops");
  expect(await init(empty)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("cannot be read as JSON") as string,
  });
});

describe("docs/guides/configuration.md", async () => {
  const guide = await readFile(join(ROOT, "docs/guides/configuration.md"), "utf8");
  const blocks = [...guide.matchAll(/^```(\w+)(?: title="([^"]+)")?\n([\s\S]*?)^```$/gm)].map(
    ([, language, title, text]) => ({ language, title, text: text! }),
  );

  test("shows the very files that init writes", async () => {
    const folder = await makeProject({ manifest: { type: "module", devDependencies: { typescript: "7" } } });
    expect((await init(folder)).code).toBe(0);
    const shown = blocks.filter(({ title }) => title !== undefined && title !== "wrong.mjs");
    expect(shown.map(({ title }) => title)).toEqual([
      "ukemi.config.ts",
      "webhooks/payments.ts",
      "test/webhooks.test.mjs",
    ]);
    for (const { title, text } of shown)
      expect(text, title).toBe(await readFile(join(folder, title!), "utf8"));
  });

  test("shows what is said of a wrong file, and how completion is installed", async () => {
    const [said, installed] = blocks.filter(({ language }) => language === "console");
    const folder = await makeProject({ manifest: {} });
    await writeFile(join(folder, "wrong.mjs"), blocks.find(({ title }) => title === "wrong.mjs")!.text);
    const [command, ...lines] = said!.text.split("\n");
    const [, name, value, args] = /^\$ (\w+)=(\w+) npx ukemi (.*)$/.exec(command!)!;
    const { code, stderr } = await runCli(args!.split(" "), { [name!]: value! }, { cwd: folder });
    expect([code, stderr]).toEqual([2, lines.join("\n")]);
    const { stdout } = await runCli(["completion", "--help"]);
    for (const line of installed!.text.trim().split("\n")) expect(stdout).toContain(line);
  });
});

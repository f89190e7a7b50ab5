// `npm test`: everything that must hold before a change lands, from a fresh clone with nothing installed.
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ensureBuilt } from "./build.mjs";
import { fetchDebianTools } from "./debian.mjs";
import { ensureInstalled } from "./install.mjs";
import { findPostgres, leftBehind, memoryFolder } from "./machine.mjs";
import { generatePrisma } from "./prisma.mjs";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));
ensureInstalled("all");

// every temporary file of the run goes below one folder, which must be empty at the end
const scratch = mkdtempSync(join(tmpdir(), "ukemi-run-"));
chmodSync(scratch, 0o755); // the servers of some tests run as another user
// but for what tests keep in memory, known by the beginning of its name
const memory = memoryFolder();
const inMemory = () =>
  readdirSync(memory)
    .filter((name) => name.startsWith("ukemi-"))
    .map((name) => join(memory, name));
const thereBefore = new Set(inMemory());
const { DATABASE_URL: givenDatabase, ...inherited } = process.env;
const baseEnv = { ...inherited, TMPDIR: scratch, FORCE_COLOR: process.stdout.isTTY ? "1" : "0" };
const totals = { passed: 0, failed: 0, skipped: 0 };
const failures = [];
const notRun = [];

function step(title, work) {
  const startedAt = performance.now();
  console.log(`\n── ${title} ${"─".repeat(Math.max(0, 90 - title.length))}`);
  let ok = false;
  try {
    ok = work();
  } catch (error) {
    console.error(error);
  }
  console.log(`${ok ? "ok" : "FAILED"}: ${title} (${((performance.now() - startedAt) / 1000).toFixed(1)} s)`);
  if (!ok) failures.push(title);
}

function command(args, env = {}) {
  const { status } = spawnSync(process.execPath, args, { stdio: "inherit", env: { ...baseEnv, ...env } });
  return status === 0;
}

const bin = (name, path) => join("node_modules", name, path);

function vitest(projects, env = {}) {
  const report = join(scratch, `vitest-${Math.random().toString(36).slice(2)}.json`);
  const ok = command(
    [
      bin("vitest", "vitest.mjs"),
      "run",
      ...projects.flatMap((project) => ["--project", project]),
      "--reporter=default",
      "--reporter=json",
      `--outputFile=${report}`,
    ],
    env,
  );
  if (!existsSync(report)) return false;
  const counts = JSON.parse(readFileSync(report, "utf8"));
  rmSync(report);
  totals.passed += counts.numPassedTests;
  totals.failed += counts.numFailedTests;
  totals.skipped += counts.numPendingTests + counts.numTodoTests;
  return ok;
}

/** The store's tests once more, on the PostgreSQL that the developer or the system has. */
async function onAnotherPostgres() {
  if (givenDatabase) {
    step("store tests on DATABASE_URL", () => vitest(["store"], { DATABASE_URL: givenDatabase }));
    return;
  }
  const found = findPostgres();
  if (!found) {
    notRun.push("store tests on a system PostgreSQL: none of version 15 or newer was found");
    return;
  }
  const { startEmbedded } = await import("../dist/storage/embedded/embedded.js");
  const data = mkdtempSync(join(memory, "ukemi-system-"));
  const server = await startEmbedded({ data, binaries: found.binaries });
  step(`store tests on PostgreSQL ${server.version} of this system`, () =>
    vitest(["store"], { DATABASE_URL: server.url }),
  );
  await server.stop();
  rmSync(data, { recursive: true, force: true });
}

notRun.push(...fetchDebianTools());
step("Prisma's client", generatePrisma);

step("format", () => command([bin("oxfmt", "bin/oxfmt"), "--check", "."]));
step("lint", () => command([bin("oxlint", "bin/oxlint"), "--type-aware", "--deny-warnings"]));
step("types", () => command([bin("typescript", "bin/tsc"), "-p", "tsconfig.json"]));
step("build", () => {
  ensureBuilt();
  return true;
});
step("dead code", () => command([bin("knip", "bin/knip.js")]));
step("package", () => command(["scripts/package.mjs"]));
step("unit tests", () => vitest(["unit"]));
step("tests on the embedded PostgreSQL", () => vitest(["store"]));
step("the command line", () => vitest(["cli"]));
await onAnotherPostgres();
step("faults, embedded server, frameworks", () => vitest(["faults"]));
step("nothing left behind", () => {
  const files = [
    ...readdirSync(scratch).map((name) => join(scratch, name)),
    ...inMemory().filter((path) => !thereBefore.has(path)),
  ];
  const left = [...files.map((path) => `file ${path}`), ...leftBehind(scratch)];
  for (const line of left) console.log(line);
  return left.length === 0;
});
rmSync(scratch, { recursive: true, force: true });

console.log("");
for (const line of notRun) console.log(`not run: ${line}`);
for (const title of failures) console.log(`failed: ${title}`);
// a step that is no test (format, lint, …) counts as one failure
console.log(
  `${totals.passed} passed, ${Math.max(totals.failed, failures.length)} failed, ${totals.skipped} skipped`,
);
process.exitCode = failures.length > 0 || (process.env.CI && notRun.length > 0) ? 1 : 0;

// Prisma's client for the examples is generated, not kept: its command line is fetched when the schema has changed.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const SCHEMA = "examples/databases/prisma/schema.prisma";
const CLIENT = "examples/databases/prisma/generated";
const STAMP = join(CLIENT, ".made-from");

/** Not among the dependencies: it is twice as large as all of them together, and needed once. */
const FOLDER = "node_modules/.cache/ukemi-prisma";

/** Generates what is missing or out of date. Returns true where the client is there. */
export function generatePrisma() {
  const { version } = JSON.parse(readFileSync("node_modules/@prisma/client/package.json", "utf8"));
  const wanted = createHash("sha256")
    .update(`${version}\n${readFileSync(SCHEMA)}`)
    .digest("hex");
  if (existsSync(STAMP) && readFileSync(STAMP, "utf8") === wanted) return true;
  console.log("Generating Prisma's client for the examples …");
  mkdirSync(FOLDER, { recursive: true });
  rmSync(CLIENT, { recursive: true, force: true });
  const install = ["install", "--prefix", FOLDER, "--no-save", "--ignore-scripts", "--no-audit", "--no-fund"];
  const made =
    run("npm", [...install, "--loglevel=error", `prisma@${version}`]) &&
    run(process.execPath, [
      join(FOLDER, "node_modules/prisma/build/index.js"),
      "generate",
      "--schema",
      SCHEMA,
    ]);
  if (made) writeFileSync(STAMP, wanted);
  return made;
}

/** Generating needs no engine; naming any file keeps Prisma from downloading the one for migrations. */
function run(command, args) {
  const env = {
    ...process.env,
    PRISMA_SCHEMA_ENGINE_BINARY: process.execPath,
    PRISMA_HIDE_UPDATE_MESSAGE: "1",
  };
  const { status, stdout, stderr } = spawnSync(command, args, { env, encoding: "utf8" });
  if (status !== 0) console.error(`${stdout}${stderr}`);
  return status === 0;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.chdir(resolve(fileURLToPath(new URL("..", import.meta.url))));
  process.exitCode = generatePrisma() ? 0 : 1;
}

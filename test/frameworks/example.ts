// Runs an example as a reader would: a folder of its own, the packed ukemi in its node_modules, a process of its own.
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, mkdtemp, readFile, rm, rmdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { onTestFinished } from "vitest";
import { SECRET } from "../support/server.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const run = promisify(execFile);

/** The command `next`. */
export const NEXT = join(ROOT, "node_modules/next/dist/bin/next");

const TSC = join(ROOT, "node_modules/typescript/bin/tsc");

/** An example that listens. */
export interface RunningExample {
  readonly url: string;
  /** Everything it has written so far, both streams. */
  output(): string;
  /** Asks it to end as a platform does; resolves with the exit code, or null where a signal ended it. */
  stop(): Promise<number | null>;
}

/** The text of a file below examples/. */
export function readExample(path: string): Promise<string> {
  return readFile(join(ROOT, "examples", path), "utf8");
}

/**
 * Copies a file or folder of examples/ to a new folder; git ignores it there, and the repository's packages are found.
 * Without one the folder has nothing but the packed ukemi.
 */
export async function unpackExample(path?: string): Promise<{ folder: string; remove: () => Promise<void> }> {
  const parent = join(ROOT, "examples/.next");
  await mkdir(parent, { recursive: true });
  const folder = await mkdtemp(join(parent, "run-"));
  if (path !== undefined) {
    await cp(join(ROOT, "examples", path), path.includes(".") ? join(folder, path) : folder, {
      recursive: true,
      filter: (file) => !/\.next$|node_modules$/.test(file),
    });
  }
  await writeFile(join(folder, "package.json"), `{ "type": "module" }\n`);
  for (const part of ["package.json", "dist", "migrations"]) {
    await cp(join(ROOT, part), join(folder, "node_modules/ukemi", part), { recursive: true });
  }
  return {
    folder,
    async remove() {
      await rm(folder, { recursive: true, force: true });
      await rmdir(parent).catch(() => {}); // another run may still have its folder there
    },
  };
}

/** Compiles single-file examples against the packed types of ukemi; returns the first one's script. */
export async function compileExample(folder: string, ...files: [string, ...string[]]): Promise<string> {
  const strict = ["--strict", "--exactOptionalPropertyTypes", "--verbatimModuleSyntax", "--skipLibCheck"];
  const target = ["--module", "nodenext", "--target", "es2023", "--types", "node", "--ignoreConfig"];
  await runIn(folder, [TSC, ...strict, ...target, "--rewriteRelativeImportExtensions", ...files]);
  return files[0].replace(/\.ts$/, ".js");
}

/** Runs `node …args` to its end; a failure carries all that it wrote. */
export async function runIn(folder: string, args: readonly string[]): Promise<void> {
  await run(process.execPath, args, { cwd: folder, env: quietEnv() }).catch(
    (error: { stdout: string; stderr: string }) => {
      throw new Error(`node ${args.join(" ")} failed:\n${error.stdout}${error.stderr}`);
    },
  );
}

/** Starts `node …args` in the folder, and waits until it names its URL. The process ends with the test at the latest. */
export async function startExample(
  folder: string,
  args: readonly string[],
  database: string,
): Promise<RunningExample> {
  const child = spawn(process.execPath, args, {
    cwd: folder,
    env: { ...quietEnv(), PORT: "0", DATABASE_URL: database, STRIPE_WEBHOOK_SECRET: SECRET },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  const ended = once(child, "close").then(() => child.exitCode);
  const stop = (signal: NodeJS.Signals) => {
    child.kill(signal);
    return ended;
  };
  onTestFinished(async () => void (await stop("SIGKILL")));
  const url = await new Promise<string>((resolve, reject) => {
    const take = (chunk: Buffer) => {
      output += chunk.toString();
      const found = /(?:listening on|Local:)\s+(http:\/\/[\w.]+:\d+)/.exec(output)?.[1];
      if (found !== undefined) resolve(found);
    };
    child.stdout.on("data", take);
    child.stderr.on("data", take);
    void ended.then((code) =>
      reject(new Error(`the example ended (${code}) before it listened:\n${output}`)),
    );
  });
  return { url, output: () => output, stop: () => stop("SIGTERM") };
}

/** Nothing of the test's own settings; and nothing is fetched from the network. */
function quietEnv(): Record<string, string> {
  return { PATH: process.env.PATH ?? "", HOME: tmpdir(), CI: "1", NEXT_TELEMETRY_DISABLED: "1" };
}

// A process of its own that holds an embedded server: something to kill.
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { EmbeddedOptions, EmbeddedPostgres } from "../../src/storage/embedded/embedded.ts";
import { dist } from "./support.ts";

/** A process of its own that starts the embedded server and keeps it until told to stop. */
export interface Starter {
  readonly process: ChildProcess;
  readonly pid: number;
  /** What `startEmbedded` gave, once it has. */
  readonly ready: Promise<Pick<EmbeddedPostgres, "url" | "pid" | "adopted" | "version">>;
  readonly exited: Promise<void>;
  /** Calls `stop()` in the process and lets it end. */
  stop(): Promise<void>;
}

interface StarterOptions extends EmbeddedOptions {
  readonly uid?: number;
  readonly env?: NodeJS.ProcessEnv;
}

const starterScript = `
  const { module, ...options } = JSON.parse(process.argv[1]);
  const { startEmbedded } = await import(module);
  process.on("SIGINT", () => undefined);
  try {
    const server = await startEmbedded(options);
    const { url, pid, adopted, version } = server;
    console.log(JSON.stringify({ url, pid, adopted, version }));
    process.stdin.on("end", async () => { await server.stop(); process.exit(0); }).resume();
  } catch (error) {
    console.log(JSON.stringify({ code: error.code, message: error.message }));
    process.exit(1);
  }`;

/** Spawns a starter; killed after the test. */
export function spawnStarter({ uid, env, ...options }: StarterOptions): Starter {
  const compiled = join(dist, "storage/embedded/embedded.js");
  if (!existsSync(compiled)) throw new Error("Build first: node_modules/.bin/tsc -p tsconfig.build.json");
  const argument = JSON.stringify({ module: compiled, ...options });
  const child = spawn(process.execPath, ["--input-type=module", "-e", starterScript, argument], {
    cwd: "/",
    detached: true,
    env: { ...process.env, ...env },
    stdio: ["pipe", "pipe", "inherit"],
    ...(uid === undefined ? {} : { uid, gid: uid }),
  });
  child.stdin.on("error", () => undefined);
  const exited = new Promise<void>((resolve) => child.on("exit", () => resolve()));
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await exited;
  });
  const ready = firstLine(child).then((line) => {
    const answer = JSON.parse(line);
    if (answer.code) throw Object.assign(new Error(answer.message), { code: answer.code });
    return answer;
  });
  ready.catch(() => undefined); // a test that does not look at it must not fail by it
  return {
    process: child,
    pid: child.pid ?? 0,
    ready,
    exited,
    async stop() {
      child.stdin.end();
      await exited;
    },
  };
}

function firstLine(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    child.stdout?.setEncoding("utf8").on("data", (more: string) => {
      text += more;
      if (text.includes("\n")) resolve(text.slice(0, text.indexOf("\n")));
    });
    child.on("exit", (code, signal) =>
      reject(new Error(`the starter ended early (${signal ?? code}): ${text}`)),
    );
  });
}

// A real `ukemi serve` in its own process, for tests that kill it.
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/** The built command line. */
export const BIN = fileURLToPath(new URL("../../dist/cli/bin.js", import.meta.url));

/** A server process. */
export interface ServerProcess {
  readonly url: string;
  readonly child: ChildProcess;
  /** Everything it has written so far, both streams. */
  output(): string;
  /** Sends the signal and waits for the end; resolves with the exit code, or null where a signal ended it. */
  kill(signal: NodeJS.Signals): Promise<number | null>;
}

/** The signing secret of every server that the tests start. */
export const SECRET = "whsec_test_0123456789abcdef";

/** Starts a server on a free port, or a worker, and waits until it says that it is ready. */
export async function startServerProcess(
  env: Readonly<Record<string, string>>,
  args: readonly string[] = [],
  command: "serve" | "work" = "serve",
): Promise<ServerProcess> {
  const child = spawn(process.execPath, [BIN, command, ...args], {
    env: { ...cleanEnv(), UKEMI_PORT: "0", STRIPE_WEBHOOK_SECRET: SECRET, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  const ended = once(child, "close").then(() => child.exitCode);
  const ready = new Promise<string>((resolve, reject) => {
    const take = (chunk: Buffer) => {
      output += chunk.toString();
      const ready = /(?:"url":"([^"]+)",)?"msg":"ready"/.exec(output);
      if (ready) resolve(ready[1] ?? "");
    };
    child.stdout.on("data", take);
    child.stderr.on("data", take);
    void ended.then((code) =>
      reject(new Error(`the server ended (${code}) before it was ready:\n${output}`)),
    );
  });
  return {
    url: await ready,
    child,
    output: () => output,
    kill(signal) {
      child.kill(signal);
      return ended;
    },
  };
}

/** Our own settings must not leak into the process under test. */
export function cleanEnv(): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) => !/^(?:UKEMI_|DATABASE_URL|STRIPE_|LOG_LEVEL|VITEST)/.test(name),
    ),
  );
}

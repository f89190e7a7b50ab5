// Runs the built command line in its own process.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { BIN, cleanEnv } from "./server.ts";

/** What a command said and how it ended. */
export interface CliRun {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly output: string;
}

/** Runs `ukemi` with these arguments and nothing of our own environment's settings. */
export async function runCli(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  options: { cwd?: string } = {},
): Promise<CliRun> {
  const child = spawn(process.execPath, [BIN, ...args], {
    env: { ...cleanEnv(), ...env },
    stdio: ["ignore", "pipe", "pipe"],
    ...options,
  });
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
  await once(child, "close");
  return { code: child.exitCode, stdout, stderr, output: stdout + stderr };
}

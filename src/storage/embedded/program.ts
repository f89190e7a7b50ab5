// Runs a short program to its end, as a given identity, and keeps what it said.
import { spawn } from "node:child_process";
import type { Identity } from "./identity.ts";

/** How a program ended. `code` is undefined where it could not be started or a signal ended it. */
export interface Ended {
  readonly code: number | undefined;
  readonly output: string;
  readonly errors: string;
}

/** A small environment: nothing of the application's (secrets, PG* variables) reaches PostgreSQL. */
export function environment(libraries: string | undefined): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = { PATH: process.env["PATH"] ?? "/usr/bin:/bin", LC_ALL: "C", TZ: "UTC" };
  if (libraries !== undefined) env["LD_LIBRARY_PATH"] = libraries;
  return env;
}

/** Never throws: a program that cannot be started has ended with the reason in `errors`. */
export function run(
  command: readonly string[],
  identity: Pick<Identity, "prefix" | "drop">,
  env: NodeJS.ProcessEnv,
): Promise<Ended> {
  const [program = "", ...args] = [...identity.prefix, ...command];
  return new Promise((resolve) => {
    let output = "";
    let errors = "";
    const failed = (error: unknown) =>
      resolve({ code: undefined, output, errors: `${errors}${String(error)}` });
    try {
      const child = spawn(program, args, {
        ...identity.drop,
        env,
        cwd: "/", // the caller's folder may be closed to the identity
        detached: true,
        stdio: ["ignore", "pipe", "pipe"],
      });
      child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
      child.stderr.setEncoding("utf8").on("data", (text: string) => (errors += text));
      child.on("error", failed);
      child.on("close", (code) => resolve({ code: code ?? undefined, output, errors }));
    } catch (error) {
      failed(error); // EPERM for a uid we may not become is thrown at once
    }
  });
}

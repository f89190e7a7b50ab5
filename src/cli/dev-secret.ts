// The signing secret that `ukemi dev` makes up, kept in the data folder so that `ukemi send` can sign with it.
import { randomBytes } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { UkemiError } from "../errors.ts";
import { makeFolder } from "../storage/embedded/folder.ts";

const FILE = "dev-secret";

/** Reads the secret of this data folder, or makes one. */
export async function devSecret(data: string): Promise<string> {
  const found = await readDevSecret(data);
  if (found !== undefined) return found;
  const secret = `whsec_${randomBytes(24).toString("hex")}`;
  try {
    await makeFolder(resolve(data));
    await writeFile(join(data, FILE), `${secret}\n`, { mode: 0o600 });
  } catch (error) {
    throw unusable(data, error);
  }
  return secret;
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

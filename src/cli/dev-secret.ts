// The signing secret that `ukemi dev` makes up, kept in the data folder so that `ukemi send` can sign with it.
import { randomBytes } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

const FILE = "dev-secret";

/** Reads the secret of this data folder, or makes one. */
export async function devSecret(data: string): Promise<string> {
  const found = await readDevSecret(data);
  if (found !== undefined) return found;
  await mkdir(data, { recursive: true });
  const secret = `whsec_${randomBytes(24).toString("hex")}`;
  await writeFile(join(data, FILE), `${secret}\n`, { mode: 0o600 });
  return secret;
}

/** Reads the secret of this data folder; undefined where `ukemi dev` never ran on it. */
export async function readDevSecret(data: string): Promise<string | undefined> {
  const text = await readFile(join(data, FILE), "utf8").catch(() => "");
  return text.trim() || undefined;
}

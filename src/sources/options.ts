// Checking a source's options at construction: a source that could never verify, or verifies anything, must not start.
import { UkemiError } from "../errors.ts";
import { createMac, type MacAlgorithm } from "./mac.ts";
import { fingerprint } from "./signature.ts";
import type { Secret } from "./signature.ts";

/** Turns a secret's text into its key, or says what is wrong with it (without quoting it). */
export type ReadKey = (text: string) => Buffer | { readonly wrong: string };

/** The text itself is the key. */
export const textKey: ReadKey = (text) => Buffer.from(text);

/** Reads the secrets, or throws `invalid_option` with what to do. The message never quotes a secret. */
export function readSecrets(
  source: string,
  secrets: readonly string[],
  readKey: ReadKey,
  algorithm: MacAlgorithm = "sha256",
): readonly Secret[] {
  if (!Array.isArray(secrets) || secrets.length === 0) {
    throw invalidOption(source, "secrets is empty; pass at least one signing secret");
  }
  return secrets.map((text: unknown, index) => {
    const name = `secrets[${index}]`;
    if (typeof text !== "string") {
      throw invalidOption(source, `${name} is not set; is the environment variable it is read from missing?`);
    }
    if (text.trim() === "")
      throw invalidOption(source, `${name} is blank; is the environment variable it is read from missing?`);
    if (text.trim() !== text) {
      throw invalidOption(source, `${name} has white space or a newline around it; remove it`);
    }
    const key = readKey(text);
    if (!Buffer.isBuffer(key)) throw invalidOption(source, `${name} ${key.wrong}`);
    return { mac: createMac(algorithm, key), fingerprint: fingerprint(text) };
  });
}

/** Reads a tolerance in seconds; there is no value that turns the check off. */
export function readTolerance(source: string, toleranceSeconds = 300): number {
  if (Number.isSafeInteger(toleranceSeconds) && toleranceSeconds > 0) return toleranceSeconds;
  throw invalidOption(source, "toleranceSeconds must be a whole number of seconds above 0");
}

/** Reads a header's name in lower case, as `node:http` gives it. */
export function readHeaderName(source: string, option: string, name: string): string {
  if (typeof name === "string" && /^[A-Za-z0-9-]+$/.test(name)) return name.toLowerCase();
  throw invalidOption(source, `${option} is not the name of an HTTP header`);
}

/** Reads a dotted path into a JSON body, such as `data.organiser.id`. */
export function readPath(source: string, option: string, path: string): string {
  if (typeof path === "string" && /^[^.]+(\.[^.]+)*$/.test(path)) return path;
  throw invalidOption(
    source,
    `${option} is not a path; write the keys with dots between them, as in data.id`,
  );
}

/** An `invalid_option` error that names the source. */
export function invalidOption(source: string, problem: string): UkemiError {
  return new UkemiError("invalid_option", `${source}: ${problem}`);
}

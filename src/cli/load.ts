// Loading the configuration file, TypeScript included, without a build step; and the words for what goes wrong.
import { spawnSync } from "node:child_process";
import { relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { OPTION_NAMES, OPTIONS } from "../options.ts";
import { framesOf } from "./stack.ts";

/** What the file exports by default; undefined where it exports nothing so. */
export async function importDefault(file: string): Promise<unknown> {
  const module = /\.[cm]?ts$/.test(file)
    ? await importTypeScript(file)
    : await import(pathToFileURL(file).href);
  const exported = module as { readonly default?: unknown; readonly __esModule?: boolean };
  if ("default" in exported) return exported.default;
  // what CommonJS exports is the default itself
  return isNamespace(exported) ? undefined : exported;
}

/** On every Node by the same means, so that one file works on all of them: Node's own is newer, and can do less. */
async function importTypeScript(file: string): Promise<unknown> {
  const { createJiti } = await import("jiti");
  return createJiti(pathToFileURL(file).href, { fsCache: false, interopDefault: false }).import(file);
}

function isNamespace(exported: object & { readonly __esModule?: boolean }): boolean {
  return exported.__esModule === true || Object.prototype.toString.call(exported) === "[object Module]";
}

/** A message longer than this is a page, not a message. */
const LINES_MAX = 4;

/** What went wrong in a file of the application, and where, on a line or few. `path` is its configuration file. */
export function explainFailure(error: unknown, path: string): string {
  const { said, place } = errorOf(error, path);
  const lines = said
    .split("\n")
    .map((line) => line.trimEnd())
    .filter((line) => line !== "")
    .slice(0, LINES_MAX);
  return withoutSecrets(`${lines.join("\n")}${place === undefined ? "" : ` (${place})`}`);
}

interface Explained {
  readonly said: string;
  /** File and line. */
  readonly place: string | undefined;
}

function errorOf(error: unknown, path: string): Explained {
  if (!(error instanceof Error)) return { said: String(error), place: undefined };
  // jiti puts the place of a syntax error behind its message
  const parsed = /^ParseError: ([^\n]*?)\s*\n\s*(\S.*:\d+):\d+$/.exec(error.message);
  if (parsed) return { said: `SyntaxError: ${parsed[1]}`, place: shorten(parsed[2]!) };
  if (error instanceof SyntaxError) {
    return { said: `SyntaxError: ${error.message}`, place: placeOfSyntaxError(path) ?? placeOf(error) };
  }
  const name = "remedy" in error ? "" : `${error.name}: `; // our own errors are sentences
  const message = error.message.replace(/\nRequire stack:[^]*$/, "");
  return { said: `${name}${message}`, place: placeOf(error) };
}

/** Where an error came from: the first line that is the application's own. */
function placeOf(error: Error): string | undefined {
  const places = framesOf(error.stack ?? "").flatMap((frame) => {
    const place = /((?:file:\/\/)?\/[^()]+:\d+):\d+\)?$/.exec(frame)?.[1];
    return place === undefined || place.includes("node_modules") ? [] : [place];
  });
  const found = places[0];
  return found === undefined ? undefined : shorten(found);
}

/** Node tells the place of a syntax error only on its standard error. */
function placeOfSyntaxError(path: string): string | undefined {
  const { stderr } = spawnSync(process.execPath, ["--check", path], { encoding: "utf8" });
  const found = /^(?:file:\/\/)?(\/.*:\d+)$/m.exec(stderr)?.[1];
  return found === undefined ? undefined : shorten(found);
}

/** A file and line as one would name them here. */
function shorten(place: string): string {
  const file = place.startsWith("file://") ? fileURLToPath(place) : place;
  const near = relative(process.cwd(), file);
  return near.startsWith("..") ? file : near;
}

/** An application's own message may quote what it read. */
function withoutSecrets(text: string): string {
  const values = OPTION_NAMES.flatMap((name) => {
    const { env, secret } = OPTIONS[name] as { readonly env?: string; readonly secret?: true };
    return secret && env ? (process.env[env]?.split(",") ?? []) : [];
  }).filter((value) => value.length > 3);
  const known = values.reduce((rest, value) => rest.replaceAll(value, "***"), text);
  return known
    .replaceAll(/\b((?:whsec|[srp]k_(?:live|test))_)[\w+/=-]+/g, "$1***")
    .replaceAll(/(\w+:\/\/[^\s:@/]*:)[^\s@/]+@/g, "$1***@");
}

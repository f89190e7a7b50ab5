// LiquidJS as mail needs it: nothing is read from disk, nothing is missing in silence, and no error repeats what it was given.
import { Liquid, LiquidError, type Template } from "liquidjs";
import { FilterFault, filtersFor } from "./template-filters.ts";

/** Something is wrong with a template, or with what it was given. Names places and variables, never values. */
export class TemplateError extends Error {
  override readonly name = "TemplateError";
}

/** A source with the file it comes from, as it is named in messages. */
export interface TemplateSource {
  readonly file: string;
  readonly source: string;
}

/** Makes one text of one kind, in one locale. */
export interface TemplateEngine {
  /** Throws a TemplateError where the source cannot be understood. */
  compile(source: TemplateSource): (data: Readonly<Record<string, unknown>>) => string;
}

export interface EngineOptions {
  readonly locale: string;
  readonly timeZone: string;
  /** Whether what is put in is escaped, so that it cannot become markup. */
  readonly isHtml: boolean;
  /** What `{% render "name" %}` finds, by name. */
  readonly parts: ReadonlyMap<string, TemplateSource>;
}

/** Limits for what data may make of a template. */
const RENDER_MS = 1000;
const MEMORY_MAX = 10_000_000;

/** The parts are compiled too: a fault in one of them is found as early as any other. */
export function createTemplateEngine({ locale, timeZone, isHtml, parts }: EngineOptions): TemplateEngine {
  const engine = new Liquid({
    // in memory: there is no path that a template could name
    templates: Object.fromEntries([...parts].map(([name, { source }]) => [name, source])),
    strictVariables: true,
    strictFilters: true,
    // what may be missing is asked for by if, or given a default
    lenientIf: true,
    cache: true,
    renderLimit: RENDER_MS,
    memoryLimit: MEMORY_MAX,
    outputEscape: (value) => (isHtml ? escapeHtml(shown(value)) : shown(value)),
  });
  for (const [name, filter] of Object.entries(filtersFor(locale, timeZone)))
    engine.registerFilter(name, filter);
  const files = new Map([...parts.values()].map(({ source, file }) => [source, file]));

  /** Does it, and says where it went wrong. */
  function at<T>(file: string, work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw new TemplateError(describe(error, (source) => files.get(source) ?? file));
    }
  }

  for (const { source, file } of parts.values()) at(file, () => engine.parse(source, file));
  return {
    compile({ source, file }) {
      const template = at(file, () => engine.parse(source, file));
      requireParts(engine, template, [{ source, file }, ...parts.values()]);
      return (data) => at(file, () => String(engine.renderSync(template, data)));
    },
  };
}

/** Follows every part that is named, so that one that does not exist is not found by a reader. */
function requireParts(engine: Liquid, template: Template[], sources: readonly TemplateSource[]): void {
  try {
    engine.analyzeSync(template);
  } catch (error) {
    // it says what it looked for, not where: a name that stands in a source, for others are not followed
    const [, name = ""] = /lookup "([^"]*)"/.exec(error instanceof Error ? error.message : "") ?? [];
    const at = sources.find(({ source }) => source.includes(name)) ?? sources[0]!;
    const line = at.source.slice(0, Math.max(0, at.source.indexOf(name))).split("\n").length;
    throw new TemplateError(`${at.file}, line ${line}: there is no part ${name}`, { cause: error });
  }
}

/** What can be shown as it is. A null, a list or an object in a mail is a mistake that its reader would see. */
function shown(value: unknown): string {
  if (typeof value === "string" || typeof value === "number" || typeof value === "bigint") return `${value}`;
  throw new FilterFault(
    value === null || value === undefined
      ? "there is no value (give it a default where that is meant)"
      : "the value is neither text nor a number",
  );
}

const MARKUP: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&#34;",
  "'": "&#39;",
};

function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (sign) => MARKUP[sign]!);
}

/** Place and reason. LiquidJS' own words are used only for what it found in the source: others may hold values. */
function describe(error: unknown, fileOf: (source: string) => string): string {
  if (!LiquidError.is(error)) return `${fileOf("")}: it cannot be rendered`;
  const { token, originalError: cause } = error;
  const [line] = token.getPosition();
  const place = `${fileOf(token.input)}, line ${line}`;
  if (error.name === "UndefinedVariableError") return `${place}: the variable ${token.getText()} is missing`;
  if (error.name === "ParseError" || error.name === "TokenizationError") {
    return `${place}: ${(cause ?? error).message.replace(/, (?:file|line):.*$/s, "")}`;
  }
  const reason = cause instanceof FilterFault ? cause.message : "it cannot be rendered";
  return `${place}: ${token.getText()}: ${reason}`;
}

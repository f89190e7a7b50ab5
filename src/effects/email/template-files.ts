// The files of mail templates: where they lie, and what each is for.
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { UkemiError } from "../../errors.ts";
import type { TemplateSource } from "./template-engine.ts";

/** What a mail is made of, each in a file of its own. */
export type TemplatePart = "subject" | "text" | "html";

/** The files of one template in one locale. */
export interface LocaleFiles {
  readonly locale: string;
  readonly subject: TemplateSource;
  readonly text: TemplateSource;
  readonly html?: TemplateSource;
}

export interface TemplateFiles {
  /** By the template's name. */
  readonly templates: ReadonlyMap<string, readonly LocaleFiles[]>;
  /** By the name that `{% render %}` knows them by. */
  readonly parts: ReadonlyMap<string, TemplateSource>;
}

/** Where what several templates share lies. */
const PARTS_FOLDER = "_parts";
const NAME = /^[a-z0-9][a-z0-9_-]*$/i;
const FILE = /^([A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8})*)\.(subject|text|html)\.liquid$/;
const PART_FILE = /^([a-z0-9][a-z0-9_.-]*)\.liquid$/i;

/**
 * Reads `<name>/<locale>.subject.liquid`, `….text.liquid` and, where there is one, `….html.liquid`; and `_parts/<part>.liquid`.
 * Anything else that lies there is a slip of the pen, and is told.
 */
export async function readTemplateFiles(folder: string): Promise<TemplateFiles> {
  const templates = new Map<string, LocaleFiles[]>();
  const parts = new Map<string, TemplateSource>();
  for (const name of await namesIn(folder)) {
    // a README may lie beside the templates
    if (/\.\w+$/.test(name) && !name.endsWith(".liquid")) continue;
    if (name.endsWith(".liquid"))
      throw wrong(`${name}: the files of a template lie in a folder with its name.`);
    const files = await namesIn(join(folder, name));
    if (name === PARTS_FOLDER) {
      for (const file of files) parts.set(partName(file), await readSource(folder, `${name}/${file}`));
    } else {
      if (!NAME.test(name)) throw wrong(`${name}: a template's name is made of letters, digits, - and _.`);
      templates.set(name, await readLocales(folder, name, files));
    }
  }
  if (templates.size === 0) throw wrong(`There is no template in ${folder}.`);
  return { templates, parts };
}

async function readLocales(folder: string, name: string, files: readonly string[]): Promise<LocaleFiles[]> {
  const found = new Map<string, Partial<Record<TemplatePart, TemplateSource>>>();
  for (const file of files) {
    const [, locale, part] = FILE.exec(file) ?? [];
    if (locale === undefined || part === undefined) {
      throw wrong(
        `${name}/${file}: a file of a template is named <locale>.subject.liquid, <locale>.text.liquid or <locale>.html.liquid.`,
      );
    }
    const source = await readSource(folder, `${name}/${file}`);
    found.set(locale, { ...found.get(locale), [part]: source });
  }
  return [...found].map(([locale, { subject, text, html }]) => {
    if (!subject || !text) {
      throw wrong(`${name}: ${locale}.${subject ? "text" : "subject"}.liquid is missing.`);
    }
    return { locale, subject, text, ...(html && { html }) };
  });
}

function partName(file: string): string {
  const [, name] = PART_FILE.exec(file) ?? [];
  if (name === undefined) throw wrong(`${PARTS_FOLDER}/${file}: a part is named <part>.liquid.`);
  return name;
}

/** Without what editors and systems leave behind. */
async function namesIn(folder: string): Promise<string[]> {
  try {
    const names = await readdir(folder);
    return names.filter((name) => !name.startsWith(".")).toSorted();
  } catch (cause) {
    throw wrong(`The folder of mail templates ${folder} cannot be read.`, cause);
  }
}

async function readSource(folder: string, file: string): Promise<TemplateSource> {
  try {
    return { file, source: await readFile(join(folder, file), "utf8") };
  } catch (cause) {
    throw wrong(`The mail template ${file} cannot be read.`, cause);
  }
}

/** What is wrong with the templates is found as they are loaded, and stops whoever loads them. */
export function wrong(message: string, cause?: unknown): UkemiError {
  return new UkemiError("invalid_option", message, {
    ...(cause !== undefined && { cause }),
    remedy: "Correct the mail templates, then start again.",
  });
}

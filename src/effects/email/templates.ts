// Mail templates: read and compiled once, so that what is wrong with them is known before there is anything to send.
import { didYouMean } from "../../suggest.ts";
import { createTemplateEngine, TemplateError, type EngineOptions } from "./template-engine.ts";
import { readTemplateFiles, wrong, type LocaleFiles } from "./template-files.ts";

export interface TemplateOptions {
  /** In which a reader gets what is not there in a language of theirs; every template must have it. @default "en" */
  readonly fallbackLocale?: string;
  /** In which the filters show dates and times that name none. @default "UTC" */
  readonly timeZone?: string;
}

/** What a mail says. */
export interface RenderedMail {
  readonly subject: string;
  readonly text: string;
  readonly html?: string;
}

/** Templates that are ready. */
export interface Templates {
  readonly names: readonly string[];
  /** Throws a {@link TemplateError} that names the file and what is missing in the data, and none of its values. */
  render(name: string, request: RenderRequest): RenderedMail;
}

export interface RenderRequest {
  /** Such as `ja` or `ja-JP`, which gets `ja` where there is nothing nearer. */
  readonly locale: string;
  readonly data: Readonly<Record<string, unknown>>;
}

type Render = (data: Readonly<Record<string, unknown>>) => RenderedMail;

/** Reads a folder of templates (see the guide on mail). Rejects where a file is missing or cannot be understood. */
export async function loadTemplates(
  folder: string,
  { fallbackLocale = "en", timeZone = "UTC" }: TemplateOptions = {},
): Promise<Templates> {
  requireZone(timeZone);
  const { templates: files, parts } = await readTemplateFiles(folder);
  const templates = new Map<string, ReadonlyMap<string, Render>>();
  for (const [name, locales] of files) {
    if (!locales.some(({ locale }) => locale === fallbackLocale)) {
      throw wrong(`${name}: the fallback locale ${fallbackLocale} is missing.`);
    }
    const compiled = locales.map((one) => [one.locale, compile(one, { timeZone, parts })] as const);
    templates.set(name, new Map(compiled));
  }
  const names = [...templates.keys()];

  return {
    names,
    render(name, { locale, data }) {
      const locales = templates.get(name);
      if (!locales) throw new TemplateError(`There is no mail template ${name}${didYouMean(name, names)}`);
      const render = nearestTo(locale, locales) ?? locales.get(fallbackLocale)!;
      return render(data);
    },
  };
}

function requireZone(timeZone: string): void {
  try {
    new Intl.DateTimeFormat("en", { timeZone });
  } catch (cause) {
    throw wrong(`There is no time zone ${timeZone}: one is named like Asia/Tokyo.`, cause);
  }
}

/** `zh-Hant-TW`, then `zh-Hant`, then `zh`. */
function nearestTo(locale: string, locales: ReadonlyMap<string, Render>): Render | undefined {
  const words = locale.split(/[-_]/);
  for (let length = words.length; length > 0; length -= 1) {
    const render = locales.get(words.slice(0, length).join("-"));
    if (render) return render;
  }
  return undefined;
}

function compile(files: LocaleFiles, shared: Pick<EngineOptions, "timeZone" | "parts">): Render {
  try {
    const plain = createTemplateEngine({ ...shared, locale: files.locale, isHtml: false });
    const markup = createTemplateEngine({ ...shared, locale: files.locale, isHtml: true });
    const subject = plain.compile(files.subject);
    const text = plain.compile(files.text);
    const html = files.html && markup.compile(files.html);
    return (data) => ({
      subject: oneLine(subject(data), files.subject.file),
      text: text(data),
      ...(html && { html: html(data) }),
    });
  } catch (error) {
    if (error instanceof TemplateError) throw wrong(`Mail template ${error.message}.`, error);
    throw error;
  }
}

/** A line break in a subject would begin another header. The one at the file's end is not meant. */
function oneLine(rendered: string, file: string): string {
  const subject = rendered.trim();
  if (subject === "") throw new TemplateError(`${file}: the subject is empty`);
  if (/[\p{Cc}\u2028\u2029]/u.test(subject)) {
    throw new TemplateError(`${file}: the subject has a line break or another control character`);
  }
  return subject;
}

import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { loadTemplates, type TemplateOptions, type Templates } from "./templates.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "ukemi-templates-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function load(
  files: Readonly<Record<string, string>>,
  options: TemplateOptions = { fallbackLocale: "ja" },
): Promise<Templates> {
  for (const [file, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await writeFile(join(folder, file), content);
  }
  return loadTemplates(folder, options);
}

/** A template that consists of one text. */
const ONE = (text: string) => ({ "note/ja.subject.liquid": "件名\n", "note/ja.text.liquid": text });

async function render(text: string, data: Readonly<Record<string, unknown>>): Promise<string> {
  const templates = await load(ONE(text));
  return templates.render("note", { locale: "ja", data }).text;
}

const REFUND = {
  "refund/ja.subject.liquid": "{{ amount | money: currency }} を返金しました\n",
  "refund/ja.text.liquid": '{{ name }} 様\n{{ at | date: "long", "Asia/Tokyo" }}に返金しました。\n',
  "refund/ja.html.liquid": '<p>{{ name }} 様</p>{% render "footer", shop: shop %}',
  "refund/en.subject.liquid": "We refunded {{ amount | money: currency }}",
  "refund/en.text.liquid": 'Dear {{ name }}, on {{ at | date: "long", "Asia/Tokyo" }}.',
  "_parts/footer.liquid": "<footer>{{ shop }}</footer>",
};
const DATA = {
  name: "<太郎> & co.",
  amount: 12_000,
  currency: "jpy",
  at: "2026-11-15T15:30:00Z",
  shop: "A&B",
};

describe("a template", () => {
  test("is rendered in the reader's language, escaped in HTML and nowhere else", async () => {
    const templates = await load(REFUND);
    expect(templates.names).toEqual(["refund"]);
    expect(templates.render("refund", { locale: "ja", data: DATA })).toEqual({
      subject: "￥12,000 を返金しました",
      text: "<太郎> & co. 様\n2026年11月16日に返金しました。\n",
      html: "<p>&lt;太郎&gt; &amp; co. 様</p><footer>A&amp;B</footer>",
    });
    expect(templates.render("refund", { locale: "en-GB", data: DATA })).toEqual({
      subject: "We refunded ¥12,000",
      text: "Dear <太郎> & co., on November 16, 2026.",
    });
  });

  test("falls back to the locale that every template has", async () => {
    const templates = await load(REFUND);
    for (const locale of ["fr", "ja-JP", "ja_JP", ""]) {
      expect(templates.render("refund", { locale, data: DATA }).subject).toContain("返金");
    }
  });

  test("whose variable is missing in one language only fails in that one, and names its file", async () => {
    const templates = await load({ ...REFUND, "refund/ja.text.liquid": "{{ office }} {{ name }}" });
    const render = (locale: string) => templates.render("refund", { locale, data: DATA });
    expect(render("en").text).toContain("Dear");
    expect(() => render("ja")).toThrow(/refund\/ja\.text\.liquid.*office/);
  });

  test("that does not exist is told, with the one that was meant", async () => {
    const templates = await load(REFUND);
    expect(() => templates.render("refunds", { locale: "ja", data: {} })).toThrow("did you mean refund?");
  });
});

describe("what is wrong with a file is found as it is loaded", () => {
  test.each([
    ["{% if a %}", "note/ja.text.liquid, line 1: tag {% if a %} not closed"],
    ["a\nb {{ a", "note/ja.text.liquid, line 2: output"],
    ["a\n{% bogus %}", 'note/ja.text.liquid, line 2: tag "bogus" not found'],
    ["{{ a | bogus }}", "note/ja.text.liquid, line 1: undefined filter: bogus"],
    ["\n\n{% render 'nothing' %}", "note/ja.text.liquid, line 3: there is no part nothing"],
    ["{% render '../../etc/passwd' %}", "note/ja.text.liquid, line 1"],
    ["{% include '/etc/passwd' %}", "note/ja.text.liquid, line 1"],
  ])("%s", async (text, message) => {
    await expect(load(ONE(text))).rejects.toMatchObject({
      code: "invalid_option",
      message: expect.stringContaining(message),
    });
  });

  test.each<[Readonly<Record<string, string>>, string]>([
    [{ "note/ja.subject.liquid": "x" }, "note: ja.text.liquid is missing"],
    [{ "note/ja.text.liquid": "x" }, "note: ja.subject.liquid is missing"],
    [{ ...ONE("x"), "note/ja.txt.liquid": "x" }, "note/ja.txt.liquid: a file of a template is named"],
    [{ ...ONE("x"), "two words/ja.text.liquid": "x" }, "two words: a template's name"],
    [{ ...ONE("x"), "_parts/foot.html": "x" }, "_parts/foot.html: a part is named"],
    [{ ...ONE("x"), "_parts/foot.liquid": "\n{% if %}" }, "_parts/foot.liquid, line 2"],
    [
      { "note/en.subject.liquid": "x", "note/en.text.liquid": "x" },
      "note: the fallback locale ja is missing",
    ],
    [{ ...ONE("x"), "ja.text.liquid": "x" }, "ja.text.liquid: the files of a template lie in a folder"],
    [{ "README.md": "x" }, "There is no template"],
  ])("%o", async (files, message) => {
    await expect(load(files)).rejects.toMatchObject({
      code: "invalid_option",
      message: expect.stringContaining(message),
    });
  });

  test("so is a folder that is not there, and a time zone that is none", async () => {
    await expect(loadTemplates(join(folder, "none"))).rejects.toMatchObject({ code: "invalid_option" });
    await expect(load(ONE("x"), { timeZone: "Tokyo" })).rejects.toThrow("There is no time zone Tokyo");
  });
});

describe("what is wrong with the data is told before anything is sent, and none of it is repeated", () => {
  test.each<[string, Readonly<Record<string, unknown>>, string]>([
    ["a\n{{ order.id }}", {}, "note/ja.text.liquid, line 2: the variable order.id is missing"],
    ["{{ order.id }}", { order: {} }, "the variable order.id is missing"],
    ["{{ order.id }}", { order: { id: null } }, "{{ order.id }}: there is no value"],
    ["{{ order }}", { order: { canary: 1 } }, "{{ order }}: the value is neither text nor a number"],
    ["{{ map[key] }}", { map: {}, key: "canary" }, "the variable map[key] is missing"],
    ["{{ a.constructor }}", { a: {} }, "the variable a.constructor is missing"],
    ["{% for one in list %}{{ one }}{% endfor %}", {}, "the variable list is missing"],
    ["{% include name %}", { name: "canary" }, "note/ja.text.liquid, line 1"],
    ["{{ a | money: 'jpy' }}", { a: "canary" }, "money takes a whole number"],
    ["{{ a | money: 'jpy' }}", { a: 1.5 }, "money takes a whole number"],
    ["{{ 1 | money: a }}", { a: "canary" }, "money needs a currency"],
    ["{{ 1 | money }}", {}, "money needs a currency"],
    ["{{ a | date }}", { a: "canary" }, "a date is a Date"],
    ["{{ a | date }}", { a: 1_760_000_000 }, "a date is a Date"],
    ["{{ '2026-11-16' | date: a }}", { a: "canary" }, "a date is shown in one of"],
    ["{{ '2026-11-16T00:00:00Z' | date: 'long', a }}", { a: "canary" }, "a time zone is named"],
  ])("%s with %o", async (text, data, message) => {
    const failure = await render(text, data).then(
      () => undefined,
      (error: unknown) => error,
    );
    expect(failure).toMatchObject({ name: "TemplateError", message: expect.stringContaining(message) });
    expect(String((failure as Error).stack)).not.toContain("canary");
  });

  test("in a part, the part's file is named", async () => {
    const templates = await load({ ...ONE('{% render "foot" %}'), "_parts/foot.liquid": "\n{{ shop }}" });
    expect(() => templates.render("note", { locale: "ja", data: { shop: "x" } })).toThrow(
      "_parts/foot.liquid, line 2: the variable shop is missing",
    );
  });

  test("what may be missing is asked for, or given a default", async () => {
    expect(await render("{% if note %}{{ note }}{% endif %}{{ name | default: 'お客' }}様", {})).toBe(
      "お客様",
    );
  });

  test.each(["a\r\nBcc: canary@example.jp", "a\nb", "a\u0000b", "a\u2028b", " "])(
    "a subject is one line: %j",
    async (name) => {
      const templates = await load({ ...ONE("x"), "note/ja.subject.liquid": "{{ name }}\n" });
      expect(() => templates.render("note", { locale: "ja", data: { name } })).toThrow(
        /^note\/ja\.subject\.liquid: the subject (?:has|is)/,
      );
    },
  );
});

describe("filters", () => {
  test.each([
    ["{{ 1980 | money: 'JPY' }}", "￥1,980"],
    ["{{ 1980 | money: 'krw' }}", "₩1,980"],
    ["{{ 1980 | money: 'usd' }}", "$19.80"],
    ["{{ -5 | money: 'usd' }}", "-$0.05"],
    ["{{ 1980 | money: 'kwd' }}", "KWD\u00a01.980"],
    ["{{ 9007199254740991 | money: 'usd' }}", "$90,071,992,547,409.91"],
    ["{{ '2026-11-16' | date: 'long', 'America/New_York' }}", "2026年11月16日"],
    ["{{ '2026-11-16T00:30:00+09:00' | date: 'full', 'Asia/Tokyo' }}", "2026年11月16日月曜日"],
    ["{{ '2026-11-16T00:30:00+09:00' | date }}", "2026年11月15日"],
    ["{{ '2026-11-16T00:30:00+09:00' | time: 'short', 'Asia/Tokyo' }}", "0:30"],
  ])("%s is %s", async (text, shown) => {
    expect(await render(text, {})).toBe(shown);
  });
});

// A Ukemi that sends mail to a real SMTP server on loopback, by templates of its own.
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { UkemiOptions } from "../../src/ukemi.ts";
import { createDatabase } from "./database.ts";
import { startSmtpInbox, type SmtpInboxOptions } from "./smtp-inbox.ts";
import { makeUkemi } from "./work.ts";

const TEMPLATES = {
  "receipt/en.subject.liquid": "Receipt {{ number }}",
  "receipt/en.text.liquid": "Thank you, {{ name }}. You paid {{ amount | money: 'jpy' }}.\n",
  "receipt/en.html.liquid": "<p>Thank you, {{ name }}.</p>\n",
  "receipt/ja.subject.liquid": "領収書 {{ number }}",
  "receipt/ja.text.liquid": "{{ name }} 様、{{ amount | money: 'jpy' }} を受領しました。\n",
};

/** What the template `receipt` needs. */
export const RECEIPT = { number: 7, name: "Taro <b>", amount: 1234 };

/** Writes the templates to a folder that is removed when the test ends. */
export async function writeTemplates(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "ukemi-mails-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  for (const [file, text] of Object.entries(TEMPLATES)) {
    await mkdir(join(folder, file, ".."), { recursive: true });
    await writeFile(join(folder, file), text);
  }
  return folder;
}

/** A database, an inbox and a Ukemi between them; `login` is a user and password, such as `shop:secret@`. */
export async function startMailWorld(
  inboxOptions: SmtpInboxOptions = {},
  options: Partial<UkemiOptions> = {},
  login = "",
) {
  const inbox = await startSmtpInbox(inboxOptions);
  onTestFinished(() => inbox.stop());
  const database = await createDatabase();
  const made = makeUkemi(database.url, {
    smtpUrl: inbox.url.replace("://", `://${login}`),
    mailFrom: "Shop <shop@example.com>",
    mailTemplates: await writeTemplates(),
    mailGapMs: 0,
    mailPerSecond: 1000,
    ...options,
  });
  return { ...database, ...made, inbox };
}

import { createServer, type AddressInfo, type Server } from "node:net";
import { once } from "node:events";
import { afterEach, describe, expect, test } from "vitest";
import {
  startSmtpInbox,
  type InboxAct,
  type InboxPlace,
  type SmtpInbox,
  type SmtpInboxOptions,
} from "../../../test/support/smtp-inbox.ts";
import { until } from "../../../test/support/until.ts";
import type { CallLimits } from "../attempt.ts";
import { smtp, type SmtpOptions } from "./smtp.ts";
import type { Mail, MailTransport } from "./transport.ts";

const MAIL: Mail = {
  effect: "0190b6c2-0000-7000-8000-000000000001",
  messageId: "<0190b6c2-0000-7000-8000-000000000001@shop.example>",
  to: "canary.taro@example.jp",
  from: "お店 <shop@shop.example>",
  subject: "ご予約の確認",
  text: "ありがとうございます。\r\n.\r\n終わり",
  html: "<p>ありがとうございます。</p>",
};
const LIMITS: CallLimits = { timeoutMs: 30_000, signal: new AbortController().signal };

const open: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close();
});

async function inboxWith(options: SmtpInboxOptions = {}): Promise<SmtpInbox> {
  const inbox = await startSmtpInbox(options);
  open.push(() => inbox.stop());
  return inbox;
}

function transportTo(url: string, options: Omit<SmtpOptions, "url"> = {}): MailTransport {
  const transport = smtp({ url, ...options });
  open.push(() => transport.close());
  return transport;
}

/** Does so the first time that the place is reached. */
function onceAt(place: InboxPlace, act: InboxAct): SmtpInboxOptions {
  let isDone = false;
  return {
    onStep({ at }) {
      if (isDone || at !== place) return undefined;
      isDone = true;
      return act;
    },
  };
}

const say = (code: number, text: string) => ({ code, text });

describe("a mail over SMTP", () => {
  test("arrives once, with its Message-ID, its effect and all its text", async () => {
    const inbox = await inboxWith();
    const result = await transportTo(inbox.url).send(MAIL, LIMITS);
    expect(result).toMatchObject({ is: "done", receipt: { response: expect.stringMatching(/^250 /) } });
    expect(inbox.mails).toHaveLength(1);
    const [mail] = inbox.mails;
    expect(mail).toMatchObject({ from: "shop@shop.example", to: [MAIL.to] });
    expect(mail!.headers).toMatchObject({ "message-id": MAIL.messageId, "x-ukemi-effect": MAIL.effect });
    const [plain] = /(?<=base64\r\n\r\n)[\w+/=\r\n]+/.exec(mail!.raw) ?? [];
    expect(Buffer.from(plain ?? "", "base64").toString("utf8")).toContain("終わり");
  });

  test("goes over a connection that an earlier one left, and leaves nothing behind on it", async () => {
    const inbox = await inboxWith();
    const transport = transportTo(inbox.url);
    const warnings: Error[] = [];
    const onWarning = (warning: Error) => warnings.push(warning);
    process.on("warning", onWarning);
    open.push(async () => process.off("warning", onWarning));
    for (let round = 0; round < 30; round += 1) {
      expect(await transport.send(MAIL, LIMITS)).toMatchObject({ is: "done" });
    }
    expect(new Set(inbox.mails.map(({ connection }) => connection))).toEqual(new Set([1]));
    expect(warnings).toEqual([]);
  });

  test("waits for its turn where as many as may are on their way", async () => {
    let most = 0;
    const inbox = await inboxWith({
      onStep: () => {
        most = Math.max(most, inbox.open().length);
        return undefined;
      },
    });
    const transport = transportTo(inbox.url, { connections: 2 });
    const results = await Promise.all(Array.from({ length: 12 }, () => transport.send(MAIL, LIMITS)));
    expect(results.every(({ is }) => is === "done")).toBe(true);
    expect(inbox.mails).toHaveLength(12);
    expect(most).toBe(2);
  });
});

describe("what the server says decides", () => {
  const QUOTA = "Throttling failure: Daily message quota exceeded.";
  const RATE = "Throttling failure: Maximum sending rate exceeded.";
  const refused = (who: string, code: number) => ({ answer: { refused: who, code } });

  test.each<[InboxPlace, InboxAct, object]>([
    ["connect", say(421, "Too many connections"), { is: "again", fault: { class: "SMTP 421" } }],
    ["connect", say(554, "No SMTP service here"), { is: "blocked", fault: refused("us", 554) }],
    ["auth", say(535, "Authentication Credentials Invalid"), { is: "blocked", fault: refused("us", 535) }],
    ["auth", say(534, "Mechanism too weak"), { is: "blocked", fault: refused("us", 534) }],
    ["auth", say(454, "Temporary authentication failure"), { is: "again", fault: { class: "SMTP 454" } }],
    ["mail", say(421, "Shutting down"), { is: "again", fault: { class: "SMTP 421" } }],
    ["mail", say(451, "Local error"), { is: "again" }],
    ["mail", say(503, "Bad sequence"), { is: "again" }],
    ["mail", say(454, RATE), { is: "again", pauseMs: 1500, fault: { class: "SMTP 454 rate" } }],
    ["mail", say(454, QUOTA), { is: "again", pauseMs: 600_000, fault: { class: "SMTP 454 daily quota" } }],
    ["mail", say(530, "Account not subscribed to SES"), { is: "blocked", fault: refused("us", 530) }],
    ["mail", say(550, "Sender unknown"), { is: "blocked", fault: refused("sender", 550) }],
    ["mail", say(553, "Sender not allowed"), { is: "blocked", fault: refused("sender", 553) }],
    ["mail", say(552, "Message size exceeds limit"), { is: "failed", fault: refused("message", 552) }],
    ["rcpt", say(450, "Mailbox busy"), { is: "again", fault: { class: "SMTP 450" } }],
    ["rcpt", say(452, "Too many recipients"), { is: "again", fault: { class: "SMTP 452" } }],
    ["rcpt", say(550, "5.1.1 User unknown"), { is: "failed", fault: refused("recipient", 550) }],
    ["rcpt", say(551, "User not local"), { is: "failed", fault: refused("recipient", 551) }],
    ["rcpt", say(553, "Mailbox name not allowed"), { is: "failed", fault: refused("recipient", 553) }],
    [
      "rcpt",
      say(550, "5.4.1 Recipient address rejected: Access denied"),
      { is: "failed", fault: refused("recipient", 550) },
    ],
    ["rcpt", say(550, "5.7.1 Listed as a spammer"), { is: "failed", fault: refused("message", 550) }],
    ["rcpt", say(554, "5.7.1 Relay access denied"), { is: "blocked", fault: refused("us", 554) }],
    ["end", say(421, "Going down"), { is: "again" }],
    ["end", say(451, "Try later"), { is: "again" }],
    ["end", say(454, RATE), { is: "again", pauseMs: 1500 }],
    ["end", say(552, "Message too long"), { is: "failed", fault: refused("message", 552) }],
    ["end", say(554, "Transaction failed"), { is: "failed", fault: refused("message", 554) }],
    ["end", say(550, "5.1.1 User unknown"), { is: "failed", fault: refused("recipient", 550) }],
    [
      "end",
      say(554, "Message rejected: Email address is not verified."),
      { is: "blocked", fault: refused("us", 554) },
    ],
    ["end", say(554, "Access denied: not allowed to send"), { is: "blocked", fault: refused("us", 554) }],
    [
      "end",
      say(554, "Message rejected: Sending suspended for this account."),
      { is: "blocked", fault: refused("us", 554) },
    ],
  ])("at %s: %o", async (place, act, expected) => {
    const inbox = await inboxWith(onceAt(place, act));
    const transport = transportTo(inbox.url.replace("//", "//user:secret@"));
    expect(await transport.send(MAIL, LIMITS)).toMatchObject(expected);
    expect(inbox.mails).toHaveLength(0);
    expect(inbox.steps.filter(({ at }) => at === "connect")).toHaveLength(1);
    // the next one meets a server in good health, and a connection in no strange state
    expect(await transport.send(MAIL, LIMITS)).toMatchObject({ is: "done" });
    expect(inbox.mails).toHaveLength(1);
  });
});

describe("where the server says nothing, how far the mail had come decides", () => {
  test.each<[InboxPlace, InboxAct, string, number]>([
    ["connect", { drop: true }, "again", 0],
    ["auth", { drop: true }, "again", 0],
    ["mail", { drop: true }, "again", 0],
    ["rcpt", { drop: true }, "again", 0],
    ["data", { drop: true }, "again", 0],
    ["middle", { drop: true }, "uncertain", 0],
    ["end", { drop: true }, "uncertain", 0],
    ["end", { drop: true, keep: true }, "uncertain", 1],
  ])("cut at %s (%o): %s, and sent once", async (place, act, is, kept) => {
    const inbox = await inboxWith(onceAt(place, act));
    const transport = transportTo(inbox.url.replace("//", "//user:secret@"));
    expect(await transport.send(MAIL, LIMITS)).toMatchObject({ is });
    expect(inbox.mails).toHaveLength(kept);
    expect(inbox.steps.filter(({ at }) => at === "connect")).toHaveLength(1);
    expect(await transport.send(MAIL, LIMITS)).toMatchObject({ is: "done" });
    expect(inbox.mails).toHaveLength(kept + 1);
  });

  test("a long mail that is cut in the middle was not sent", async () => {
    const inbox = await inboxWith(onceAt("middle", { drop: true }));
    const long = { ...MAIL, text: "x".repeat(60).concat("\r\n").repeat(300_000) };
    expect(await transportTo(inbox.url).send(long, LIMITS)).toMatchObject({ is: "again" });
  });

  test("a connection that dies between two mails costs the second one no more than a try", async () => {
    const inbox = await inboxWith(onceAt("end", { drop: true, keep: true }));
    const transport = transportTo(inbox.url, { connections: 1 });
    const results = await Promise.all([transport.send(MAIL, LIMITS), transport.send(MAIL, LIMITS)]);
    expect(results.map(({ is }) => is)).toEqual(["uncertain", "done"]);
    expect(inbox.steps.filter(({ at }) => at === "end")).toHaveLength(2);
  });

  test.each<[InboxPlace, string]>([
    ["connect", "again"],
    ["auth", "again"],
    ["mail", "again"],
    ["rcpt", "again"],
    ["data", "again"],
    ["end", "uncertain"],
  ])("given up while the server hangs at %s: %s at once", async (place, is) => {
    const inbox = await inboxWith(onceAt(place, { hang: true }));
    const transport = transportTo(inbox.url.replace("//", "//user:secret@"), { connections: 1 });
    const ending = new AbortController();
    const sending = transport.send(MAIL, { ...LIMITS, signal: ending.signal });
    await inbox.reached(place);
    if (place === "end") expect(inbox.mails).toHaveLength(0);
    ending.abort();
    expect(await sending).toMatchObject({ is });
    await until(() => inbox.open().length === 0, "the connection that was given up is closed", 3000);
    // the only turn is free
    expect(await transport.send(MAIL, LIMITS)).toMatchObject({ is: "done" });
    expect(inbox.mails.map(({ connection }) => connection)).toEqual([2]);
  });

  test.each<[InboxPlace, string]>([
    ["rcpt", "again"],
    ["end", "uncertain"],
  ])("out of time while the server hangs at %s: %s", async (place, is) => {
    const inbox = await inboxWith(onceAt(place, { hang: true }));
    const result = await transportTo(inbox.url).send(MAIL, { ...LIMITS, timeoutMs: 300 });
    expect(result).toMatchObject({ is });
  });

  test("one that waits for its turn is given up, and never sent", async () => {
    const inbox = await inboxWith(onceAt("rcpt", { hang: true }));
    const transport = transportTo(inbox.url, { connections: 1 });
    const first = new AbortController();
    const second = new AbortController();
    const hanging = transport.send(MAIL, { ...LIMITS, signal: first.signal });
    const waiting = transport.send(
      { ...MAIL, to: "second@example.jp" },
      { ...LIMITS, signal: second.signal },
    );
    await inbox.reached("rcpt");
    second.abort();
    expect(await waiting).toMatchObject({ is: "again", fault: { class: "SMTP time-out" } });
    first.abort();
    expect(await hanging).toMatchObject({ is: "again" });
    expect(await transport.send(MAIL, LIMITS)).toMatchObject({ is: "done" });
    expect(inbox.steps.some(({ who }) => who === "second@example.jp")).toBe(false);
  });

  test("nothing is tried where it was given up before", async () => {
    const inbox = await inboxWith();
    const result = await transportTo(inbox.url).send(MAIL, { ...LIMITS, signal: AbortSignal.abort() });
    expect(result).toMatchObject({ is: "again" });
    expect(inbox.steps).toEqual([]);
  });

  test("refused connections, unknown names and silent servers: again", async () => {
    const inbox = await startSmtpInbox();
    await inbox.stop();
    expect(await transportTo(inbox.url).send(MAIL, LIMITS)).toMatchObject({
      is: "again",
      fault: { class: "SMTP connection" },
    });
    expect(
      await transportTo("smtp://nowhere.invalid").send(MAIL, { ...LIMITS, timeoutMs: 2000 }),
    ).toMatchObject({ is: "again" });
    const silent = await silentServer();
    const port = (silent.address() as AddressInfo).port;
    expect(
      await transportTo(`smtp://127.0.0.1:${port}`).send(MAIL, { ...LIMITS, timeoutMs: 200 }),
    ).toMatchObject({ is: "again", fault: { class: "SMTP time-out" } });
  });
});

async function silentServer(): Promise<Server> {
  const server = createServer((socket) => open.push(async () => socket.destroy()));
  open.push(async () => server.close());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
}

describe("encryption", () => {
  test("is taken where it is offered, and a certificate that nobody trusts needs a person", async () => {
    const inbox = await inboxWith({ tls: true });
    expect(await transportTo(inbox.url).send(MAIL, LIMITS)).toMatchObject({
      is: "blocked",
      fault: { class: "SMTP certificate" },
    });
    const trusting = transportTo(inbox.url, { tls: { rejectUnauthorized: false } });
    expect(await trusting.send(MAIL, LIMITS)).toMatchObject({ is: "done" });
    expect(inbox.mails).toMatchObject([{ secure: true }]);
  });

  test("that is required and not to be had needs a person, and nothing is said in clear", async () => {
    const inbox = await inboxWith();
    const transport = transportTo(inbox.url.replace("//", "//user:secret@"), { requireTls: true });
    expect(await transport.send(MAIL, LIMITS)).toMatchObject({ is: "blocked" });
    expect(inbox.steps.map(({ at }) => at)).toEqual(["connect"]);
  });
});

describe("what is kept of a failure", () => {
  test.each<[InboxPlace, string]>([
    ["rcpt", "<canary.taro@example.jp>: user canary.taro unknown at [2001:db8:1:2::7] 203.0.113.9"],
    ["auth", "user hidden.user with password canary-password is not known"],
    ["auth", `cannot decode ${Buffer.from("\0hidden.user\0canary-password").toString("base64")}`],
    ["end", 'subject ご予約の確認 for "canary.taro"@example.jp and canary.taro@localhost refused'],
    ["connect", "mx.example.jp postmaster@canary.example.jp [203.0.113.9] refuses"],
  ])("names no address and no password, whatever the server repeats at %s", async (place, text) => {
    const inbox = await inboxWith(onceAt(place, say(550, text)));
    const transport = transportTo(inbox.url.replace("//", "//hidden.user:canary-password@"));
    const kept = JSON.stringify(await transport.send(MAIL, LIMITS));
    expect(kept).not.toMatch(/canary|hidden\.user|203\.0|2001:db8|ご予約|AGhpZG/);
  });

  test("names none where the mail cannot be written either", async () => {
    const inbox = await inboxWith();
    const transport = transportTo(inbox.url);
    for (const wrong of [
      { to: "canary@example.jp, other@example.jp" },
      { to: "canary@example.jp\r\nBcc: x@example.jp" },
      { from: "canary" },
      { replyTo: "canary@" },
      { headers: { Bcc: "canary@example.jp" } },
      { headers: { "X-Note": "a\r\nBcc: canary@example.jp" } },
    ]) {
      const result = await transport.send({ ...MAIL, ...wrong }, LIMITS);
      expect(result).toMatchObject({ is: "failed", fault: { class: "SMTP bad mail" } });
      expect(JSON.stringify(result)).not.toContain("canary");
    }
    expect(inbox.steps).toEqual([]);
  });
});

describe("closing", () => {
  test("lets what is on its way end, and takes nothing more", async () => {
    const inbox = await inboxWith();
    const transport = smtp({ url: inbox.url });
    const sending = transport.send(MAIL, LIMITS);
    await inbox.reached("connect");
    const closing = transport.close();
    expect(await sending).toMatchObject({ is: "done" });
    await closing;
    expect(await transport.send(MAIL, LIMITS)).toMatchObject({ is: "again" });
    await until(() => inbox.open().length === 0, "every connection is closed");
  });

  test.each([
    "http://host",
    "smtp://",
    "nonsense",
    "smtp:user:canary@host",
    "smtp://a:%zz@host",
    "smtp://host/?tls=no",
  ])("a URL that is none is told apart: %s", (url) => {
    expect(() => smtp({ url })).toThrow(expect.objectContaining({ code: "invalid_option" }));
  });
});

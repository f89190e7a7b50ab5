import { describe, expect, test } from "vitest";
import { classifySent, classifySmtp } from "./classify-smtp.ts";
import { refusedBy, type Refused } from "./refusal.ts";

const failing = (code: string, originalCode?: string) =>
  Object.assign(new Error("it failed"), { code, ...(originalCode && { originalCode }) });

describe("what cannot be made to happen by a server", () => {
  test.each([
    [failing("ESOCKET", "ENOMEM"), "failed"],
    [failing("ESOCKET", "EMFILE"), "failed"],
    [failing("ENOSPC"), "failed"],
    [failing("EFILEACCESS"), "failed"],
    [failing("EURLACCESS"), "failed"],
    [failing("ESTREAM"), "failed"],
    [failing("EENVELOPE"), "failed"],
    [new RangeError("Invalid string length"), "failed"],
    ["text", "failed"],
    [failing("EDNS", "ENOTFOUND"), "again"],
    [failing("ESOCKET", "ECONNRESET"), "again"],
    [failing("ESOCKET", "EHOSTUNREACH"), "again"],
    [failing("ETIMEDOUT"), "again"],
    [failing("ESOCKET", "CERT_HAS_EXPIRED"), "blocked"],
    [failing("EAUTH"), "blocked"],
  ])("%s: %s", (error, is) => {
    expect(classifySmtp(error, "not handed over", [])).toMatchObject({ is });
    expect(classifySmtp(error, "handed over", [])).toMatchObject({ is: "uncertain" });
  });

  test("a recipient that was refused is no success, whatever nodemailer says", () => {
    const sent = { response: "250 OK", rejected: ["canary@example.jp"] };
    const result = classifySent(sent, []);
    expect(result).toMatchObject({ is: "failed", fault: { answer: { refused: "recipient" } } });
    expect(JSON.stringify(result)).not.toContain("canary");
  });

  test("a refusal that came as the line was cut is one of the mail", () => {
    const error = Object.assign(failing("ECONNECTION"), {
      responseCode: 554,
      response: "554 spam",
      command: "CONN",
    });
    expect(classifySmtp(error, "handed over", [])).toMatchObject({ is: "failed" });
    expect(classifySmtp(error, "not handed over", [])).toMatchObject({ is: "blocked" });
  });
});

describe("one person's mailbox never stops everybody's mail", () => {
  test.each<[string, string, Refused]>([
    ["550 5.2.1 The email account that you tried to reach is disabled", "RCPT TO", "recipient"],
    ["554 delivery error: This account has been disabled or discontinued", "DATA", "message"],
    ["554 5.7.1 <x>: Recipient address rejected: Access denied", "RCPT TO", "recipient"],
    ["550 5.1.1 User unknown in relay recipient table", "RCPT TO", "recipient"],
    ["550 5.7.133 Sender not authorized for this group", "RCPT TO", "message"],
    ["554 5.7.1 Access denied", "RCPT TO", "message"],
    ["552 5.2.2 Mailbox full", "RCPT TO", "message"],
    ["550 5.1.8 Sender's domain does not exist", "RCPT TO", "sender"],
    ["550 5.7.1 Relaying denied", "RCPT TO", "us"],
  ])("%s at %s", (text, command, refused) => {
    const [, code, status] = /^(\d+) (\d\.\d+\.\d+)?/.exec(text) ?? [];
    expect(refusedBy({ code: Number(code), status, text, command })).toBe(refused);
  });
});

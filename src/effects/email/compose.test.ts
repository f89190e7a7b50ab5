import { describe, expect, test } from "vitest";
import { BadMail, compose } from "./compose.ts";
import type { Mail } from "./transport.ts";

const MAIL: Mail = {
  effect: "0190b6c2-0000-7000-8000-000000000001",
  messageId: "<0190b6c2-0000-7000-8000-000000000001@shop.example>",
  to: "taro@example.jp",
  from: "shop@shop.example",
  subject: "件名",
  text: "本文",
};

describe("a mail on the wire", () => {
  test.each([
    ["taro@example.jp", "taro@example.jp"],
    ["taro..y.@docomo.ne.jp", '"taro..y."@docomo.ne.jp'],
    ["taro@日本語.jp", "taro@xn--wgv71a119e.jp"],
    ["o'hara+tag@example.jp", "o'hara+tag@example.jp"],
  ])("is for %s as %s", async (to, told) => {
    expect(await compose({ ...MAIL, to })).toMatchObject({ from: MAIL.from, to: told });
  });

  test("takes nothing in a name for an address", async () => {
    const letter = await compose({ ...MAIL, from: "Shop, x@example.jp <shop@shop.example>" });
    expect(letter.from).toBe("shop@shop.example");
    expect(letter.raw.toString()).toContain('From: "Shop, x@example.jp" <shop@shop.example>\r\n');
  });

  test("takes no text for a path", async () => {
    const { raw } = await compose({ ...MAIL, text: "/etc/hostname", html: "file:///etc/hostname" });
    expect(raw.toString()).toContain("\r\n/etc/hostname\r\n");
  });

  test("carries headers of its own choice, and its effect", async () => {
    const letter = await compose({ ...MAIL, headers: { "List-Unsubscribe": "<https://shop.example/off>" } });
    expect(letter.raw.toString()).toMatch(/^List-Unsubscribe: <https:\/\/shop\.example\/off>\r$/m);
    expect(letter.raw.toString()).toMatch(new RegExp(`^X-Ukemi-Effect: ${MAIL.effect}\r$`, "m"));
  });

  test.each<Partial<Mail>>([
    { headers: { Bcc: "canary@example.jp" } },
    { headers: { "message-id": "<canary>" } },
    { headers: { "X Note": "canary" } },
    { headers: { "X-Note": "a\r\nBcc: canary@example.jp" } },
    { replyTo: "canary" },
    { from: "canary <>" },
  ])("is refused with %o, and none of it is repeated", async (wrong) => {
    const refusal = await compose({ ...MAIL, ...wrong }).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(BadMail);
    expect(String(refusal)).not.toContain("canary");
  });
});

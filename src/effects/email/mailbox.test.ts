import { describe, expect, test } from "vitest";
import { domainOf, isMailbox, maskMailbox, readSender } from "./mailbox.ts";
import { messageIdFor } from "./message-id.ts";

describe("a mailbox", () => {
  test.each([
    "taro@example.jp",
    "taro+tag@mail.example.co.jp",
    "taro..y.@docomo.ne.jp",
    "o'hara@example.com",
    "taro@日本語.jp",
    "taro@xn--wgv71a119e.jp",
    "taro@localhost",
    `${"a".repeat(64)}@example.jp`,
  ])("is %s", (text) => expect(isMailbox(text)).toBe(true));

  test.each([
    "",
    "taro",
    "@example.jp",
    "taro@",
    "taro@example.jp, hanako@example.jp",
    "taro@example.jp;hanako@example.jp",
    "Taro <taro@example.jp>",
    "taro@example.jp\r\nBcc: x@example.jp",
    "taro@example.jp\n",
    " taro@example.jp",
    "ta ro@example.jp",
    '"ta ro"@example.jp',
    "太郎@example.jp",
    "taro@exa mple.jp",
    "taro@[203.0.113.9]",
    "taro@203.0.113.9",
    "taro@-example.jp",
    "taro@example..jp",
    "taro@hanako@example.jp",
    `${"a".repeat(65)}@example.jp`,
    `taro@${"a".repeat(60)}.${"b.".repeat(100)}jp`,
  ])("is not %j", (text) => expect(isMailbox(text)).toBe(false));

  test("of a sender may come with a name", () => {
    const mailbox = "shop@example.jp";
    expect(readSender("お店 <shop@example.jp>")).toEqual({ name: "お店", mailbox });
    expect(readSender('"Shop, Inc." <shop@example.jp>')).toEqual({ name: "Shop, Inc.", mailbox });
    expect(readSender("Shop, Inc. <shop@example.jp>")).toEqual({ name: "Shop, Inc.", mailbox });
    expect(readSender("shop@example.jp")).toEqual({ name: "", mailbox });
    expect(readSender("Shop\r\nBcc: x <shop@example.jp>")).toBeUndefined();
    expect(readSender("<a@example.jp> <b@example.jp>")).toBeUndefined();
  });

  test("has a domain as it goes over the wire", () => {
    expect(domainOf("shop@日本語.jp")).toBe("xn--wgv71a119e.jp");
    expect(domainOf("shop")).toBeUndefined();
  });

  test.each([
    ["taro@example.co.jp", "t***@e***.jp"],
    ["t@localhost", "t***@l***"],
    ["𠮷田@example.jp", "𠮷***@e***.jp"],
    ["nonsense", "***"],
    ["@example.jp", "***"],
    ["", "***"],
  ])("is shown in logs so that nobody can write to it: %s", (mailbox, masked) => {
    expect(maskMailbox(mailbox)).toBe(masked);
  });
});

describe("the Message-ID of an effect", () => {
  test("is the same for every try, in the sender's domain", () => {
    const effect = "0190b6c2-0000-7000-8000-000000000001";
    expect(messageIdFor(effect, "お店 <shop@example.jp>")).toBe(`<${effect}@example.jp>`);
  });

  test("needs a sender, and does not repeat what was given in its place", () => {
    expect(() => messageIdFor("x", "canary")).toThrow(/^(?!.*canary)/);
  });
});

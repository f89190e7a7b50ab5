// Amazon SNS: whose message it is, and what it is about.
import { describe, expect, test } from "vitest";
import { askSns, openSns, refused, VERIFIED } from "../../test/support/sns-source.ts";
import { confirmationOf, createSigner, sesBounce, signSns, TOPIC } from "../../test/support/sns.ts";
import { sns, type SnsOptions } from "./sns.ts";

const signer = createSigner();
const open = openSns(signer);
const EFFECT = "0192f0c1-2b3c-7d4e-8f5a-6b7c8d9e0f1a";

describe("signatures", () => {
  test.each(["1", "2"] as const)(
    "accepts SignatureVersion %s, with and without a subject",
    async (version) => {
      const { source } = open();
      expect(await askSns(source, signSns(signer, {}, version))).toEqual(VERIFIED);
      expect(await askSns(source, signSns(signer, { Subject: "A subject – ✓" }, version))).toEqual(VERIFIED);
      expect(await askSns(source, signSns(signer, { Subject: null }, version))).toEqual(VERIFIED);
      expect(await askSns(source, signSns(signer, { Message: "two\nlines" }, version))).toEqual(VERIFIED);
    },
  );

  test("refuses SHA-1 where it is forbidden, before anything is fetched", async () => {
    const { source, asked } = open({ allowSha1: false });
    expect(await askSns(source, signSns(signer, {}, "1"))).toEqual(refused("signature_malformed"));
    expect(asked).toEqual([]);
    expect(await askSns(source, signSns(signer, {}, "2"))).toEqual(VERIFIED);
  });

  test("refuses a signature under the other version's name", async () => {
    const { source } = open();
    for (const [version, other] of [
      ["1", "2"],
      ["2", "1"],
    ] as const) {
      const message = { ...signSns(signer, {}, version), SignatureVersion: other };
      expect(await askSns(source, message)).toEqual(refused("wrong_signature"));
    }
    expect(await askSns(source, { ...signSns(signer), SignatureVersion: "3" })).toEqual(
      refused("signature_malformed"),
    );
    expect(await askSns(source, { ...signSns(signer), SignatureVersion: 2 })).toHaveProperty("refused");
    expect(await askSns(source, { ...signSns(signer), SignatureVersion: "__proto__" })).toHaveProperty(
      "refused",
    );
  });

  test.each([
    ["a notification", { Subject: "a subject" }],
    ["a confirmation", confirmationOf()],
    ["the end of a subscription", { ...confirmationOf(), Type: "UnsubscribeConfirmation" }],
  ])("refuses %s when any of its fields is altered, missing or of another nature", async (_, fields) => {
    const { source } = open();
    const good = signSns(signer, fields);
    expect(await askSns(source, good)).toEqual(VERIFIED);
    const signedFields = Object.keys(good).filter((name) => name !== "UnsubscribeURL");
    for (const name of signedFields) {
      for (const other of [
        `${good[name]}x`,
        `x${good[name]}`,
        "",
        " ",
        "\n",
        null,
        undefined,
        7,
        {},
        [],
        true,
      ]) {
        expect(
          await askSns(source, { ...good, [name]: other }),
          `${name} ${JSON.stringify(other)}`,
        ).toHaveProperty("refused");
      }
    }
    expect(await askSns(source, { ...good, Timestamp: new Date(Date.now() + 1000).toISOString() })).toEqual(
      refused("wrong_signature"),
    );
    expect(
      await askSns(source, { ...good, Type: "UnsubscribeConfirmation", Token: "t", SubscribeURL: "u" }),
    ).toHaveProperty("refused");
  });

  test("refuses a subject that is added, and one that is taken away", async () => {
    const { source } = open();
    expect(await askSns(source, { ...signSns(signer), Subject: "new" })).toEqual(refused("wrong_signature"));
    const { Subject: _, ...without } = signSns(signer, { Subject: "there" });
    expect(await askSns(source, without)).toEqual(refused("wrong_signature"));
  });

  test("refuses the same signed text cut into other fields", async () => {
    const { source } = open();
    const message = signSns(signer, { Message: "a\nMessageId\nforged\nSubject\nb" });
    const recut = {
      ...message,
      Message: "a",
      MessageId: "forged",
      Subject: `b\nMessageId\n${message.MessageId}`,
    };
    expect(await askSns(source, message)).toEqual(VERIFIED);
    expect(await askSns(source, recut)).toEqual(refused("signature_malformed"));
  });

  test("refuses what another key signed, although it names a certificate of AWS", async () => {
    const { source } = open();
    const other = { ...createSigner(), url: signer.url };
    expect(await askSns(source, signSns(other))).toEqual(refused("wrong_signature"));
  });

  test("says what is wrong where a subscription has raw delivery", () => {
    const request = { headers: { "x-amz-sns-rawdelivery": "true" }, body: Buffer.from("hello") };
    expect(open().source.verify(request, Date.now())).toEqual({
      refused: "signature_missing",
      diagnosis: expect.stringContaining("raw message delivery"),
    });
  });

  test("takes the last of two equal keys for verifying as for reading", async () => {
    const { source } = open();
    const good = JSON.stringify(signSns(signer, { MessageId: "m-1" }));
    const twice = good.replace(/^\{/, '{"MessageId":"m-0",');
    expect(await askSns(source, twice)).toEqual(VERIFIED);
    expect(source.identify({ headers: {}, body: Buffer.from(twice) })).toMatchObject({ eventId: "m-1" });
  });
});

describe("age", () => {
  const at = (seconds: number) => ({ Timestamp: new Date(Date.now() + seconds * 1000).toISOString() });

  test("accepts what SNS may still send after its hour of retries, and nothing older", async () => {
    const { source } = open();
    expect(await askSns(source, signSns(signer, at(-3600)))).toEqual(VERIFIED);
    expect(await askSns(source, signSns(signer, at(-3910)))).toEqual(refused("stale"));
    expect(await askSns(source, signSns(signer, at(290)))).toEqual(VERIFIED);
    expect(await askSns(source, signSns(signer, at(310)))).toEqual(refused("future"));
  });

  test("refuses a certificate that has expired, or is not valid yet", async () => {
    const past = createSigner({ name: "past", until: new Date(Date.now() - 60_000) });
    const coming = createSigner({ name: "coming", from: new Date(Date.now() + 60_000) });
    const { source } = open({}, [past, coming]);
    for (const one of [past, coming]) {
      expect(await askSns(source, signSns(one))).toEqual(refused("wrong_signature"));
    }
  });

  test("fetches a certificate again when the one it has is over", async () => {
    const old = createSigner({ until: new Date(Date.now() - 60_000) });
    const pages = [old.pem, signer.pem];
    const { source } = open({ fetch: async () => new Response(pages.shift()) });
    expect(await askSns(source, signSns(old))).toEqual(refused("wrong_signature"));
    expect(await askSns(source, signSns(signer))).toEqual(VERIFIED);
    expect(await askSns(source, signSns(signer))).toEqual(VERIFIED);
    expect(pages).toEqual([]);
  });
});

describe("identity", () => {
  const identify = (fields: Record<string, string>) =>
    open().source.identify({ headers: {}, body: Buffer.from(JSON.stringify(signSns(signer, fields))) });

  test("knows a bounce by its effect and its mail", () => {
    const Message = JSON.stringify(sesBounce(EFFECT));
    expect(identify({ Message, MessageId: "m-1" })).toEqual({
      eventId: "m-1",
      type: "ses.bounce",
      account: "",
      livemode: true,
      tenant: null,
      occurredAt: new Date("2026-11-01T10:00:00.123Z"),
      refs: [
        { kind: "effect", id: EFFECT },
        { kind: "ses_message", id: "EXAMPLE7c191be45" },
      ],
    });
  });

  test("takes any other message for a notification, at the time it was published", () => {
    const Timestamp = "2026-11-02T00:00:00.000Z";
    for (const Message of [
      "",
      "text",
      "{",
      "[]",
      "null",
      '{"eventType":"Bounce"}',
      '{"notificationType":"AmazonSnsSubscriptionSucceeded"}',
    ]) {
      expect(identify({ Message, Timestamp })).toMatchObject({
        type: "sns.notification",
        occurredAt: new Date(Timestamp),
        refs: [],
      });
    }
  });

  test("passes over an id that could not be stored", () => {
    const mail = { messageId: "a\u0000b", tags: { ukemi_effect: ["not a uuid"] } };
    expect(identify({ Message: JSON.stringify({ eventType: "Send", mail }) })).toMatchObject({
      type: "ses.send",
      refs: [],
    });
  });

  test("says nothing of the body in a refusal", async () => {
    const { source } = open();
    const good = signSns(signer, { Message: JSON.stringify(sesBounce(EFFECT)), Subject: "gone@example.com" });
    for (const name of Object.keys(good)) {
      for (const other of ["gone@example.com", "gone@example.com\n", 5]) {
        const message = { ...good, [name]: other };
        const said = [
          await askSns(source, message),
          source.identify({ headers: {}, body: Buffer.from(JSON.stringify(message)) }),
        ];
        for (const one of said) if ("diagnosis" in one) expect(one.diagnosis).not.toMatch(/example|@/);
      }
    }
  });
});

test.each<[string, Partial<SnsOptions>]>([
  ["no topics", { topics: [] }],
  ["a topic that is not set", { topics: [undefined as unknown as string] }],
  ["topics that are no list", { topics: TOPIC as never }],
  ["a topic of any kind", { topics: ["*"] }],
  ["a topic's name", { topics: ["mail"] }],
  ["the ARN of a queue", { topics: [TOPIC.replace("sns", "sqs")] }],
  ["a region with a dot", { topics: [TOPIC.replace("eu-west-1", "evil.com")] }],
  ["a region with a slash", { topics: [TOPIC.replace("eu-west-1", "evil.com/x")] }],
  ["a subscription", { topics: [`${TOPIC}:c9135db0-26c4-47ec-8998-413945fb5a96`] }],
  ["no tolerance", { toleranceSeconds: 0 }],
  ["a switch that is text", { allowSha1: "no" as never }],
  ["a fetch that is none", { fetch: "fetch" as never }],
])("does not start with %s", (_, options) => {
  expect(() => sns({ topics: [TOPIC], ...options })).toThrow(/^sns: /);
});

test("knows the hosts of China and of the government", async () => {
  for (const [topic, host] of [
    ["arn:aws-cn:sns:cn-north-1:123456789012:mail.fifo", "sns.cn-north-1.amazonaws.com.cn"],
    ["arn:aws-us-gov:sns:us-gov-west-1:123456789012:mail", "sns.us-gov-west-1.amazonaws.com"],
  ] as const) {
    const there = { ...signer, url: `https://${host}/a.pem` };
    const { source } = open({ topics: [topic] }, [there]);
    expect(await askSns(source, signSns(there, { TopicArn: topic }))).toEqual(VERIFIED);
    expect(await askSns(source, signSns(signer, { TopicArn: topic }))).toEqual(
      refused("signature_malformed"),
    );
  }
});

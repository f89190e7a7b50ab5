// Amazon SNS: whose message it is, what may be fetched for it, and what must never be.
import { describe, expect, test, vi } from "vitest";
import {
  confirmationOf,
  createAws,
  createSigner,
  REGION_HOST,
  sesBounce,
  signSns,
  TOPIC,
  type Signer,
} from "../../test/support/sns.ts";
import type { SnsFetch } from "./sns-fetch.ts";
import { sns } from "./sns.ts";
import type { SnsOptions } from "./sns.ts";
import type { Source } from "./source.ts";

const signer = createSigner();
const EFFECT = "0192f0c1-2b3c-7d4e-8f5a-6b7c8d9e0f1a";

type Message = Record<string, unknown>;

/** A source before a made-up AWS. */
function open(options: Partial<SnsOptions> = {}, signers: readonly Signer[] = [signer]) {
  const { fetch, asked } = createAws(...signers);
  return { source: sns({ topics: [TOPIC], fetch, ...options }), asked };
}

/** As the inbox does: prepare, then verify. */
async function ask(source: Source, message: Message | string, nowMs = Date.now()) {
  const body = Buffer.from(typeof message === "string" ? message : JSON.stringify(message));
  await source.prepare!({ headers: {}, body }, nowMs);
  return source.verify({ headers: {}, body }, nowMs);
}

const refused = (reason: string) => ({ refused: reason, diagnosis: expect.any(String) });
const VERIFIED = { secretFingerprint: expect.stringMatching(/^[0-9a-f]{12}$/) };

describe("signatures", () => {
  test.each(["1", "2"] as const)(
    "accepts SignatureVersion %s, with and without a subject",
    async (version) => {
      const { source } = open();
      expect(await ask(source, signSns(signer, {}, version))).toEqual(VERIFIED);
      expect(await ask(source, signSns(signer, { Subject: "A subject – ✓" }, version))).toEqual(VERIFIED);
      expect(await ask(source, signSns(signer, { Subject: null }, version))).toEqual(VERIFIED);
      expect(await ask(source, signSns(signer, { Message: "two\nlines" }, version))).toEqual(VERIFIED);
    },
  );

  test("refuses SHA-1 where it is forbidden, before anything is fetched", async () => {
    const { source, asked } = open({ allowSha1: false });
    expect(await ask(source, signSns(signer, {}, "1"))).toEqual(refused("signature_malformed"));
    expect(asked).toEqual([]);
    expect(await ask(source, signSns(signer, {}, "2"))).toEqual(VERIFIED);
  });

  test("refuses a signature under the other version's name", async () => {
    const { source } = open();
    for (const [version, other] of [
      ["1", "2"],
      ["2", "1"],
    ] as const) {
      const message = { ...signSns(signer, {}, version), SignatureVersion: other };
      expect(await ask(source, message)).toEqual(refused("wrong_signature"));
    }
    expect(await ask(source, { ...signSns(signer), SignatureVersion: "3" })).toEqual(
      refused("signature_malformed"),
    );
    expect(await ask(source, { ...signSns(signer), SignatureVersion: 2 })).toHaveProperty("refused");
    expect(await ask(source, { ...signSns(signer), SignatureVersion: "__proto__" })).toHaveProperty(
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
    expect(await ask(source, good)).toEqual(VERIFIED);
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
        expect(await ask(source, { ...good, [name]: other }), `${name} ${String(other)}`).toHaveProperty(
          "refused",
        );
      }
    }
    expect(await ask(source, { ...good, Timestamp: new Date(Date.now() + 1000).toISOString() })).toEqual(
      refused("wrong_signature"),
    );
    expect(
      await ask(source, { ...good, Type: "UnsubscribeConfirmation", Token: "t", SubscribeURL: "u" }),
    ).toHaveProperty("refused");
  });

  test("refuses a subject that is added, and one that is taken away", async () => {
    const { source } = open();
    expect(await ask(source, { ...signSns(signer), Subject: "new" })).toEqual(refused("wrong_signature"));
    const { Subject: _, ...without } = signSns(signer, { Subject: "there" });
    expect(await ask(source, without)).toEqual(refused("wrong_signature"));
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
    expect(await ask(source, message)).toEqual(VERIFIED);
    expect(await ask(source, recut)).toEqual(refused("signature_malformed"));
  });

  test("refuses what another key signed, although it names a certificate of AWS", async () => {
    const { source } = open();
    const other = { ...createSigner(), url: signer.url };
    expect(await ask(source, signSns(other))).toEqual(refused("wrong_signature"));
  });

  test("takes the last of two equal keys for verifying as for reading", async () => {
    const { source } = open();
    const good = JSON.stringify(signSns(signer, { MessageId: "m-1" }));
    const twice = good.replace(/^\{/, '{"MessageId":"m-0",');
    expect(await ask(source, twice)).toEqual(VERIFIED);
    expect(source.identify({ headers: {}, body: Buffer.from(twice) })).toMatchObject({ eventId: "m-1" });
  });
});

describe("age", () => {
  const at = (seconds: number) => ({ Timestamp: new Date(Date.now() + seconds * 1000).toISOString() });

  test("accepts what SNS may still send after its hour of retries, and nothing older", async () => {
    const { source } = open();
    expect(await ask(source, signSns(signer, at(-3600)))).toEqual(VERIFIED);
    expect(await ask(source, signSns(signer, at(-3910)))).toEqual(refused("stale"));
    expect(await ask(source, signSns(signer, at(290)))).toEqual(VERIFIED);
    expect(await ask(source, signSns(signer, at(310)))).toEqual(refused("future"));
  });

  test("refuses a certificate that has expired, or is not valid yet", async () => {
    const past = createSigner({ name: "past", until: new Date(Date.now() - 60_000) });
    const coming = createSigner({ name: "coming", from: new Date(Date.now() + 60_000) });
    const { source } = open({}, [past, coming]);
    for (const one of [past, coming]) {
      expect(await ask(source, signSns(one))).toEqual(refused("wrong_signature"));
    }
  });

  test("fetches a certificate again when the one it has is over", async () => {
    const old = createSigner({ until: new Date(Date.now() - 60_000) });
    const pages = [old.pem, signer.pem];
    const { source } = open({ fetch: async () => new Response(pages.shift()) });
    expect(await ask(source, signSns(old))).toEqual(refused("wrong_signature"));
    expect(await ask(source, signSns(signer))).toEqual(VERIFIED);
    expect(await ask(source, signSns(signer))).toEqual(VERIFIED);
    expect(pages).toEqual([]);
  });
});

describe("what is fetched", () => {
  test.each([
    `http://${REGION_HOST}/a.pem`,
    `HTTPS://${REGION_HOST}/a.pem`,
    `https://${REGION_HOST.toUpperCase()}/a.pem`,
    `https://${REGION_HOST}./a.pem`,
    `https://${REGION_HOST}:443/a.pem`,
    `https://${REGION_HOST}:8443/a.pem`,
    `https://user@${REGION_HOST}/a.pem`,
    `https://${REGION_HOST}@evil.com/a.pem`,
    `https://${REGION_HOST}.evil.com/a.pem`,
    `https://${REGION_HOST}%2eevil.com/a.pem`,
    `https://${REGION_HOST}\\@evil.com/a.pem`,
    `https:\\\\${REGION_HOST}\\a.pem`,
    `https:/${REGION_HOST}/a.pem`,
    `//${REGION_HOST}/a.pem`,
    ` https://${REGION_HOST}/a.pem`,
    `https://${REGION_HOST}/a.pem `,
    `https://${REGION_HOST}/a.pem\n`,
    `https://${REGION_HOST}/a.pem#x`,
    `https://${REGION_HOST}/a.pem?x`,
    `https://${REGION_HOST}/?x=a.pem`,
    `https://${REGION_HOST}/#a.pem`,
    `https://${REGION_HOST}/../a.pem`,
    `https://${REGION_HOST}/b/a.pem`,
    `https://${REGION_HOST}/%2e%2e/a.pem`,
    `https://${REGION_HOST}/a.crt`,
    `https://${REGION_HOST}/.pem`,
    `https://${REGION_HOST}//evil.com/a.pem`,
    "https://sns.evil.amazonaws.com.evil.com/a.pem",
    "https://sns.us-east-1.amazonaws.com/a.pem", // AWS, but not where this topic lives
    "https://sns.s3-us-west-2.amazonaws.com/a.pem", // somebody's bucket, named sns
    "https://sns.eu-west-1.amazonaws.com.cn/a.pem",
    "https://xsns.eu-west-1.amazonaws.com/a.pem",
    "https://sns-eu-west-1.amazonaws.com/a.pem",
    "https://evil.com/sns.eu-west-1.amazonaws.com/a.pem",
    "https://169.254.169.254/a.pem",
    "https://localhost/a.pem",
    "file:///etc/ssl/a.pem",
    "data:text/plain,a.pem",
    "",
  ])("never asks %j for a certificate", async (url) => {
    const { source, asked } = open({}, [{ ...signer, url }]);
    expect(await ask(source, signSns({ ...signer, url }))).toEqual(refused("signature_malformed"));
    expect(asked).toEqual([]);
  });

  test("asks nothing for a foreign topic, and confirms nothing", async () => {
    const { source, asked } = open();
    for (const TopicArn of [
      `${TOPIC}2`,
      TOPIC.toUpperCase(),
      TOPIC.replace("1234", "9234"),
      ` ${TOPIC}`,
      "*",
    ]) {
      const message = signSns(signer, { ...confirmationOf(), TopicArn });
      expect(await ask(source, message)).toEqual(refused("wrong_sender"));
      const body = Buffer.from(JSON.stringify(message));
      const identity = source.identify({ headers: {}, body });
      if (identity.refused === undefined) await source.conclude!({ headers: {}, body }, identity);
    }
    expect(asked).toEqual([]);
  });

  test("asks for a certificate once, however many messages name it at the same time", async () => {
    const { source, asked } = open();
    const messages = Array.from({ length: 50 }, () => signSns(signer));
    expect(await Promise.all(messages.map((message) => ask(source, message)))).toEqual(
      messages.map(() => VERIFIED),
    );
    expect(await ask(source, signSns(signer))).toEqual(VERIFIED);
    expect(asked).toEqual([signer.url]);
  });

  test("keeps no more than 32 certificates", async () => {
    const many = Array.from({ length: 33 }, (_, index) => ({
      ...signer,
      url: signer.url.replace("0a1b", `${index}`),
    }));
    const { source, asked } = open({}, many);
    for (const one of many) expect(await ask(source, signSns(one))).toEqual(VERIFIED);
    await ask(source, signSns(many[1]!));
    expect(asked).toHaveLength(33);
    await ask(source, signSns(many[0]!));
    expect(asked).toHaveLength(34);
  });

  test("asks for eight certificates at a time at the most, and has the sender try again", async () => {
    const waiting: (() => void)[] = [];
    const { source } = open({
      fetch: () => new Promise((resolve) => waiting.push(() => resolve(new Response("", { status: 404 })))),
    });
    const name = (index: number) => ({ ...signer, url: signer.url.replace("0a1b", `${index}`) });
    const asking = Array.from({ length: 8 }, (_, index) => ask(source, signSns(name(index))));
    await expect(ask(source, signSns(name(8)))).rejects.toThrow("too many certificates");
    for (const answer of waiting) answer();
    for (const one of await Promise.all(asking)) expect(one).toEqual(refused("signature_malformed"));
  });

  test.each<[string, () => Response]>([
    ["a redirect", () => new Response(null, { status: 302, headers: { location: "http://localhost/" } })],
    ["404", () => new Response("", { status: 404 })],
    ["403", () => new Response("", { status: 403 })],
    ["a page", () => new Response("<html>")],
    ["nothing", () => new Response("")],
    ["a certificate in a page without end", () => new Response(endless(signer.pem))],
    ["a key that is not RSA", () => new Response(createSigner({ keyType: "ec" }).pem)],
  ])("refuses where AWS answers with %s", async (_, answer) => {
    const asked: RequestInit[] = [];
    const fetch: SnsFetch = async (_url, init) => {
      asked.push(init);
      return answer();
    };
    const { source } = open({ fetch });
    expect(await ask(source, signSns(signer))).toEqual(refused("signature_malformed"));
    expect(asked).toEqual([expect.objectContaining({ redirect: "manual", signal: expect.any(AbortSignal) })]);
  });

  test("has the sender try again where AWS does not answer, and says where, and forgets it", async () => {
    const answers = [
      () =>
        Promise.reject(
          new TypeError("fetch failed", { cause: Object.assign(new Error(), { code: "ENOTFOUND" }) }),
        ),
      () => Promise.resolve(new Response("", { status: 503 })),
      () => Promise.resolve(new Response("", { status: 429 })),
      () => Promise.resolve(new Response(signer.pem)),
    ];
    const { source } = open({ fetch: () => answers.shift()!() });
    await expect(ask(source, signSns(signer))).rejects.toThrow(`${REGION_HOST} cannot be asked: ENOTFOUND`);
    await expect(ask(source, signSns(signer))).rejects.toThrow(`${REGION_HOST} answered 503`);
    await expect(ask(source, signSns(signer))).rejects.toThrow(`${REGION_HOST} answered 429`);
    expect(await ask(source, signSns(signer))).toEqual(VERIFIED);
  });

  test("gives up on an AWS that never answers", async () => {
    const timeout = vi
      .spyOn(AbortSignal, "timeout")
      .mockImplementation(() => AbortSignal.abort(new Error("over")));
    const { source } = open({
      fetch: (_url, init) => Promise.reject(init.signal!.reason as Error),
    });
    await expect(ask(source, signSns(signer))).rejects.toThrow(`${REGION_HOST} cannot be asked: Error`);
    expect(timeout).toHaveBeenCalledWith(5000);
    timeout.mockRestore();
  });
});

/** A page that begins as it should and never ends. */
function endless(beginning: string): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start: (controller) => controller.enqueue(Buffer.from(beginning)),
    pull: (controller) => controller.enqueue(Buffer.alloc(4096, "\n")),
  });
}

describe("confirmations", () => {
  const deliver = async (source: Source, message: Message) => {
    const request = { headers: {}, body: Buffer.from(JSON.stringify(message)) };
    const identity = source.identify(request);
    if (identity.refused !== undefined) throw new Error(identity.diagnosis);
    await source.conclude!(request, identity);
    return identity;
  };

  test("confirms at the topic's own host, wherever the request points", async () => {
    const { source, asked } = open();
    for (const SubscribeURL of [
      "http://169.254.169.254/",
      `https://${REGION_HOST}.evil.com/`,
      confirmationOf().SubscribeURL!,
    ]) {
      const message = signSns(signer, { ...confirmationOf("to/ken&Action=Evil"), SubscribeURL });
      expect(await ask(source, message)).toEqual(VERIFIED);
      expect(await deliver(source, message)).toMatchObject({
        type: "sns.subscription_confirmation",
        refs: [],
      });
    }
    const query = `Action=ConfirmSubscription&TopicArn=${encodeURIComponent(TOPIC)}&Token=to%2Fken%26Action%3DEvil`;
    const confirmed = `https://${REGION_HOST}/?${query}`;
    expect(asked).toEqual([signer.url, confirmed, confirmed, confirmed]);
  });

  test("asks nothing for notifications and for the end of a subscription", async () => {
    const { source, asked } = open();
    expect(await deliver(source, signSns(signer))).toMatchObject({ type: "sns.notification" });
    const end = signSns(signer, { ...confirmationOf(), Type: "UnsubscribeConfirmation" });
    expect(await deliver(source, end)).toMatchObject({ type: "sns.unsubscribe_confirmation" });
    expect(asked).toEqual([]);
  });

  test("rejects where AWS does not take it, and tells no token", async () => {
    const { source } = open({ fetch: async () => new Response("", { status: 403 }) });
    const failed = deliver(source, signSns(signer, confirmationOf("secret-token")));
    await expect(failed).rejects.toThrow(`${REGION_HOST} answered 403 to the confirmation`);
    await expect(failed).rejects.not.toThrow("secret-token");
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
          await ask(source, message),
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
    expect(await ask(source, signSns(there, { TopicArn: topic }))).toEqual(VERIFIED);
    expect(await ask(source, signSns(signer, { TopicArn: topic }))).toEqual(refused("signature_malformed"));
  }
});

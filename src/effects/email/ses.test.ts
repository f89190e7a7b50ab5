import { SESv2Client } from "@aws-sdk/client-sesv2";
import { afterEach, describe, expect, test } from "vitest";
import { startSesStub, type SesAct, type SesStub } from "../../../test/support/ses-stub.ts";
import type { CallLimits } from "../attempt.ts";
import { requireInstalled, ses } from "./ses.ts";
import type { Mail, MailTransport } from "./transport.ts";

const MAIL: Mail = {
  effect: "0190b6c2-0000-7000-8000-000000000001",
  messageId: "<0190b6c2-0000-7000-8000-000000000001@shop.example>",
  to: "canary.taro@example.jp",
  from: "お店 <shop@shop.example>",
  subject: "ご予約の確認",
  text: "ありがとうございます。",
};
const LIMITS: CallLimits = { timeoutMs: 30_000, signal: new AbortController().signal };

const open: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close();
});

async function stubWith(act?: SesAct): Promise<SesStub> {
  const stub = await startSesStub(() => act);
  open.push(() => stub.stop());
  return stub;
}

function transportTo(endpoint: string, maxAttempts = 1): MailTransport {
  const client = new SESv2Client({
    endpoint,
    region: "ap-northeast-1",
    maxAttempts,
    credentials: { accessKeyId: "AKIAIOSFODNN7EXAMPLE", secretAccessKey: "secret" },
  });
  const transport = ses({ client, configurationSet: "orders" });
  open.push(async () => {
    await transport.close();
    client.destroy();
  });
  return transport;
}

describe("a mail by SES", () => {
  test("is given to it whole, with the effect as a tag, and SES' own id as the receipt", async () => {
    const stub = await stubWith();
    const result = await transportTo(stub.url).send(MAIL, LIMITS);
    expect(result).toEqual({ is: "done", receipt: { messageId: "ses-1" } });
    expect(stub.calls).toMatchObject([
      {
        path: "/v2/email/outbound-emails",
        body: {
          FromEmailAddress: "shop@shop.example",
          Destination: { ToAddresses: [MAIL.to] },
          EmailTags: [{ Name: "ukemi_effect", Value: MAIL.effect }],
          ConfigurationSetName: "orders",
        },
      },
    ]);
    const { Content } = stub.calls[0]!.body as { Content: { Raw: { Data: string } } };
    expect(Buffer.from(Content.Raw.Data, "base64").toString("utf8")).toContain(
      `Message-ID: ${MAIL.messageId}\r\n`,
    );
  });

  const NOT_VERIFIED = `Email address is not verified. The following identities failed: ${MAIL.to}`;
  test.each<[SesAct, object]>([
    [
      { status: 429, error: "TooManyRequestsException", message: "Maximum sending rate exceeded." },
      { is: "again", pauseMs: 1500, fault: { class: "SES rate" } },
    ],
    [
      { status: 429, error: "TooManyRequestsException", message: "Daily message quota exceeded." },
      { is: "again", pauseMs: 600_000, fault: { class: "SES daily quota", answer: { limit: "day" } } },
    ],
    [
      { status: 400, error: "LimitExceededException" },
      { is: "again", pauseMs: 600_000, fault: { class: "SES daily quota" } },
    ],
    [{ status: 400, error: "MessageRejected", message: "Illegal content" }, { is: "failed" }],
    [{ status: 400, error: "MessageRejected", message: NOT_VERIFIED }, { is: "blocked" }],
    [{ status: 400, error: "SendingPausedException" }, { is: "blocked" }],
    [{ status: 400, error: "AccountSuspendedException" }, { is: "blocked" }],
    [{ status: 400, error: "MailFromDomainNotVerifiedException" }, { is: "blocked" }],
    [{ status: 404, error: "NotFoundException" }, { is: "blocked" }],
    [{ status: 400, error: "BadRequestException" }, { is: "failed" }],
    [{ status: 403, error: "InvalidClientTokenId" }, { is: "blocked" }],
    [{ status: 403, error: "AccessDeniedException" }, { is: "blocked" }],
    [{ status: 500, error: "InternalServiceErrorException" }, { is: "again" }],
    [{ status: 503 }, { is: "again" }],
    [{ status: 502 }, { is: "uncertain" }],
    [{ status: 504 }, { is: "uncertain" }],
    [{ drop: true }, { is: "uncertain", fault: { class: "SES no answer" } }],
  ])("%o: %o, and asked once", async (act, expected) => {
    const stub = await stubWith(act);
    const result = await transportTo(stub.url).send(MAIL, LIMITS);
    expect(result).toMatchObject(expected);
    expect(JSON.stringify(result)).not.toContain("canary");
    expect(stub.calls).toHaveLength(1);
  });

  test.each<SesAct>([{ status: 503 }, { drop: true }, { status: 429, error: "TooManyRequestsException" }])(
    "is asked once also by a client that would try again by itself: %o",
    async (act) => {
      const stub = await stubWith(act);
      expect(await transportTo(stub.url, 3).send(MAIL, LIMITS)).not.toMatchObject({ is: "done" });
      expect(stub.calls).toHaveLength(1);
    },
  );

  test("that hangs is given up at once, and nobody knows what became of it", async () => {
    const stub = await stubWith({ hang: true });
    const ending = new AbortController();
    const sending = transportTo(stub.url, 3).send(MAIL, { ...LIMITS, signal: ending.signal });
    await stub.called(1);
    ending.abort();
    expect(await sending).toMatchObject({ is: "uncertain" });
    expect(stub.calls).toHaveLength(1);
    expect(await transportTo(stub.url).send(MAIL, { ...LIMITS, timeoutMs: 300 })).toMatchObject({
      is: "uncertain",
    });
  });

  test("that never came to be asked may go again", async () => {
    const stub = await startSesStub();
    await stub.stop();
    const transport = transportTo(stub.url);
    expect(await transport.send(MAIL, LIMITS)).toMatchObject({
      is: "again",
      fault: { class: "SES connection" },
    });
    const signal = AbortSignal.abort();
    expect(await transport.send(MAIL, { ...LIMITS, signal })).toMatchObject({ is: "again" });
  });

  test("that cannot be written fails, and is not given to it", async () => {
    const stub = await stubWith();
    const result = await transportTo(stub.url).send({ ...MAIL, to: "canary" }, LIMITS);
    expect(result).toMatchObject({ is: "failed", fault: { class: "SES bad mail" } });
    expect(stub.calls).toEqual([]);
  });

  test("needs a person where the SDK cannot sign in", async () => {
    const stub = await stubWith();
    const client = new SESv2Client({
      endpoint: stub.url,
      region: "ap-northeast-1",
      credentials: () =>
        Promise.reject(Object.assign(new Error("none"), { name: "CredentialsProviderError" })),
    });
    expect(await ses({ client }).send(MAIL, LIMITS)).toMatchObject({ is: "blocked" });
    expect(stub.calls).toEqual([]);
  });
});

test("says which package is missing", () => {
  expect(() => requireInstalled("@aws-sdk/client-none")).toThrow(
    expect.objectContaining({ code: "invalid_option", message: expect.stringContaining("client-none") }),
  );
});

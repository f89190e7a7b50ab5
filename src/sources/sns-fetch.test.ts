// What may be asked of AWS for an SNS message, and what must never be.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { askSns, openSns, refused, VERIFIED } from "../../test/support/sns-source.ts";
import { confirmationOf, createSigner, REGION_HOST, signSns, TOPIC } from "../../test/support/sns.ts";
import { getPage, type SnsFetch } from "./sns-fetch.ts";
import type { Source } from "./source.ts";

const signer = createSigner();
const open = openSns(signer);

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
    expect(await askSns(source, signSns({ ...signer, url }))).toEqual(refused("signature_malformed"));
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
      expect(await askSns(source, message)).toEqual(refused("wrong_sender"));
      const body = Buffer.from(JSON.stringify(message));
      const identity = source.identify({ headers: {}, body });
      if (identity.refused === undefined) await source.conclude!({ headers: {}, body }, identity);
    }
    expect(asked).toEqual([]);
  });

  test("asks for a certificate once, however many messages name it at the same time", async () => {
    const { source, asked } = open();
    const messages = Array.from({ length: 50 }, () => signSns(signer));
    expect(await Promise.all(messages.map((message) => askSns(source, message)))).toEqual(
      messages.map(() => VERIFIED),
    );
    expect(await askSns(source, signSns(signer))).toEqual(VERIFIED);
    expect(asked).toEqual([signer.url]);
  });

  test("keeps no more than 32 certificates", async () => {
    const many = Array.from({ length: 33 }, (_, index) => ({
      ...signer,
      url: signer.url.replace("0a1b", `${index}`),
    }));
    const { source, asked } = open({}, many);
    for (const one of many) expect(await askSns(source, signSns(one))).toEqual(VERIFIED);
    await askSns(source, signSns(many[1]!));
    expect(asked).toHaveLength(33);
    await askSns(source, signSns(many[0]!));
    expect(asked).toHaveLength(34);
  });

  test("asks for eight certificates at a time at the most, and has the sender try again", async () => {
    const waiting: (() => void)[] = [];
    const { source } = open({
      fetch: () => new Promise((resolve) => waiting.push(() => resolve(new Response("", { status: 404 })))),
    });
    const name = (index: number) => ({ ...signer, url: signer.url.replace("0a1b", `${index}`) });
    const asking = Array.from({ length: 8 }, (_, index) => askSns(source, signSns(name(index))));
    await expect(askSns(source, signSns(name(8)))).rejects.toThrow("too many certificates");
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
    expect(await askSns(source, signSns(signer))).toEqual(refused("signature_malformed"));
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
    await expect(askSns(source, signSns(signer))).rejects.toThrow(
      `${REGION_HOST} cannot be asked: ENOTFOUND`,
    );
    await expect(askSns(source, signSns(signer))).rejects.toThrow(`${REGION_HOST} answered 503`);
    await expect(askSns(source, signSns(signer))).rejects.toThrow(`${REGION_HOST} answered 429`);
    expect(await askSns(source, signSns(signer))).toEqual(VERIFIED);
  });

  test("gives up on an AWS that never answers", async () => {
    const timeout = vi
      .spyOn(AbortSignal, "timeout")
      .mockImplementation(() => AbortSignal.abort(new Error("over")));
    const { source } = open({
      fetch: (_url, init) => Promise.reject(init.signal!.reason as Error),
    });
    await expect(askSns(source, signSns(signer))).rejects.toThrow(`${REGION_HOST} cannot be asked: Error`);
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
  const deliver = async (source: Source, message: object) => {
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
      expect(await askSns(source, message)).toEqual(VERIFIED);
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

test("is not led elsewhere by Node's own fetch, and hangs up on what has no end", async () => {
  const asked: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url);
    if (request.url === "/moved")
      return void response.writeHead(302, { location: "/elsewhere" }).end("moved");
    if (request.url === "/endless") return endlessly(() => response.write("x".repeat(4096)), response);
    response.end("page");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  expect(await getPage(fetch, `${url}/page`)).toEqual({ status: 200, text: "page" });
  expect(await getPage(fetch, `${url}/moved`)).toEqual({ status: 302, text: "moved" });
  expect(await getPage(fetch, `${url}/endless`)).toEqual({ status: 200, text: undefined });
  expect(asked).toEqual(["/page", "/moved", "/endless"]);
  await expect(getPage(fetch, "http://127.0.0.1:1/?Token=secret")).rejects.toThrow(
    /^127\.0\.0\.1:1 cannot be asked: \w+$/,
  );
});

/** Writes for as long as somebody reads. */
function endlessly(write: () => boolean, stream: NodeJS.EventEmitter): void {
  stream.once("drain", () => endlessly(write, stream));
  while (write());
}

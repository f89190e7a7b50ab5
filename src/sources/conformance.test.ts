// What every source must do, whatever its scheme: one suite, run over each driver.
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createAws, createSigner, signSns, TOPIC } from "../../test/support/sns.ts";
import { signHmac, signStandardWebhooks, signStripe } from "../testing/sign.ts";
import { hmac } from "./hmac.ts";
import { sns } from "./sns.ts";
import type { HeaderMap, RefusalReason, Source } from "./source.ts";
import { standardWebhooks } from "./standard-webhooks.ts";
import { stripe } from "./stripe.ts";

const nowMs = 1_790_000_000_500;
const nowSeconds = Math.floor(nowMs / 1000);
const json = { id: "evt_1", object: "event", type: "thing.done", livemode: true, name: "親子 – ✓" };
const good = JSON.stringify(json, null, 2);

/** Stands in the test's name; a failing run is repeated with FC_SEED. */
const seed = Number(process.env.FC_SEED ?? Date.now() % 2 ** 31);

/** A request as it is sent. */
interface Sent {
  readonly headers: Record<string, string>;
  readonly body: string | Buffer;
}

/** One driver under test. */
interface Candidate {
  readonly secrets: readonly [string, string, string];
  readonly make: (secrets: readonly string[]) => Source;
  readonly send: (content: string | Buffer, secrets: readonly string[], timestamp: number) => Sent;
  /** What `good` is taken for. */
  readonly type: string;
  /** What a request is refused for that somebody else signed. */
  readonly forged: RefusalReason;
  /** Where the signature stands in a header: it covers the raw bytes of the body then. */
  readonly header?: {
    readonly name: string;
    /** False where the scheme carries one signature only. */
    readonly several: boolean;
  };
}

const slackLike = {
  header: "x-signature",
  prefix: "v0=",
  timestamp: { header: "x-time", message: "v0:{timestamp}:{body}" },
} as const;

/** Three keys of AWS, by name; the last of them claims to be the first. */
const signers = { one: createSigner(), two: createSigner({ name: "two" }), other: createSigner() };

const candidates: Record<string, Candidate> = {
  stripe: {
    secrets: ["whsec_one", "whsec_two", "whsec_other"],
    make: (secrets) => stripe({ secrets }),
    send: (body, secrets, timestamp) => ({ headers: signStripe(body, secrets, { timestamp }), body }),
    type: "thing.done",
    forged: "wrong_secret",
    header: { name: "stripe-signature", several: true },
  },
  "standard-webhooks": {
    secrets: [1, 2, 3].map((byte) => `whsec_${Buffer.alloc(24, byte).toString("base64")}`) as never,
    make: (secrets) => standardWebhooks({ secrets }),
    send: (body, secrets, timestamp) => ({
      headers: signStandardWebhooks(body, secrets, { timestamp, id: "msg_1" }),
      body,
    }),
    type: "thing.done",
    forged: "wrong_secret",
    header: { name: "webhook-signature", several: true },
  },
  hmac: {
    secrets: ["one", "two", "other"],
    make: (secrets) => hmac({ secrets, ...slackLike, id: { path: "id" }, type: { path: "type" } }),
    send: (body, [secret = ""], timestamp) => ({
      headers: signHmac(body, secret, {
        ...slackLike,
        timestamp: { ...slackLike.timestamp, value: timestamp },
      }),
      body,
    }),
    type: "thing.done",
    forged: "wrong_secret",
    header: { name: "x-signature", several: false },
  },
  sns: {
    secrets: ["one", "two", "other"],
    make: (secrets) => {
      const { fetch } = createAws(...secrets.map((name) => signers[name as keyof typeof signers]));
      return sns({ topics: [TOPIC], toleranceSeconds: 300, fetch });
    },
    send: (content, [name], timestamp) => {
      const { UnsubscribeURL: _, ...signed } = signSns(signers[name as keyof typeof signers], {
        MessageId: "msg_1",
        Message: content.toString(),
        Timestamp: new Date(timestamp * 1000).toISOString(),
      });
      return { headers: {}, body: JSON.stringify(signed) };
    },
    type: "sns.notification",
    forged: "wrong_signature",
  },
};

for (const [name, candidate] of Object.entries(candidates)) {
  describe(name, () => {
    judgesSignatures(candidate);
    if (candidate.header) judgesHeaders(candidate, candidate.header);
    judgesAge(candidate);
    readsPayloads(candidate);
    survivesAnything(candidate);
  });
}

/** The acts that the tests share: ask the source with the first secret, or another one. */
function bench({ secrets, make, send }: Candidate) {
  const source = make([secrets[0]]);
  const sent = (content: string | Buffer, timestamp = nowSeconds) => send(content, [secrets[0]], timestamp);
  const signed = (content: string | Buffer) => sent(content).headers;
  const verify = async (headers: HeaderMap, body: string | Buffer, by = source, atMs = nowMs) => {
    const request = { headers, body: Buffer.from(body) };
    await by.prepare?.(request, atMs);
    return by.verify(request, atMs);
  };
  const verifySent = ({ headers, body }: Sent, by = source) => verify(headers, body, by);
  const identify = (body: string | Buffer) =>
    source.identify({ headers: signed(body), body: Buffer.from(body) });
  const at = (timestamp: number) => verifySent(sent(good, timestamp));
  return { source, sent, signed, verify, verifySent, identify, at };
}

function refused(reason: RefusalReason) {
  return { refused: reason, diagnosis: expect.any(String) };
}

function judgesSignatures(candidate: Candidate): void {
  const { secrets, make, send, type, forged, header } = candidate;
  const [one, two, other] = secrets;
  const { sent, verify, verifySent, identify } = bench(candidate);

  test("accepts a good request and reads its identity", async () => {
    const request = sent(good);
    expect(await verifySent(request)).toEqual({
      secretFingerprint: expect.stringMatching(/^[0-9a-f]{12}$/),
    });
    expect(identify(request.body)).toMatchObject({
      eventId: expect.stringMatching(/^(evt|msg)_1$/),
      type,
    });
  });

  test("refuses the body after any single flipped bit", async () => {
    const { headers, body } = sent(good);
    const bytes = Buffer.from(body);
    const refusal = header ? { refused: forged } : { refused: expect.any(String) };
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const flipped = Buffer.from(bytes);
      flipped[bit >> 3]! ^= 1 << (bit & 7);
      expect(await verify(headers, flipped)).toMatchObject(refusal);
    }
  });

  test("refuses what somebody else signed, and tells no secret", async () => {
    const refusal = await verifySent(send(good, [other], nowSeconds), make([one, two]));
    expect(refusal).toEqual(refused(forged));
    const said = JSON.stringify(refusal);
    expect(said).toMatch(/[0-9a-f]{12}/);
    if (header) for (const secret of secrets) expect(said).not.toContain(secret.slice(6) || secret);
  });

  test("accepts either secret while one is rolled", async () => {
    const rolling = make([one, two]);
    const [first, second] = [
      await verifySent(send(good, [one], nowSeconds), rolling),
      await verifySent(send(good, [two], nowSeconds), rolling),
    ];
    expect(first).not.toHaveProperty("refused");
    expect(second).not.toHaveProperty("refused");
    expect(first).not.toEqual(second);
  });
}

function judgesHeaders(
  candidate: Candidate,
  { name: signatureHeader, several }: NonNullable<Candidate["header"]>,
): void {
  const { secrets, make, send } = candidate;
  const [one, two, other] = secrets;
  const { signed, verify, verifySent } = bench(candidate);
  const goodHeaders = signed(good);

  test("refuses a signature with any one character changed", async () => {
    const header = goodHeaders[signatureHeader]!;
    for (let index = 0; index < header.length; index++) {
      for (const replacement of ["", "x", "0", "A", " ", "é", header[index]!.toUpperCase()]) {
        const changed = header.slice(0, index) + replacement + header.slice(index + 1);
        if (changed === header) continue;
        expect(await verify({ ...goodHeaders, [signatureHeader]: changed }, good)).toMatchObject({
          refused: expect.any(String),
        });
      }
    }
  });

  test("refuses a wrong secret, and names the configured ones by fingerprint only", async () => {
    expect(await verifySent(send(good, [other], nowSeconds), make([one, two]))).toHaveProperty(
      "diagnosis",
      expect.stringMatching(/no configured secret matches \(fingerprints [0-9a-f]{12}, [0-9a-f]{12}\)/),
    );
  });

  test("refuses when any of its headers is missing, blank or sent twice", async () => {
    for (const header of Object.keys(goodHeaders)) {
      const value = goodHeaders[header]!;
      const { [header]: _, ...rest } = goodHeaders;
      expect(await verify(rest, good)).toEqual(refused("signature_missing"));
      for (const wrong of ["  ", [value, value], [value], value.padEnd(100_000, "0")]) {
        expect(await verify({ ...rest, [header]: wrong }, good)).toEqual(refused("signature_malformed"));
      }
    }
  });

  test("refuses a signature header that node:http joined from two", async () => {
    const value = goodHeaders[signatureHeader]!;
    expect(await verify({ ...goodHeaders, [signatureHeader]: `${value}, ${value}` }, good)).toEqual(
      refused("signature_malformed"),
    );
  });

  if (several) {
    test("accepts any one matching signature of several", async () => {
      const request = send(good, [other, two], nowSeconds);
      expect(await verifySent(request, make([one, two]))).not.toHaveProperty("refused");
      expect(await verifySent(request, make([one]))).toEqual(refused("wrong_secret"));
    });
  }

  test("recognises a body that was parsed and written again on its way", async () => {
    expect(await verify(goodHeaders, JSON.stringify(json))).toEqual(refused("body_altered"));
    expect(await verify(goodHeaders, `${good}\n`)).toEqual(refused("body_altered"));
    const compact = JSON.stringify(json);
    expect(await verify(signed(compact), good)).toEqual(refused("body_altered"));
  });

  test("refuses a time in milliseconds as one of the future", async () => {
    expect(await verifySent(send(good, [one], nowSeconds * 1000))).toEqual(refused("future"));
  });

  test("says that a wrong secret's request is old, too", async () => {
    expect(await verifySent(send(good, [other], nowSeconds - 1000))).toHaveProperty(
      "diagnosis",
      expect.stringContaining("stale by 1000 s"),
    );
  });

  test("verifies an empty body", async () => {
    expect(await verify(signed(""), "")).not.toHaveProperty("refused");
  });
}

function judgesAge(candidate: Candidate): void {
  const { secrets, send, forged } = candidate;
  const { sent, verify, verifySent, at } = bench(candidate);

  test("accepts the edges of the tolerance and refuses one second beyond, both ways", async () => {
    expect(await at(nowSeconds - 300)).not.toHaveProperty("refused");
    expect(await at(nowSeconds + 300)).not.toHaveProperty("refused");
    expect(await at(nowSeconds - 421)).toEqual({
      refused: "stale",
      diagnosis: "stale by 421 s (tolerance 300 s)",
    });
    expect(await at(nowSeconds - 301)).toEqual(refused("stale"));
    expect(await at(nowSeconds + 301)).toEqual(refused("future"));
  });

  test("says forged, not stale, of an old request that somebody else signed", async () => {
    expect(await verifySent(send(good, [secrets[2]], nowSeconds - 1000))).toEqual(refused(forged));
  });

  test("refuses when the time is not a number", async () => {
    const { headers, body } = sent(good);
    expect(await verify(headers, body, undefined, NaN)).toHaveProperty("refused");
  });
}

function readsPayloads(candidate: Candidate): void {
  const { sent, signed, verify, verifySent, identify } = bench(candidate);

  test.each([
    ["an empty body", ""],
    ["bytes that are not UTF-8", Buffer.from(JSON.stringify({ ...json, name: "\xff" }), "latin1")],
    ["a byte order mark", `\uFEFF${good}`],
    ["broken JSON", '{"id":'],
    ["an array", "[]"],
    ["null", "null"],
    ["text", '"evt_1"'],
  ])("refuses %s as a payload", (_, body) => {
    expect(identify(body)).toEqual(refused("invalid_payload"));
  });

  test("survives JSON nested 200,000 levels deep, verified or not", async () => {
    const deep = good.replace(/\}$/, `,"data":{"object":${"[".repeat(200_000)}${"]".repeat(200_000)}}}`);
    const request = sent(deep);
    expect(await verifySent(request)).not.toHaveProperty("refused");
    for (const body of [deep, "[".repeat(30_000) + "]".repeat(30_000)]) {
      expect(await verify(signed(good), body)).toEqual(
        refused(candidate.header ? "wrong_secret" : "signature_malformed"),
      );
    }
    expect(identify(request.body)).toHaveProperty("type", candidate.type);
  });
}

function survivesAnything(candidate: Candidate): void {
  const { source, sent, signed, identify } = bench(candidate);

  test(`never throws and never accepts, whatever headers and bytes arrive (seed ${seed})`, () => {
    const headerNames = [...Object.keys(signed(good)), "svix-id", "svix-signature", "svix-timestamp"];
    const piece = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.constantFrom("t=1", "v1=", `t=${nowSeconds},v1=${"0".repeat(64)}`, "t=NaN", "t=-1", "t=1e9", "v1,"),
    );
    const value = fc.oneof(piece, fc.array(piece, { maxLength: 3 }), fc.constant(undefined));
    const headers = fc.dictionary(fc.constantFrom(...headerNames), value);
    const body = fc.oneof(
      fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
      fc.json().map((text) => Buffer.from(text)),
    );
    seeded(
      fc.property(headers, body, (anyHeaders, anyBody) => {
        const request = { headers: anyHeaders, body: anyBody };
        expect(source.verify(request, nowMs)).toHaveProperty("refused");
        source.identify(request);
      }),
    );
  });

  test(`gives only identities that can be stored, whatever the verified content (seed ${seed})`, () => {
    const odd = fc.oneof(
      fc.string({ unit: "binary", maxLength: 300 }),
      fc.constantFrom("\ud800", "a\u0000b", "あ".repeat(86), "a".repeat(256), ""),
      fc.jsonValue(),
    );
    const event = fc.record({
      id: odd,
      type: odd,
      account: odd,
      context: odd,
      created: odd,
      timestamp: odd,
      object: fc.constantFrom("event", "v2.core.event"),
      livemode: fc.boolean(),
      data: fc.record({ object: fc.jsonValue() }),
      related_object: odd,
    });
    seeded(
      fc.property(event, (content) => {
        const identity = identify(sent(JSON.stringify(content)).body);
        if (identity.refused !== undefined) return;
        const { eventId, type, account, refs, occurredAt } = identity;
        for (const text of [eventId, type, ...refs.flatMap((ref) => [ref.kind, ref.id])]) storable(text);
        if (account !== "") storable(account);
        if (occurredAt) expect(occurredAt.toISOString()).toMatch(/^\d{4}-/);
        expect(refs.length).toBeLessThanOrEqual(64);
      }),
    );
  });
}

function storable(text: string): void {
  expect(Buffer.byteLength(text)).toBeGreaterThan(0);
  expect(Buffer.byteLength(text)).toBeLessThanOrEqual(255);
  expect(Buffer.from(text).toString()).toBe(text);
  expect(text).not.toMatch(/\p{Cc}/u);
}

function seeded<T>(property: fc.IProperty<T>): void {
  fc.assert(property, { seed, numRuns: 400 });
}

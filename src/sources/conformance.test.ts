// What every source must do, whatever its scheme: one suite, run over each driver.
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { signHmac, signStandardWebhooks, signStripe } from "../testing/sign.ts";
import { hmac } from "./hmac.ts";
import type { RefusalReason, Source } from "./source.ts";
import { standardWebhooks } from "./standard-webhooks.ts";
import { stripe } from "./stripe.ts";

const nowMs = 1_790_000_000_500;
const nowSeconds = Math.floor(nowMs / 1000);
const json = { id: "evt_1", object: "event", type: "thing.done", livemode: true, name: "親子 – ✓" };
const good = JSON.stringify(json, null, 2);

/** Stands in the test's name; a failing run is repeated with FC_SEED. */
const seed = Number(process.env.FC_SEED ?? Date.now() % 2 ** 31);

/** One driver under test. */
interface Candidate {
  readonly secrets: readonly [string, string, string];
  readonly signatureHeader: string;
  /** False where the scheme carries one signature only. */
  readonly severalSignatures: boolean;
  readonly make: (secrets: readonly string[]) => Source;
  readonly sign: (
    body: string | Buffer,
    secrets: readonly string[],
    timestamp: number,
  ) => Record<string, string>;
}

const slackLike = {
  header: "x-signature",
  prefix: "v0=",
  timestamp: { header: "x-time", message: "v0:{timestamp}:{body}" },
} as const;

const candidates: Record<string, Candidate> = {
  stripe: {
    secrets: ["whsec_one", "whsec_two", "whsec_other"],
    signatureHeader: "stripe-signature",
    severalSignatures: true,
    make: (secrets) => stripe({ secrets }),
    sign: (body, secrets, timestamp) => signStripe(body, secrets, { timestamp }),
  },
  "standard-webhooks": {
    secrets: [1, 2, 3].map((byte) => `whsec_${Buffer.alloc(24, byte).toString("base64")}`) as never,
    signatureHeader: "webhook-signature",
    severalSignatures: true,
    make: (secrets) => standardWebhooks({ secrets }),
    sign: (body, secrets, timestamp) => signStandardWebhooks(body, secrets, { timestamp, id: "msg_1" }),
  },
  hmac: {
    secrets: ["one", "two", "other"],
    signatureHeader: "x-signature",
    severalSignatures: false,
    make: (secrets) => hmac({ secrets, ...slackLike, id: { path: "id" }, type: { path: "type" } }),
    sign: (body, [secret = ""], timestamp) =>
      signHmac(body, secret, { ...slackLike, timestamp: { ...slackLike.timestamp, value: timestamp } }),
  },
};

for (const [name, candidate] of Object.entries(candidates)) {
  describe(name, () => {
    judgesSignatures(candidate);
    judgesAge(candidate);
    readsPayloads(candidate);
    survivesAnything(candidate);
  });
}

/** The acts that the tests share: ask the source with the first secret, or another one. */
function bench({ secrets, make, sign }: Candidate) {
  const source = make([secrets[0]]);
  const signed = (body: string | Buffer, timestamp = nowSeconds) => sign(body, [secrets[0]], timestamp);
  const verify = (headers: Record<string, string | string[]>, body: string | Buffer, by = source) =>
    by.verify({ headers, body: Buffer.from(body) }, nowMs);
  const identify = (body: string | Buffer) =>
    source.identify({ headers: signed(body), body: Buffer.from(body) });
  const at = (timestamp: number) => verify(signed(good, timestamp), good);
  return { source, signed, verify, identify, at };
}

function refused(reason: RefusalReason) {
  return { refused: reason, diagnosis: expect.any(String) };
}

function judgesSignatures(candidate: Candidate): void {
  const { secrets, signatureHeader, severalSignatures, make, sign } = candidate;
  const [one, two, other] = secrets;
  const { signed, verify, identify } = bench(candidate);
  const goodHeaders = signed(good);

  test("accepts a good request and reads its identity", () => {
    expect(verify(goodHeaders, good)).toEqual({
      secretFingerprint: expect.stringMatching(/^[0-9a-f]{12}$/),
    });
    expect(identify(good)).toMatchObject({
      eventId: expect.stringMatching(/^(evt|msg)_1$/),
      type: "thing.done",
    });
  });

  test("refuses the body after any single flipped bit", () => {
    const bytes = Buffer.from(good);
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const flipped = Buffer.from(bytes);
      flipped[bit >> 3]! ^= 1 << (bit & 7);
      expect(verify(goodHeaders, flipped)).toMatchObject({ refused: "wrong_secret" });
    }
  });

  test("refuses a signature with any one character changed", () => {
    const header = goodHeaders[signatureHeader]!;
    for (let index = 0; index < header.length; index++) {
      for (const replacement of ["", "x", "0", "A", " ", "é", header[index]!.toUpperCase()]) {
        const changed = header.slice(0, index) + replacement + header.slice(index + 1);
        if (changed === header) continue;
        expect(verify({ ...goodHeaders, [signatureHeader]: changed }, good)).toMatchObject({
          refused: expect.any(String),
        });
      }
    }
  });

  test("refuses a wrong secret, and names the configured ones by fingerprint only", () => {
    const refusal = verify(sign(good, [other], nowSeconds), good, make([one, two]));
    expect(refusal).toEqual(refused("wrong_secret"));
    const said = JSON.stringify(refusal);
    expect(said).toMatch(/no configured secret matches \(fingerprints [0-9a-f]{12}, [0-9a-f]{12}\)/);
    for (const secret of secrets) expect(said).not.toContain(secret.slice(6) || secret);
  });

  test("refuses when any of its headers is missing, blank or sent twice", () => {
    for (const header of Object.keys(goodHeaders)) {
      const value = goodHeaders[header]!;
      const { [header]: _, ...rest } = goodHeaders;
      expect(verify(rest, good)).toEqual(refused("signature_missing"));
      expect(verify({ ...rest, [header]: "  " }, good)).toEqual(refused("signature_malformed"));
      expect(verify({ ...rest, [header]: [value, value] }, good)).toEqual(refused("signature_malformed"));
      expect(verify({ ...rest, [header]: [value] }, good)).toEqual(refused("signature_malformed"));
      expect(verify({ ...rest, [header]: value.padEnd(100_000, "0") }, good)).toEqual(
        refused("signature_malformed"),
      );
    }
  });

  test("refuses a signature header that node:http joined from two", () => {
    const value = goodHeaders[signatureHeader]!;
    expect(verify({ ...goodHeaders, [signatureHeader]: `${value}, ${value}` }, good)).toEqual(
      refused("signature_malformed"),
    );
  });

  test("accepts either secret while one is rolled", () => {
    const rolling = make([one, two]);
    for (const secret of [one, two]) {
      expect(verify(sign(good, [secret], nowSeconds), good, rolling)).not.toHaveProperty("refused");
    }
    const { secretFingerprint: first } = verify(sign(good, [one], nowSeconds), good, rolling) as never;
    const { secretFingerprint: second } = verify(sign(good, [two], nowSeconds), good, rolling) as never;
    expect(first).not.toBe(second);
  });

  if (severalSignatures) {
    test("accepts any one matching signature of several", () => {
      const headers = sign(good, [other, two], nowSeconds);
      expect(verify(headers, good, make([one, two]))).not.toHaveProperty("refused");
      expect(verify(headers, good, make([one]))).toEqual(refused("wrong_secret"));
    });
  }

  test("recognises a body that was parsed and written again on its way", () => {
    expect(verify(goodHeaders, JSON.stringify(json))).toEqual(refused("body_altered"));
    expect(verify(goodHeaders, `${good}\n`)).toEqual(refused("body_altered"));
    const compact = JSON.stringify(json);
    expect(verify(signed(compact), good)).toEqual(refused("body_altered"));
  });
}

function judgesAge(candidate: Candidate): void {
  const { secrets, sign } = candidate;
  const { source, signed, verify, at } = bench(candidate);

  test("accepts the edges of the tolerance and refuses one second beyond, both ways", () => {
    expect(at(nowSeconds - 300)).not.toHaveProperty("refused");
    expect(at(nowSeconds + 300)).not.toHaveProperty("refused");
    expect(at(nowSeconds - 421)).toEqual({
      refused: "stale",
      diagnosis: "stale by 421 s (tolerance 300 s)",
    });
    expect(at(nowSeconds - 301)).toEqual(refused("stale"));
    expect(at(nowSeconds + 301)).toEqual(refused("future"));
    expect(at(nowSeconds * 1000)).toEqual(refused("future"));
  });

  test("says wrong secret, not stale, of an old request that somebody else signed", () => {
    const refusal = verify(sign(good, [secrets[2]], nowSeconds - 1000), good);
    expect(refusal).toEqual(refused("wrong_secret"));
    expect(refusal).toHaveProperty("diagnosis", expect.stringContaining("stale by 1000 s"));
  });

  test("refuses when the time is not a number", () => {
    expect(source.verify({ headers: signed(good), body: Buffer.from(good) }, NaN)).toHaveProperty("refused");
  });
}

function readsPayloads(candidate: Candidate): void {
  const { signed, verify, identify } = bench(candidate);

  test("verifies an empty body and refuses it as a payload", () => {
    expect(verify(signed(""), "")).not.toHaveProperty("refused");
    expect(identify("")).toEqual(refused("invalid_payload"));
  });

  test.each([
    ["bytes that are not UTF-8", Buffer.from(JSON.stringify({ ...json, name: "\xff" }), "latin1")],
    ["a byte order mark", `\uFEFF${good}`],
    ["broken JSON", '{"id":'],
    ["an array", "[]"],
    ["null", "null"],
    ["text", '"evt_1"'],
  ])("refuses %s as a payload", (_, body) => {
    expect(identify(body)).toEqual(refused("invalid_payload"));
  });

  test("survives JSON nested 200,000 levels deep, verified or not", () => {
    const deep = good.replace(/\}$/, `,"data":{"object":${"[".repeat(200_000)}${"]".repeat(200_000)}}}`);
    expect(verify(signed(deep), deep)).not.toHaveProperty("refused");
    expect(verify(signed(good), deep)).toEqual(refused("wrong_secret"));
    expect(verify(signed(good), "[".repeat(30_000) + "]".repeat(30_000))).toEqual(refused("wrong_secret"));
    expect(identify(deep)).toHaveProperty("type", "thing.done");
  });
}

function survivesAnything(candidate: Candidate): void {
  const { source, signed, identify } = bench(candidate);

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
        const identity = identify(JSON.stringify(content));
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

// Signing as the senders do, for tests and for `ukemi send`. Written apart from the sources, which check it.
import { createHmac, randomUUID } from "node:crypto";

/** When the request claims to be signed. */
export interface SignOptions {
  /**
   * Seconds since 1970.
   * @default now
   */
  readonly timestamp?: number;
}

/** The headers of a request signed as Stripe does; several secrets give several `v1`, as while one is rolled. */
export function signStripe(
  body: string | Buffer,
  secret: string | readonly string[],
  options: SignOptions = {},
): { "stripe-signature": string } {
  const timestamp = options.timestamp ?? nowSeconds();
  const digests = listOf(secret).map(
    (key) => `v1=${createHmac("sha256", key).update(`${timestamp}.`).update(body).digest("hex")}`,
  );
  return { "stripe-signature": [`t=${timestamp}`, ...digests].join(",") };
}

/** What a Standard Webhooks request claims. */
export interface SignStandardWebhooksOptions extends SignOptions {
  /**
   * The message's id.
   * @default a new one
   */
  readonly id?: string;
}

/** The headers of a request signed by Standard Webhooks; secrets are `whsec_` and base64. */
export function signStandardWebhooks(
  body: string | Buffer,
  secret: string | readonly string[],
  options: SignStandardWebhooksOptions = {},
): { "webhook-id": string; "webhook-timestamp": string; "webhook-signature": string } {
  const id = options.id ?? `msg_${randomUUID()}`;
  const timestamp = options.timestamp ?? nowSeconds();
  const signatures = listOf(secret).map((text) => {
    const key = Buffer.from(text.replace(/^whsec_/, ""), "base64");
    return `v1,${createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest("base64")}`;
  });
  return {
    "webhook-id": id,
    "webhook-timestamp": String(timestamp),
    "webhook-signature": signatures.join(" "),
  };
}

/** How a plain HMAC is sent: the same names and defaults as the options of the source `hmac`. */
export interface SignHmacOptions {
  /** The header that carries the signature. */
  readonly header: string;
  /** @default "sha256" */
  readonly algorithm?: "sha1" | "sha256" | "sha512";
  /** @default "hex" */
  readonly encoding?: "hex" | "base64" | "base64url";
  /**
   * What stands before the signature in its header, such as `sha256=`.
   * @default ""
   */
  readonly prefix?: string;
  /** The signed time, where there is one. */
  readonly timestamp?: {
    readonly header: string;
    /** The value exactly as it is sent, in the sender's unit. */
    readonly value: number | string;
    /** @default "{timestamp}.{body}" */
    readonly message?: string;
  };
}

/** The headers of a request whose body (and time) is signed with an HMAC. */
export function signHmac(
  body: string | Buffer,
  secret: string,
  options: SignHmacOptions,
): Record<string, string> {
  const hmac = createHmac(options.algorithm ?? "sha256", secret);
  const { timestamp } = options;
  const template = timestamp ? (timestamp.message ?? "{timestamp}.{body}") : "{body}";
  const [before = "", after = ""] = template
    .split("{body}")
    .map((text) => text.replaceAll("{timestamp}", String(timestamp?.value)));
  const signature = hmac
    .update(before)
    .update(body)
    .update(after)
    .digest(options.encoding ?? "hex");
  return {
    [options.header.toLowerCase()]: `${options.prefix ?? ""}${signature}`,
    ...(timestamp && { [timestamp.header.toLowerCase()]: String(timestamp.value) }),
  };
}

function listOf(secret: string | readonly string[]): readonly string[] {
  return typeof secret === "string" ? [secret] : secret;
}

function nowSeconds(): number {
  return Math.floor(Date.now() / 1000);
}

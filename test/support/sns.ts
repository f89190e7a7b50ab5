// Amazon SNS as it speaks to an endpoint: keys, certificates (made here: no private key lies in the repository), signed messages.
import { generateKeyPairSync, randomUUID, sign, type KeyObject } from "node:crypto";
import type { SnsFetch } from "../../src/index.ts";

export const REGION_HOST = "sns.eu-west-1.amazonaws.com";
export const TOPIC = "arn:aws:sns:eu-west-1:123456789012:mail";

/** A key of "AWS" with the certificate for it and the address at which that lies. */
export interface Signer {
  readonly url: string;
  readonly pem: string;
  readonly key: KeyObject;
}

export interface SignerOptions {
  /** @default "SimpleNotificationService-0a1b" */
  readonly name?: string;
  readonly from?: Date;
  readonly until?: Date;
  readonly keyType?: "rsa" | "ec";
}

/** Makes a key and its certificate, valid from 2020 to 2090 unless it is said otherwise. */
export function createSigner(options: SignerOptions = {}): Signer {
  const { name = "SimpleNotificationService-0a1b", keyType = "rsa" } = options;
  const ca = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const keys = keyType === "rsa" ? ca : generateKeyPairSync("ec", { namedCurve: "P-256" });
  const { from = new Date(Date.UTC(2020, 0, 1)), until = new Date(Date.UTC(2090, 0, 1)) } = options;
  const pem = createCertificate({ publicKey: keys.publicKey, signedBy: ca.privateKey, from, until });
  return { url: `https://${REGION_HOST}/${name}.pem`, pem, key: keys.privateKey };
}

/** A notification as SNS signs it. What is changed in `fields` is signed too. */
export function signSns(
  signer: Signer,
  fields: Readonly<Record<string, string | null>> = {},
  version: "1" | "2" = "2",
): Record<string, string | null> {
  const message: Record<string, string | null> = {
    Type: "Notification",
    MessageId: randomUUID(),
    TopicArn: TOPIC,
    Message: "hello",
    Timestamp: new Date().toISOString(),
    SignatureVersion: version,
    SigningCertURL: signer.url,
    UnsubscribeURL: `https://${REGION_HOST}/?Action=Unsubscribe`,
    ...fields,
  };
  const names =
    message.Type === "Notification"
      ? ["Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"]
      : ["Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"];
  const text = names
    .filter((name) => typeof message[name] === "string")
    .map((name) => `${name}\n${message[name]}\n`)
    .join("");
  const hash = version === "1" ? "RSA-SHA1" : "RSA-SHA256";
  return { ...message, Signature: sign(hash, Buffer.from(text), signer.key).toString("base64") };
}

/** What SNS sends when somebody subscribes the endpoint. */
export function confirmationOf(token = "token+1"): Record<string, string> {
  return {
    Type: "SubscriptionConfirmation",
    Token: token,
    SubscribeURL: `https://${REGION_HOST}/?Action=ConfirmSubscription&Token=${token}`,
    Message: "You have chosen to subscribe",
  };
}

/** A `fetch` that serves these certificates, confirms every subscription, and keeps the log of what was asked. */
export function createAws(...signers: readonly Signer[]): { fetch: SnsFetch; asked: string[] } {
  const asked: string[] = [];
  const fetch: SnsFetch = async (url) => {
    asked.push(url);
    if (url.includes("Action=ConfirmSubscription")) return new Response("<SubscriptionArn/>");
    const signer = signers.find((one) => one.url === url);
    return signer ? new Response(signer.pem) : new Response("no such certificate", { status: 404 });
  };
  return { fetch, asked };
}

/** A bounce as SES's event publishing tells it. */
export function sesBounce(effect: string): Record<string, unknown> {
  return {
    eventType: "Bounce",
    bounce: {
      bounceType: "Permanent",
      bounceSubType: "General",
      bouncedRecipients: [
        {
          emailAddress: "gone@example.com",
          status: "5.1.1",
          diagnosticCode: "smtp; 550 5.1.1 user unknown",
        },
      ],
      timestamp: "2026-11-01T10:00:00.123Z",
      feedbackId: "0100",
    },
    mail: {
      timestamp: "2026-11-01T09:59:58.000Z",
      messageId: "EXAMPLE7c191be45",
      destination: ["gone@example.com", "there@example.com"],
      tags: { "ses:configuration-set": ["main"], ukemi_effect: [effect] },
    },
  };
}

interface CertificateParts {
  readonly publicKey: KeyObject;
  readonly signedBy: KeyObject;
  readonly from: Date;
  readonly until: Date;
}

/** An X.509 certificate (RFC 5280), of which Node can read but make none. */
function createCertificate({ publicKey, signedBy, from, until }: CertificateParts): string {
  const rsaSha256 = sequence(oid("2a864886f70d01010b"), der(0x05));
  const name = sequence(der(0x31, sequence(oid("550403"), der(0x0c, Buffer.from("sns.amazonaws.com")))));
  const time = (date: Date) =>
    der(0x18, Buffer.from(`${date.toISOString().slice(0, 19).replaceAll(/[-T:]/g, "")}Z`));
  const content = sequence(
    der(0xa0, der(0x02, Buffer.of(2))),
    der(0x02, Buffer.of(1)),
    rsaSha256,
    name,
    sequence(time(from), time(until)),
    name,
    publicKey.export({ type: "spki", format: "der" }),
  );
  const signature = der(0x03, Buffer.of(0), sign("RSA-SHA256", content, signedBy));
  const base64 = sequence(content, rsaSha256, signature).toString("base64");
  return `-----BEGIN CERTIFICATE-----\n${base64.replaceAll(/.{64}/g, "$&\n")}\n-----END CERTIFICATE-----\n`;
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return der(0x30, ...parts);
}

function oid(hex: string): Buffer {
  return der(0x06, Buffer.from(hex, "hex"));
}

function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

// The certificates that SNS signs with: fetched when first named, kept by their address.
import { X509Certificate, type KeyObject } from "node:crypto";
import { getPage, type SnsFetch } from "./sns-fetch.ts";

/** A certificate, ready for use. */
export interface Certificate {
  readonly key: KeyObject;
  /** The first 12 hex digits of its SHA-256. */
  readonly fingerprint: string;
  readonly fromMs: number;
  readonly untilMs: number;
}

/** What was fetched. Addresses must have been checked before they come here. */
export interface Certificates {
  /** The certificate at this address, where it is here. */
  find(url: string): Certificate | undefined;
  /**
   * Fetches it unless it is here and has not expired. Rejects where AWS gives no answer now; where there is no
   * certificate at this address, nothing is kept.
   */
  fetch(url: string, nowMs: number): Promise<void>;
}

/** SNS uses one for months in each region. */
const KEPT_MAX = 32;
/** Whoever knows a topic can make us ask for certificates that do not exist; so many at a time, and no more. */
const FETCHES_MAX = 8;

export function createCertificates(fetch: SnsFetch): Certificates {
  const kept = new Map<string, Certificate>();
  const underway = new Map<string, Promise<void>>();

  async function bring(url: string): Promise<void> {
    const certificate = await getCertificate(fetch, url);
    kept.delete(url);
    if (certificate) kept.set(url, certificate);
    const [oldest] = kept.keys();
    if (kept.size > KEPT_MAX && oldest !== undefined) kept.delete(oldest);
  }

  return {
    find: (url) => kept.get(url),
    async fetch(url, nowMs) {
      const certificate = kept.get(url);
      if (certificate && nowMs <= certificate.untilMs) return;
      let bringing = underway.get(url);
      if (!bringing) {
        if (underway.size >= FETCHES_MAX) throw new Error("too many certificates are being fetched");
        bringing = bring(url).finally(() => underway.delete(url));
        underway.set(url, bringing);
      }
      await bringing;
    },
  };
}

async function getCertificate(fetch: SnsFetch, url: string): Promise<Certificate | undefined> {
  const { status, text } = await getPage(fetch, url);
  if (status >= 500 || status === 429 || status === 408) {
    throw new Error(`${new URL(url).host} answered ${status}`);
  }
  return status === 200 && text !== undefined ? readCertificate(text) : undefined;
}

/** Reads a certificate with an RSA key; undefined where it is none. */
function readCertificate(pem: string): Certificate | undefined {
  try {
    const { publicKey, fingerprint256, validFrom, validTo } = new X509Certificate(pem);
    if (publicKey.asymmetricKeyType !== "rsa") return undefined;
    return {
      key: publicKey,
      fingerprint: fingerprint256.replaceAll(":", "").slice(0, 12).toLowerCase(),
      fromMs: Date.parse(validFrom),
      untilMs: Date.parse(validTo),
    };
  } catch {
    return undefined;
  }
}

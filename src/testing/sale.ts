// One invented sale: its terms, and its ids as Stripe makes them (a prefix and random letters and digits).
import { randomBytes } from "node:crypto";

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** A new id such as `pi_3Zk…`: the prefix and random base-62 characters. */
export function stripeId(prefix: string, length = 24): string {
  let text = `${prefix}_`;
  for (const byte of randomBytes(length)) text += alphabet[byte % alphabet.length];
  return text;
}

/** The ids of one sale, from the checkout to the refund. */
export interface SampleIds {
  readonly charge: string;
  readonly checkoutSession: string;
  readonly customer: string;
  readonly invoice: string;
  readonly paymentIntent: string;
  readonly paymentMethod: string;
  readonly refund: string;
  readonly subscription: string;
}

/** New ids for one sale: pass them to several `sampleEvent` calls whose events belong together. */
export function sampleIds(given: Partial<SampleIds> = {}): SampleIds {
  return {
    charge: stripeId("ch"),
    checkoutSession: stripeId("cs_test", 58),
    customer: stripeId("cus", 14),
    invoice: stripeId("in"),
    paymentIntent: stripeId("pi"),
    paymentMethod: stripeId("pm"),
    refund: stripeId("re"),
    subscription: stripeId("sub"),
    ...given,
  };
}

/** One sale, as the makers of sample objects see it. */
export interface Sale {
  readonly ids: SampleIds;
  /** Yen. */
  readonly amount: number;
  /** When the event happened, in seconds since 1970; the objects in it are a little older. */
  readonly created: number;
  readonly livemode: boolean;
  readonly metadata: Readonly<Record<string, string>>;
}

// How many refused requests one address may cause: an attacker must not make us diagnose, log and quarantine without end.
import { steadyMs } from "../clock.ts";
import { senderOf } from "../network.ts";

export interface Block {
  readonly waitSeconds: number;
  /** True for the first request that is turned away since the address began to cause too many. */
  readonly isNews: boolean;
}

export interface RefusalLimiter {
  /** How long this address must wait because it caused too many refusals; undefined if it may go on. */
  blocked(address: string): Block | undefined;
  /** Counts a refusal against the address. */
  refused(address: string): void;
  /** A verified request: whoever shares this address with an honest sender must not be able to shut it out. */
  verified(address: string): void;
}

interface Bucket {
  tokens: number;
  filledAt: number;
  trustedUntil: number;
  isBlocked: boolean;
}

const ADDRESSES_MAX = 10_000;
const TRUST_MS = 60 * 60_000;

/** A token bucket for each address, the longest unused thrown out first. */
export function createRefusalLimiter(perMinute: number, now: () => number = steadyMs): RefusalLimiter {
  const buckets = new Map<string, Bucket>();
  const perMs = perMinute / 60_000;
  let latest: string | undefined; // who comes again and again need not be moved each time

  function bucketOf(sender: string): Bucket {
    const at = now();
    const bucket = buckets.get(sender) ?? {
      tokens: perMinute,
      filledAt: at,
      trustedUntil: 0,
      isBlocked: false,
    };
    bucket.tokens = Math.min(perMinute, bucket.tokens + (at - bucket.filledAt) * perMs);
    bucket.filledAt = at;
    if (sender === latest) return bucket;
    latest = sender;
    buckets.delete(sender); // back in as the most recently used
    buckets.set(sender, bucket);
    if (buckets.size > ADDRESSES_MAX) buckets.delete(buckets.keys().next().value!);
    return bucket;
  }

  return {
    blocked(address) {
      const sender = senderOf(address);
      const bucket = buckets.has(sender) ? bucketOf(sender) : undefined;
      if (!bucket) return undefined;
      const wasBlocked = bucket.isBlocked;
      bucket.isBlocked = bucket.tokens < 1 && bucket.trustedUntil <= now();
      if (!bucket.isBlocked) return undefined;
      return { waitSeconds: Math.ceil((1 - bucket.tokens) / perMs / 1000), isNews: !wasBlocked };
    },
    refused(address) {
      const bucket = bucketOf(senderOf(address));
      bucket.tokens = Math.max(0, bucket.tokens - 1);
    },
    verified(address) {
      bucketOf(senderOf(address)).trustedUntil = now() + TRUST_MS;
    },
  };
}

// Finding business ids in a Stripe object, so that all events of one payment can be found by any of its ids.
import { isIdentifier, isObject } from "./payload.ts";
import type { JsonObject } from "./payload.ts";
import type { Ref } from "./source.ts";

/** A sender, or a mistake, may nest for ever or list millions: the walk is bounded in depth, breadth and yield. */
const limits = Object.freeze({ depth: 6, values: 10_000, refs: 64 });

const kindByPrefix: Readonly<Record<string, string>> = {
  pi: "payment_intent",
  ch: "charge",
  py: "charge",
  cs: "checkout_session",
  cus: "customer",
  in: "invoice",
  sub: "subscription",
  re: "refund",
  pyr: "refund",
};

const stripeId = /^(pi|ch|py|cs|cus|in|sub|re|pyr)_[A-Za-z0-9_]{1,250}$/;

// Only fields in which Stripe itself puts ids: what a buyer typed into a name or a custom field names no case, and
// words such as `in_transit` are no invoices.
const idField =
  /^(id|source|source_transaction|originating_transaction|(\w+_)?(payment|payment_intent|charge|checkout_session|customer|invoice|subscription|refund)s?)$/;

/** The kind of a Stripe id by its prefix; undefined for other text, and for client secrets, which start with an id. */
export function kindOfStripeId(id: string): string | undefined {
  const prefix = stripeId.exec(id)?.[1];
  return prefix === undefined || id.includes("_secret_") ? undefined : kindByPrefix[prefix];
}

/** Adds the Stripe ids in an object, nearest first, each once; metadata is left out, since anyone may write it. */
export function addStripeRefs(refs: RefList, root: unknown): void {
  // A queue instead of recursion: 200,000 levels of JSON are legal and would overflow the stack.
  const queue: { field: string; container: object; depth: number }[] = [];
  let values = 0;
  const see = (field: string, value: unknown, depth: number) => {
    values++;
    if (typeof value === "string") {
      const kind = kindOfStripeId(value);
      if (kind !== undefined && idField.test(field)) refs.add(kind, value);
    } else if (typeof value === "object" && value !== null && depth < limits.depth) {
      queue.push({ field, container: value, depth });
    }
  };
  const enough = () => refs.full() || values >= limits.values;
  see("", root, 0);
  for (const { field, container, depth } of queue) {
    if (Array.isArray(container)) {
      for (const element of container) {
        if (enough()) return;
        see(field, element, depth + 1); // an element of a list stands in the list's own field
      }
    } else {
      for (const key of Object.keys(container)) {
        if (enough()) return;
        if (key !== "metadata") see(key, (container as JsonObject)[key], depth + 1);
      }
    }
  }
}

/** A list of refs without repetition that takes only proper ids and stops when it is full. */
export interface RefList {
  readonly list: readonly Ref[];
  full(): boolean;
  /** Adds the id; what is no identifier is passed over. */
  add(kind: unknown, id: unknown): void;
}

/** Makes an empty list. */
export function createRefList(): RefList {
  const list: Ref[] = [];
  const full = () => list.length >= limits.refs;
  return {
    list,
    full,
    add(kind, id) {
      if (full() || !isIdentifier(kind) || !isIdentifier(id)) return;
      if (!list.some((ref) => ref.id === id && ref.kind === kind)) list.push({ kind, id });
    },
  };
}

/** The metadata of a Stripe object, and for invoices that of their subscription after it. */
export function metadataOf(object: unknown): readonly JsonObject[] {
  if (!isObject(object)) return [];
  const parent = isObject(object.parent) ? object.parent : {};
  const details = isObject(parent.subscription_details) ? parent.subscription_details : {};
  return [object.metadata, details.metadata].filter(isObject);
}

/** The first proper value of a metadata key. */
export function metadataValue(object: unknown, key: string): string | undefined {
  return metadataOf(object)
    .map((metadata) => (Object.hasOwn(metadata, key) ? metadata[key] : undefined))
    .find(isIdentifier);
}

// Reading a Stripe event's identity: snapshot events (`event`) and thin events (`v2.core.event`).
import { invalidOption } from "./options.ts";
import { isIdentifier, isObject, readDate, readJsonObject } from "./payload.ts";
import type { JsonObject } from "./payload.ts";
import { addStripeRefs, createRefList, kindOfStripeId, metadataValue } from "./refs.ts";
import { refuse } from "./signature.ts";
import type { Identity, Ref, Refusal } from "./source.ts";

/** What is taken from a Stripe event, and what is skipped. */
export interface StripeReading {
  /** Work on live (true) or test (false) events only; the others are stored and skipped. Unset: work on both. */
  readonly livemode?: boolean;
  /** Further business ids to find the event by. */
  readonly refs?: {
    /** Metadata keys of the event's object (an invoice's subscription too); the key becomes the ref's kind. */
    readonly metadata?: readonly string[];
  };
  /** Whose event it is; unset means nobody's in particular. */
  readonly tenant?: StripeTenant;
}

/** Where a Stripe event's tenant comes from. */
export type StripeTenant =
  /** The connected account (Connect), or the context (organisations). */
  | "account"
  | {
      /** A metadata key of the event's object (an invoice's subscription too). */
      readonly metadata: string;
      /**
       * Believe the metadata of connected accounts' events too. Their holders can write it, and so name any tenant.
       * @default false
       */
      readonly connected?: boolean;
    }
  /** Everything that arrives here is this tenant's. */
  | { readonly fixed: string };

/** Checks the options at construction. */
export function checkStripeReading({ livemode, tenant }: StripeReading): void {
  if (livemode !== undefined && typeof livemode !== "boolean") {
    throw invalidOption("stripe", "livemode is neither true nor false");
  }
  if (tenant === undefined || tenant === "account") return;
  if (!isIdentifier("fixed" in tenant ? tenant.fixed : tenant.metadata)) {
    throw invalidOption("stripe", 'tenant must be "account", { metadata: "key" } or { fixed: "name" }');
  }
}

/** Reads the identity out of a verified body. */
export function identifyStripeEvent(body: Buffer, reading: StripeReading): Identity | Refusal {
  const parsed = readJsonObject(body);
  if ("refused" in parsed) return parsed;
  const event = parsed.object;
  const thin = event.object === "v2.core.event";
  if (!thin && event.object !== "event") {
    return notAnEvent("its `object` is neither `event` nor `v2.core.event`");
  }
  const { id, type, livemode } = event;
  const account = event.account ?? event.context ?? "";
  if (!isIdentifier(id)) return notAnEvent("its `id` is missing or not a proper id");
  if (!isIdentifier(type)) return notAnEvent("its `type` is missing or not a proper type");
  if (account !== "" && !isIdentifier(account))
    return notAnEvent("its `account` or `context` is not a proper id");
  if (typeof livemode !== "boolean") return notAnEvent("its `livemode` is not a boolean");

  const object = isObject(event.data) ? event.data.object : undefined;
  return {
    eventId: id,
    type,
    account,
    livemode,
    tenant: readTenant(reading.tenant, account, object),
    occurredAt: readDate(event.created),
    refs: readRefs(event, object, reading.refs?.metadata ?? []),
    ...(reading.livemode !== undefined && reading.livemode !== livemode && { skip: otherMode(livemode) }),
  };
}

function readTenant(tenant: StripeTenant | undefined, account: string, object: unknown): string | null {
  if (tenant === undefined) return null;
  if (tenant === "account") return account || null;
  if ("fixed" in tenant) return tenant.fixed;
  // A connected account's holder writes its metadata and could name another tenant there.
  if (account !== "" && tenant.connected !== true) return null;
  return metadataValue(object, tenant.metadata) ?? null;
}

function readRefs(event: JsonObject, object: unknown, metadataKeys: readonly string[]): readonly Ref[] {
  const refs = createRefList();
  // The keys that were asked for come first: a long object must not crowd them out.
  for (const key of metadataKeys) refs.add(key, metadataValue(object, key));
  addStripeRefs(refs, object);
  const related = isObject(event.related_object) ? event.related_object : {};
  if (typeof related.id === "string") refs.add(kindOfStripeId(related.id) ?? related.type, related.id);
  return refs.list;
}

function otherMode(livemode: boolean): string {
  return livemode
    ? "a live event; this source works on test events only"
    : "a test event; this source works on live events only";
}

function notAnEvent(problem: string): Refusal {
  return refuse("invalid_payload", `the body is not a Stripe event: ${problem}`);
}

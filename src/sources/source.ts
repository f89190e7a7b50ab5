// The contract of a source: who may send to us, and how we know that it is them.

/** Header names in lower case, as `node:http` gives them. */
export type HeaderMap = Readonly<Record<string, string | readonly string[] | undefined>>;

/** What arrived, byte for byte. */
export interface SignedRequest {
  readonly headers: HeaderMap;
  /** The body exactly as received: a signature covers bytes, not JSON. */
  readonly body: Buffer;
}

/** Why a request was refused. Goes to the log, the metrics and the quarantine; never to the caller. */
export type RefusalReason =
  | "signature_missing"
  | "signature_malformed"
  | "wrong_secret"
  | "wrong_signature"
  | "wrong_sender"
  | "body_altered"
  | "stale"
  | "future"
  | "content_encoding"
  | "body_read_before"
  | "invalid_payload"
  | "store_refused"
  | "source_failed";

/** A refusal with its diagnosis, written for the operator. It names no secret and quotes no signature. */
export interface Refusal {
  readonly refused: RefusalReason;
  readonly diagnosis: string;
}

/** The request was signed by the holder of one of our secrets. */
export interface Verified {
  readonly refused?: undefined;
  /** Which secret matched, as its fingerprint (never the secret). */
  readonly secretFingerprint: string;
}

/** A business id found in an event, such as `{ kind: "payment_intent", id: "pi_…" }`. */
export interface Ref {
  readonly kind: string;
  readonly id: string;
}

/** What an event is, read from content that was verified. */
export interface Identity {
  readonly refused?: undefined;
  /** The sender's id of the event: the deduplication key within (source, account, livemode). */
  readonly eventId: string;
  readonly type: string;
  /** Whose event it is where one sender speaks for many (Stripe Connect); "" otherwise. */
  readonly account: string;
  /** False for a sender's test mode. */
  readonly livemode: boolean;
  readonly tenant: string | null;
  /** When it happened, as the sender says. */
  readonly occurredAt: Date | null;
  readonly refs: readonly Ref[];
  /** Set where the event is stored but must not be worked on, with the reason. */
  readonly skip?: string;
}

/** An event of which only its JSON nature is known. */
export type UnknownEvent = Readonly<Record<string, unknown>>;

/** The events of a union that a type or a pattern covers: `*` stands for anything. All of them where none is named so. */
export type EventOf<E, T extends string> = unknown extends E
  ? UnknownEvent
  : [CoveredBy<E, T>] extends [never]
    ? E
    : CoveredBy<E, T>;

type CoveredBy<E, T extends string> = E extends { readonly type: infer Type }
  ? Type extends PatternText<T>
    ? E
    : never
  : never;

type PatternText<T extends string> = T extends `${infer Head}*${infer Tail}`
  ? `${Head}${string}${PatternText<Tail>}`
  : T;

/**
 * A sender that Ukemi accepts events from. `verify` and `identify` are total: they refuse, they never throw.
 * `E` is the union of its events, told apart by `type`, for the types of handlers.
 */
export interface Source<E = unknown> {
  /** Never set: it only carries the type of the events. */
  readonly events?: E;
  /** What kind of source this is: `stripe`, `standard-webhooks`, `hmac`, `sns`. */
  readonly kind: string;
  /** Addresses or ranges (CIDR) that may send; empty means any. */
  readonly allowedAddresses: readonly string[];
  /**
   * Fetches what `verify` will need, such as a certificate. Nothing is verified yet: bound what a stranger can make it
   * do. Where it rejects, the sender is asked to try again (503). Not called for addresses that were refused too often.
   */
  prepare?(request: SignedRequest, nowMs: number): Promise<void>;
  /** Checks the signature and its age; `nowMs` is the database's time. Without `diagnose`, finding out why is not worth the work. */
  verify(request: SignedRequest, nowMs: number, options?: { readonly diagnose: boolean }): Verified | Refusal;
  /** Reads the identity out of a verified request. */
  identify(request: SignedRequest): Identity | Refusal;
  /**
   * What the sender expects beside the answer, such as the confirmation of a subscription. Runs when the event is
   * stored, and again whenever it comes again. Where it rejects, the sender is asked to try again (503).
   */
  conclude?(request: SignedRequest, identity: Identity): Promise<void>;
}

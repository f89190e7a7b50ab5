// What a handler is given.
import type { Effects } from "../effects/effects.ts";
import { UkemiError } from "../errors.ts";
import type { EventOf, UnknownEvent } from "../sources/source.ts";
import type { Job } from "../storage/claim.ts";
import type { HandlerTransaction } from "../storage/handler-statements.ts";
import type { AuditEntry, Trail } from "../storage/settle.ts";
import { terminal } from "./outcome.ts";

/** The job behind a try. */
export interface JobFacts {
  readonly id: string;
  readonly queue: string;
  readonly handler: string;
  readonly tenant: string | null;
  readonly key: string | null;
  /** Which try this is, counted from 1. */
  readonly attempt: number;
  readonly maxAttempts: number;
  /** How often it was running when its process died. */
  readonly recoveries: number;
}

/** How and when the event came to us. */
export interface Received {
  /** Our id of the event. */
  readonly id: string;
  readonly source: string;
  readonly account: string;
  readonly livemode: boolean;
  readonly at: Date;
  /** The raw bytes, as they were signed. */
  readonly body: Buffer;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
}

/** Our own ids of what an event is about, by kind. `billing` and `office` (or `tenant`) are columns of the outcome. */
export type Links = Readonly<Record<string, string | number | bigint | null | undefined>>;

/** What an event brings beside its content. */
export interface EventTools {
  /** Ties our own ids to the event; they are stored with the handler's commit, and the event is found by them. */
  link(ids: Links): void;
}

/** Writes a line to the audit, in the handler's commit. The same line is written once, however often the handler runs. */
export type Audit = (
  action: string,
  entry?: {
    readonly target?: string | number | bigint;
    readonly details?: Readonly<Record<string, unknown>>;
    /** @default the event or job, the handler, the action and the target */
    readonly dedupe?: string;
  },
) => Promise<void>;

interface HandlerContext<Tx> {
  /** The handler's transaction: what is written here is committed together with the job's completion, or not at all. */
  readonly tx: Tx;
  readonly audit: Audit;
  /** Acts on the outside world: written down in the handler's commit, carried out afterwards, each once. */
  readonly effects: Effects;
  readonly job: JobFacts;
  /** Aborted when the time limit is over, the lease is lost or the worker has to stop. */
  readonly signal: AbortSignal;
  /** The W3C trace context of this try, to be passed on to others. */
  readonly traceparent: string;
}

/** What a handler of events is given. */
export interface EventContext<E = UnknownEvent, Tx = HandlerTransaction> extends HandlerContext<Tx> {
  /** The event as the sender wrote it. */
  readonly event: E & EventTools;
  readonly received: Received;
}

/** What a handler of tasks is given. */
export interface TaskContext<P = unknown, Tx = HandlerTransaction> extends HandlerContext<Tx> {
  readonly payload: P;
}

export type EventHandler<E, T extends string, Tx> = (context: EventContext<EventOf<E, T>, Tx>) => unknown;
export type TaskHandler<P, Tx> = (context: TaskContext<P, Tx>) => unknown;

const TEXT_MAX = 255;

/** Collects what a handler says beside its writes. */
export function createTrail(job: Job): Trail & { readonly audit: Audit; readonly link: EventTools["link"] } {
  const audits: AuditEntry[] = [];
  const links = new Map<string, string>();
  const about = job.event?.id ?? job.id;
  return {
    audits,
    links,
    // async, so that a later version may wait here; what is refused is refused at the line that said it
    async audit(action, { target, details = {}, dedupe } = {}) {
      const text = target === undefined ? null : String(target);
      requireText("audit's action", action);
      if (text !== null) requireText("audit's target", text);
      // of its own choosing: within the tenant, so that one never suppresses another's
      const chosen = dedupe === undefined ? undefined : `${job.tenant ?? ""}|${dedupe}`;
      const dedupeKey = chosen ?? [about, job.handler, action, text ?? ""].join("|");
      // the same line said twice in one try is one line too: the statement could not insert it twice
      if (audits.some((entry) => entry.dedupeKey === dedupeKey)) return;
      audits.push({ action, target: text, details, dedupeKey });
    },
    link(ids) {
      for (const [kind, id] of Object.entries(ids)) {
        if (id === null || id === undefined) continue;
        requireText("link's kind", kind);
        requireText(`link's ${kind}`, String(id));
        links.set(kind, String(id));
      }
    },
  };
}

function requireText(what: string, text: string): void {
  if (text !== "" && text.length <= TEXT_MAX && !/[\p{Cc}\p{Cs}]/u.test(text)) return;
  throw new UkemiError(
    "invalid_option",
    `${what} must be 1 to ${TEXT_MAX} characters without control characters.`,
  );
}

/** The job's facts, its event or its payload: everything but the transaction. Throws terminal where the bytes are gone. */
export function readContent(job: Job, link: EventTools["link"]): Record<string, unknown> {
  const facts: JobFacts = {
    id: job.id,
    queue: job.queue,
    handler: job.handler,
    tenant: job.tenant,
    key: keyOf(job),
    attempt: job.attempt + 1,
    maxAttempts: job.maxAttempts,
    recoveries: job.recoveries,
  };
  if (!job.event) return { job: facts, payload: parse(job.payload ?? "null") };
  const { id, source, account, livemode, receivedAt, body, headers } = job.event;
  if (body === null) throw terminal("the event's body is no longer kept");
  const event = parse(body.toString());
  if (typeof event !== "object" || event === null) throw terminal("the event's body is not a JSON object");
  // not enumerable: a copy or a log of the event is what the sender wrote
  Object.defineProperty(event, "link", { value: link });
  const received: Received = {
    id,
    source,
    account,
    livemode,
    at: receivedAt,
    body,
    headers: parse(headers ?? "{}") as Received["headers"],
  };
  return { job: facts, event, received };
}

/** As the application gave it: a tenant's keys are kept with the tenant before them. */
function keyOf({ key, tenant }: Job): string | null {
  const prefix = `${tenant}/`;
  return key !== null && tenant !== null && key.startsWith(prefix) ? key.slice(prefix.length) : key;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw terminal("the stored content is not JSON"); // its own message would quote the content
  }
}

const TRACEPARENT = /^00-([0-9a-f]{32})-[0-9a-f]{16}-([0-9a-f]{2})$/;

/** A step of the trace in which the event came; a new one where it came without. */
export function nextTrace(job: Job): { readonly traceparent: string; readonly traceId: string } {
  const [, traceId = randomHex(16), flags = "00"] = TRACEPARENT.exec(job.event?.traceparent ?? "") ?? [];
  return { traceId, traceparent: `00-${traceId}-${randomHex(8)}-${flags}` };
}

const RANDOM_BYTES = 4096;
const random = Buffer.alloc(RANDOM_BYTES);
let randomAt = RANDOM_BYTES;

/** Asks for many random bytes at once: a call costs as much as a thousand of them. */
function randomHex(bytes: number): string {
  if (randomAt + bytes > RANDOM_BYTES) {
    crypto.getRandomValues(random);
    randomAt = 0;
  }
  randomAt += bytes;
  return random.toString("hex", randomAt - bytes, randomAt);
}

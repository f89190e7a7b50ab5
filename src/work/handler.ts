// Handlers: what the application wants done, for which events or under which name, and how.
import type { Performer } from "../effects/performer.ts";
import { UkemiError } from "../errors.ts";
import { handlerOf, queueOf } from "../storage/effects.ts";
import type { HandlerTransaction } from "../storage/handler-statements.ts";
import { readPolicy, type Policy, type Retry } from "./policy.ts";
import type { TransactionOwner } from "./transaction-owner.ts";

/** How a handler's jobs are worked on. */
export interface HandlerOptions<Tx = HandlerTransaction> {
  /**
   * The handler's name: stable across deploys, unique in the database.
   * @default the source and the pattern, such as `stripe/payment_intent.succeeded`
   */
  readonly name?: string;
  /**
   * The queue of its jobs. In `inline` the handler runs before the sender is answered, in one transaction with the event.
   * @default "default"
   */
  readonly queue?: string;
  /**
   * Jobs with a higher number run first.
   * @default 0
   */
  readonly priority?: number;
  /** @default "quick" */
  readonly retry?: Retry;
  /**
   * After this many milliseconds the handler's signal is aborted and the try counts as failed.
   * @default 30000
   */
  readonly timeLimitMs?: number;
  /**
   * Several handlers run one after another in one transaction, and share its commit: for many short handlers of plain SQL.
   * Settings and locks of the session or transaction are refused. A handler may run twice before its commit: nothing but
   * its `tx` may depend on it.
   * @default false
   */
  readonly sharedCommit?: boolean;
  /** Who opens the handler's transaction, where that is not Ukemi: an ORM that must own it. */
  readonly transaction?: TransactionOwner<Tx>;
}

/** The same for handlers of events. */
export interface EventHandlerOptions<Tx = HandlerTransaction> extends HandlerOptions<Tx> {
  /** Jobs of one key run one at a time: the event's tenant, or one of the business ids found in it. */
  readonly key?: "tenant" | { readonly ref: string };
  /**
   * Jobs of one key run in the order in which their events were stored, also while the first of them is being retried.
   * @default false
   */
  readonly ordered?: boolean;
}

/** What a handler is for. */
export type HandlerTarget =
  | { readonly kind: "handler"; readonly source: string; readonly pattern: string }
  | { readonly kind: "task" }
  | { readonly kind: "effect"; readonly performer: Performer };

/** A handler made ready. */
export interface Handler {
  readonly name: string;
  readonly target: HandlerTarget;
  readonly queue: string;
  readonly priority: number;
  readonly policy: Policy;
  readonly timeLimitMs: number | undefined;
  readonly keyBy: string | null;
  readonly ordered: boolean;
  readonly sharedCommit: boolean;
  readonly transaction: TransactionOwner<unknown> | undefined;
  readonly run: (context: never) => unknown;
}

/** The queue whose handlers run before the sender is answered. */
export const INLINE = "inline";

const NAME = /^[\p{L}\p{N}][\p{L}\p{N} _.*:/-]{0,127}$/u;
const QUEUE = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/;

/** Checks what the application asked for, and makes it ready. */
export function readHandler(
  target: HandlerTarget,
  name: string,
  run: Handler["run"],
  options: EventHandlerOptions<unknown> = {},
): Handler {
  const {
    queue = "default",
    priority = 0,
    timeLimitMs,
    key,
    ordered = false,
    sharedCommit = false,
  } = options;
  const wrong = (what: string) =>
    new UkemiError("invalid_option", `The handler ${JSON.stringify(name)}: ${what}.`);
  if (typeof run !== "function") throw wrong("it is not a function");
  if (!NAME.test(name)) throw wrong("its name must be 1 to 128 letters, digits, spaces or any of _.*:/-");
  if (!QUEUE.test(queue)) throw wrong("queue must be 1 to 64 letters, digits, dots, dashes or underscores");
  if (!Number.isInteger(priority) || Math.abs(priority) > 32_767)
    throw wrong("priority must be a whole number from -32767 to 32767");
  if (timeLimitMs !== undefined && !(timeLimitMs >= 1 && timeLimitMs <= 86_400_000)) {
    throw wrong("timeLimitMs must be from 1 to 86400000");
  }
  if (key !== undefined && key !== "tenant" && !/^[^\p{Cc}]{1,64}$/u.test(key.ref)) {
    throw wrong('key must be "tenant" or { ref: "a kind of ref" }');
  }
  if (ordered && key === undefined)
    throw wrong("ordered needs a key: the order is that of jobs with the same key");
  if (queue === INLINE && target.kind === "task")
    throw wrong("a task cannot be inline: nobody waits for its answer");
  if (queue === INLINE && options.transaction) {
    throw wrong("an inline handler runs in the transaction that stores its event: it cannot bring its own");
  }
  if (queue === INLINE && key !== undefined)
    throw wrong("an inline handler cannot have a key: it does not wait for others");
  if (typeof sharedCommit !== "boolean") throw wrong("sharedCommit must be true or false");
  if (sharedCommit && queue === INLINE)
    throw wrong("an inline handler commits with its event: it cannot share the commit of others");
  if (sharedCommit && options.transaction)
    throw wrong("a handler whose transaction is opened by an ORM cannot share the commit of others");
  return {
    name,
    target,
    queue,
    priority,
    policy: readPolicy(options.retry ?? "quick"),
    timeLimitMs,
    keyBy: key === undefined ? null : key === "tenant" ? "tenant" : key.ref,
    ordered,
    sharedCommit,
    transaction: options.transaction,
    run,
  };
}

/** The handler behind which effects of a kind are carried out. */
export function effectHandler(performer: Performer): Handler {
  return {
    name: handlerOf(performer.kind),
    target: { kind: "effect", performer },
    queue: queueOf(performer.kind),
    priority: 0,
    policy: { name: "effect", ...performer.retry },
    timeLimitMs: undefined,
    keyBy: null,
    ordered: false,
    sharedCommit: false,
    transaction: undefined,
    run: () => {},
  };
}

/** True where the pattern covers the type: `*` stands for anything. The database asks the same by LIKE. */
export function matches(pattern: string, type: string): boolean {
  const [head = "", ...parts] = pattern.split("*");
  if (parts.length === 0) return type === head;
  const tail = parts.pop()!;
  if (!type.startsWith(head) || !type.endsWith(tail) || type.length < head.length + tail.length) return false;
  let from = head.length;
  for (const part of parts) {
    const at = type.indexOf(part, from);
    if (at === -1) return false;
    from = at + part.length;
  }
  return from <= type.length - tail.length;
}

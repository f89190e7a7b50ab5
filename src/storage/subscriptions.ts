// Handlers' standing claims on event types, as every receiver sees them.
import type { Queryable } from "./postgres.ts";

/** A handler's claim on the events of a source. */
export interface Subscription {
  /** The handler's name: stable across deploys, unique in the database. */
  readonly name: string;
  readonly source: string;
  /** An event type, or a pattern in which `*` stands for anything: `payment_intent.*`. */
  readonly pattern: string;
  readonly queue?: string;
  /** Higher runs first. @default 0 */
  readonly priority?: number;
  /** @default 4 */
  readonly maxAttempts?: number;
  /** @default "quick" */
  readonly policy?: string;
  /** Jobs of one key run one at a time: `tenant`, or the kind of a ref. */
  readonly keyBy?: string | null;
  /** And in order. */
  readonly ordered?: boolean;
}

/** Registers the claim, or changes it. From its commit on, every receiver makes jobs for it. */
export async function registerSubscription(client: Queryable, subscription: Subscription): Promise<void> {
  await client.query(
    `insert into ukemi.subscriptions as s
       (name, source, pattern, queue, priority, max_attempts, policy, key_by, ordered)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
     on conflict (name) do update
     set source = excluded.source, pattern = excluded.pattern, queue = excluded.queue,
       priority = excluded.priority, max_attempts = excluded.max_attempts, policy = excluded.policy,
       key_by = excluded.key_by, ordered = excluded.ordered, active = true
     -- every start of every worker comes here: do not write, nor lock, what has not changed
     where (s.source, s.pattern, s.queue, s.priority, s.max_attempts, s.policy, s.ordered, s.active)
       <> (excluded.source, excluded.pattern, excluded.queue, excluded.priority, excluded.max_attempts,
         excluded.policy, excluded.ordered, true)
       or s.key_by is distinct from excluded.key_by`,
    [
      subscription.name,
      subscription.source,
      subscription.pattern,
      subscription.queue ?? "default",
      subscription.priority ?? 0,
      subscription.maxAttempts ?? 4,
      subscription.policy ?? "quick",
      subscription.keyBy ?? null,
      subscription.ordered ?? false,
    ],
  );
}

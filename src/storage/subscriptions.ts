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
}

/** Registers the claim, or changes it. From its commit on, every receiver makes jobs for it. */
export async function registerSubscription(client: Queryable, subscription: Subscription): Promise<void> {
  await client.query(
    `insert into ukemi.subscriptions (name, source, pattern, queue)
     values ($1, $2, $3, $4)
     on conflict (name) do update
     set source = excluded.source, pattern = excluded.pattern, queue = excluded.queue, active = true`,
    [subscription.name, subscription.source, subscription.pattern, subscription.queue ?? "default"],
  );
}

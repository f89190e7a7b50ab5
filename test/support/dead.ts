// Dead letters without waiting for them to die, and ways to look at what became of them.
import { createOperate, type Operate } from "../../src/operate/operate.ts";
import type { NewEvent } from "../../src/storage/events.ts";
import type { Pool } from "../../src/storage/postgres.ts";
import { registerSubscription, type Subscription } from "../../src/storage/subscriptions.ts";
import { storeElsewhere } from "./work.ts";

export const MANDATE = { actor: "test:jane", reason: "the cause is mended" };

/** The handler that the dead letters made here belong to. */
export const HANDLER = "stripe/payment_intent.succeeded";

export function operateOn(pool: Pool): Operate {
  return createOperate({ open: () => Promise.resolve(pool) });
}

/** Registers a handler as a worker would, though none runs. */
export function register(pool: Pool, changes: Partial<Subscription> = {}): Promise<void> {
  return registerSubscription(pool, {
    name: HANDLER,
    source: "stripe",
    pattern: "payment_intent.succeeded",
    ...changes,
  });
}

/** Stores events and lets every job that is ready or waits die as a worker would. Returns the ids of the dead by event. */
export async function makeDead(
  { url, pool }: { readonly url: string; readonly pool: Pool },
  eventIds: readonly string[],
  changes: Partial<NewEvent> & { readonly errorClass?: string; readonly death?: string } = {},
): Promise<Map<string, number>> {
  const { errorClass = "TypeError", death = "exhausted", ...event } = changes;
  await storeElsewhere(url, eventIds, event);
  await pool.query(
    `with died as (
       update ukemi.jobs
       set state = 'dead', death = $2, finished_at = ukemi.now(), attempt = max_attempts, key_held = false,
         error_class = $1, error_message = $1 || ' of job ' || id
       where state in ('ready', 'waiting')
       returning id, event, error_message
     ),
     tries as (
       insert into ukemi.attempts (job, number, outcome, error_class, error_message, error_stack)
       select id, 4, 'dead', $1, error_message, 'at there' from died
     )
     insert into ukemi.event_outcomes (event, status, error_message, processed_at)
     select distinct on (event) event, 'failed', error_message, ukemi.now() from died
     on conflict (event) do update set status = 'failed', error_message = excluded.error_message`,
    [errorClass, death],
  );
  const { rows } = await pool.query<{ event_id: string; id: string }>(
    `select e.event_id, j.id from ukemi.jobs j join ukemi.events e on e.id = j.event
     where j.state = 'dead' and e.event_id = any($1)`,
    [eventIds],
  );
  return new Map(rows.map((row) => [row.event_id, Number(row.id)]));
}

/** Removes bodies as retention does. */
export async function removeBodies(pool: Pool, eventIds: readonly string[]): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query("begin");
    await client.query("set local ukemi.retention = 'on'");
    await client.query(
      "delete from ukemi.event_bodies where event in (select id from ukemi.events where event_id = any($1))",
      [eventIds],
    );
    await client.query("commit");
  } finally {
    client.release();
  }
}

/** Makes the audit refuse an action from now on. */
export async function refuseAudit(pool: Pool, action: string): Promise<void> {
  await pool.query(`
    create function refuse_audit() returns trigger language plpgsql as $$
      begin raise exception 'the audit is full'; end $$;
    create trigger refuse_audit before insert on ukemi.audit_log
      for each row when (new.action = '${action}') execute function refuse_audit()`);
}

export async function readAudit(pool: Pool): Promise<readonly Record<string, unknown>[]> {
  const { rows } = await pool.query<Record<string, unknown>>(
    "select actor, role, action, target, tenant, details from ukemi.audit_log order by id",
  );
  return rows;
}

/** What became of each event. */
export async function readOutcomes(pool: Pool): Promise<Record<string, string>> {
  const { rows } = await pool.query<{ event_id: string; status: string }>(
    "select event_id, status from ukemi.webhook_events order by event_id",
  );
  return Object.fromEntries(rows.map((row) => [row.event_id, row.status]));
}

// Which bodies must stay, and the lock that keeps it so while others go.
import type { Queryable } from "./postgres.ts";

const UNFINISHED = "('scheduled', 'ready', 'waiting', 'running')";

/** True for a job `j` whose event's body must stay. */
export const NEEDS_BODY = `j.state in ('scheduled', 'ready', 'waiting', 'running', 'dead')`;

/** The events whose bodies must stay, from two small partial indexes; with a limit, only so many from either. */
const keptEvents = (limit: string) => `
(select j.event from ukemi.jobs j where j.state in ${UNFINISHED} and j.event is not null ${limit})
union
(select j.event from ukemi.jobs j where j.state = 'dead' and j.event is not null ${limit})`;

/** The events whose bodies must stay. */
export const KEPT_EVENTS = keptEvents("");

/** Some of them: all, where there are no more than so many. */
export const someKeptEvents = (most: number) => keptEvents(`limit ${most}`);

/** True where no job of the event is unfinished or dead. */
export const hasFinished = (event: string) => `
not exists (select from ukemi.jobs s where s.event = ${event} and s.state in ${UNFINISHED})
and not exists (select from ukemi.jobs s where s.event = ${event} and s.state = 'dead')`;

const ROUTE_LOCK = "hashtextextended('ukemi.route', 0)";

/**
 * For whoever makes jobs of events that were stored earlier: in the transaction, in a statement before the one that looks
 * for their bodies. Many may hold it at once; while bodies are removed, nobody does.
 */
export const SHARE_ROUTING = `pg_advisory_xact_lock_shared(${ROUTE_LOCK})`;

/** Waits for those who make such jobs, and keeps new ones away until the transaction ends. */
export async function stopRouting(client: Queryable): Promise<void> {
  await client.query(`select pg_advisory_xact_lock(${ROUTE_LOCK})::text`);
}

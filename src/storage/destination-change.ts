// Holding up what goes to a destination, and letting it go on, by an operator's word.
import { outwait, pause } from "./destinations.ts";
import type { Queryable } from "./postgres.ts";
import { notifyWorkers } from "./presence.ts";

/** Which destination, who says so, and why. */
export interface DestinationChange {
  readonly name: string;
  readonly actor: string;
  readonly reason: string;
}

const AUDIT = `
insert into ukemi.audit_log (actor, role, action, target, details)
values ($1, 'operator', $2, $3, $4::jsonb)`;

/** Nothing goes there for so long; a longer pause that was asked for before holds. Must run in a transaction. */
export async function pauseDestination(
  client: Queryable,
  { name, actor, reason, ms }: DestinationChange & { readonly ms: number },
): Promise<Date> {
  await pause(client, name, { ms, reason });
  const { rows } = await client.query<{ until: string }>(
    "select to_json(paused_until) as until from ukemi.destinations where name = $1",
    [name],
  );
  const { until } = rows[0]!;
  await client.query(AUDIT, [actor, "destination.paused", name, JSON.stringify({ reason, until })]);
  return new Date(until);
}

const RESUME = `
with was as materialized (
  select name, paused_until > ukemi.now() as paused, opened_at is not null as open, failures
  from ukemi.destinations
  where name = $1
  for update
)
update ukemi.destinations d
set paused_until = null, pause_reason = null, failures = 0, opened_at = null, open_reason = null, probe_at = null, probes = 0
from was
where d.name = was.name
returning coalesce(was.paused, false) as paused, was.open, was.failures`;

/** Jobs that stood back without a try being counted; those that somebody has locked are at work this moment. */
const WAKE = `
with waiting as (
  select j.id
  from ukemi.effects e
  join ukemi.jobs j on j.id = e.job
  where e.destination = $1 and e.state in ('planned', 'uncertain') and j.state = 'scheduled'
    and j.not_yet_since is not null
  for update of j skip locked
),
woken as (
  update ukemi.jobs j
  set state = 'ready', run_at = ukemi.now()
  from waiting w
  where j.id = w.id
  returning j.queue
)
select queue, count(*)::int as count from woken group by queue`;

/** What a resumption did. */
export interface Resumption {
  /** False where it was neither paused nor open. */
  readonly changed: boolean;
  /** Effects that go out now instead of later. */
  readonly woken: number;
}

/** Ends its pause and resets its circuit; what waited for it goes out now. Must run in a transaction. */
export async function resumeDestination(
  client: Queryable,
  { name, actor, reason }: DestinationChange,
): Promise<Resumption> {
  const { rows } = await client.query<{ paused: boolean; open: boolean; failures: number }>(RESUME, [name]);
  const before = rows[0] ?? { paused: false, open: false, failures: 0 };
  // one that has seen the pause may be putting off its job: when that is committed, the next statement sees it
  await outwait(client, name);
  const jobs = await client.query<{ queue: string; count: number }>(WAKE, [name]);
  const woken = jobs.rows.reduce((sum, row) => sum + row.count, 0);
  await client.query(AUDIT, [actor, "destination.resumed", name, JSON.stringify({ reason, before, woken })]);
  await notifyWorkers(
    client,
    jobs.rows.map(({ queue }) => queue),
  );
  return { changed: before.paused || before.open, woken };
}

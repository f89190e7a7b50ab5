// Changing dead letters: replayed or dropped, with the outcome of their events and the audit in one transaction.
import { BODY_GONE, ERASED_AT, REFS, whereDead, type DeadFilter } from "./dead-filter.ts";
import { timeOfUs } from "./dead-letters.ts";
import type { JobKey } from "./due.ts";
import { dropEffects, lockEffectsOf } from "./effects-drop.ts";
import { OFFERED } from "./live-workers.ts";
import type { Queryable } from "./postgres.ts";
import { notifyWorkers } from "./presence.ts";
import type { Death } from "./states.ts";

/** Dead letters of one handler and error class that a change would touch. */
export interface PreviewGroup {
  readonly handler: string;
  readonly error_class: string | null;
  readonly count: number;
  /** Whose event has no body any more: they cannot be replayed. */
  readonly without_body: number;
  /** How many live workers have the handler: with none, replayed jobs wait. */
  readonly workers: number;
}

/** What a change would touch. */
export interface DeadPreview {
  readonly count: number;
  readonly without_body: number;
  /** The largest first. */
  readonly groups: readonly PreviewGroup[];
}

/** Says what a change of these dead letters would touch. */
export async function previewDead(client: Queryable, filter: DeadFilter): Promise<DeadPreview> {
  const where = whereDead(filter);
  const { rows } = await client.query<PreviewGroup>(
    `with offered as materialized (${OFFERED})
     select j.subscription as handler, j.error_class, count(*)::int as count,
       count(*) filter (where ${BODY_GONE})::int as without_body,
       (select count(*)::int from offered o where o.handler = j.subscription) as workers
     from ukemi.jobs j
     left join ukemi.events e on e.id = j.event
     where ${where.sql}
     group by j.subscription, j.error_class
     order by 3 desc, 1, 2`,
    where.values,
  );
  return {
    count: rows.reduce((sum, row) => sum + row.count, 0),
    without_body: rows.reduce((sum, row) => sum + row.without_body, 0),
    groups: rows,
  };
}

/** Dead letters that were chosen at a moment: one that dies again afterwards is not meant. */
export interface Chosen {
  readonly ids: readonly string[];
  /** Microseconds since 1970 on the database's clock. */
  readonly momentUs: string;
}

/** Chooses dead letters in the order in which they were made, so that those of one key keep it; with `most`, the first. */
export async function chooseDead(client: Queryable, filter: DeadFilter, most?: number): Promise<Chosen> {
  const momentUs = await readMoment(client);
  const where = whereDead(filter, [momentUs, most ?? null]);
  const { rows } = await client.query<{ id: string }>(
    `select j.id
     from ukemi.jobs j
     left join ukemi.events e on e.id = j.event
     where ${where.sql} and j.finished_at <= ${timeOfUs("$1")}
     order by j.id
     limit $2::bigint`,
    where.values,
  );
  return { ids: rows.map((row) => row.id), momentUs };
}

/** The present moment in microseconds since 1970, on the database's clock. */
export async function readMoment(client: Queryable): Promise<string> {
  const { rows } = await client.query<{ us: string }>(
    "select (extract(epoch from ukemi.now()) * 1000000)::bigint as us",
  );
  return rows[0]!.us;
}

/** Why a job was left as it is. */
export type SkipReason = "unknown" | "not_dead" | "died_again" | "no_body" | "erased";

/** A job that was left as it is. */
export interface Skip {
  readonly id: number;
  readonly reason: SkipReason;
}

/** Who changes which dead letters, and why. */
export interface DeadChange extends Chosen {
  readonly actor: string;
  readonly reason: string;
  /** Only jobs of these tenants: the others are answered for as if they were not there. @default all */
  readonly tenants?: readonly string[] | undefined;
  /** The operation that does it, for the audit. */
  readonly operation?: string;
}

/** What was changed, and what follows after the commit. */
export interface Changed {
  readonly count: number;
  /** Keys whose next job must be let run after the commit. */
  readonly keys: readonly JobKey[];
  readonly skips: readonly Skip[];
}

// A change that waits longer for somebody else's transaction is tried again. Fresh tables have no statistics: the indexes
// are always right for some hundred ids.
const SETTINGS =
  "select set_config('lock_timeout', '2s', true), set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true)";

const LOCK = `
select j.id, j.event, j.death
from ukemi.jobs j
where j.id = any($1::bigint[]) and j.state = 'dead' and j.finished_at <= ${timeOfUs("$2")}
  and ($3::text[] is null or j.tenant = any($3::text[]))
order by j.id
for update`;

/** In a statement after the lock: one that waited for an erasure would still see the body that is gone by now. */
const WITHOUT_BODY = `
select j.id, ${ERASED_AT} is not null as erased
from ukemi.jobs j
join ukemi.events e on e.id = j.event
where j.id = any($1::bigint[]) and ${BODY_GONE}
order by j.id`;

/** The lock under which a job's completion decides what its event comes to: siblings must see each other. */
const LOCK_OUTCOMES = `
select pg_advisory_xact_lock(hashtextextended('ukemi.outcome' || s.event::text, 0))::text
from (
  select j.event
  from ukemi.jobs j
  where j.event = any($1::uuid[])
  group by j.event
  having count(*) > 1
  order by j.event
) as s`;

/** The audit of a change: one row for each job, with what an operator looks for later. */
const audits = (action: string) => `
  insert into ukemi.audit_log (actor, role, action, target, tenant, details)
  select $2::text, 'operator', '${action}', c.id::text, c.tenant,
    jsonb_build_object(
      'reason', $3::text, 'handler', c.subscription, 'queue', c.queue, 'event', c.event, 'event_id', e.event_id,
      'type', e.type, 'refs', ${REFS}, 'death', w.death, 'error_class', c.error_class
    )
    || case when $4::text is null then '{}'::jsonb else jsonb_build_object('operation', $4::text) end
  from changed c
  join was w on w.id = c.id
  left join ukemi.events e on e.id = c.event`;

/** Another dead job of the event keeps it failed. */
const NO_OTHER_DEAD = `
  not exists (select from ukemi.jobs d where d.event = o.event and d.state = 'dead' and d.id <> all($1::bigint[]))`;

const REPLAY = `
with moment as materialized (
  -- one for all of them: jobs of one key that are due at the same time run in the order of their ids
  select ukemi.now() as at
),
was as materialized (
  select id, death from ukemi.jobs where id = any($1::bigint[])
),
changed as (
  update ukemi.jobs j
  set state = case when j.key is null then 'ready' else 'waiting' end,
    attempt = 0,
    -- what killed its workers may do so again: it is claimed alone from the start
    recoveries = case when j.death = 'crashed' then 1 else 0 end,
    run_at = moment.at, finished_at = null, death = null, not_yet_since = null
  from moment
  where j.id = any($1::bigint[]) and j.state = 'dead'
  returning j.id, j.queue, j.key, j.subscription, j.event, j.tenant, j.error_class
),
outcomes as (
  update ukemi.event_outcomes o
  set status = 'pending', processed_at = null, error_message = null
  where o.event in (select event from changed) and ${NO_OTHER_DEAD}
),
effects as (
  -- it has all its time again; one of which a call may have been heard is not simply planned: its key may be forgotten by now
  update ukemi.effects e
  set state = case when e.uncertainties > 0 then 'uncertain' else 'planned' end, ended_at = null, spent_ms = 0
  from changed c
  where e.job = c.id and e.state = 'failed'
),
audits as (${audits("job.replayed")})
select queue, key, count(*)::int as count
from changed
group by queue, key`;

const DROP = `
with was as materialized (
  select id, death from ukemi.jobs where id = any($1::bigint[])
),
changed as (
  update ukemi.jobs j
  set state = 'cancelled', finished_at = ukemi.now(), death = null
  where j.id = any($1::bigint[]) and j.state = 'dead'
  returning j.id, j.queue, j.key, j.subscription, j.event, j.tenant, j.error_class
),
left_over as (
  -- what the other jobs of the event come to
  select c.event,
    case
      when bool_or(s.state in ('scheduled', 'ready', 'waiting', 'running')) then 'pending'
      when bool_or(s.state = 'done') then 'success'
      else 'skipped'
    end as status
  from (select distinct event from changed where event is not null) as c
  left join ukemi.jobs s on s.event = c.event and s.id <> all($1::bigint[])
  group by c.event
),
outcomes as (
  update ukemi.event_outcomes o
  set status = l.status,
    processed_at = case when l.status <> 'pending' then ukemi.now() end,
    error_message = case when l.status = 'skipped' then 'dropped: ' || $3::text end
  from left_over l
  where o.event = l.event and ${NO_OTHER_DEAD}
),
audits as (${audits("job.dropped")})
select queue, key, count(*)::int as count
from changed
group by queue, key`;

/** Puts dead letters back to work. Must run in a transaction; its commit starts the workers. */
export async function replayJobs(client: Queryable, change: DeadChange): Promise<Changed> {
  const locked = await lockDead(client, change);
  const bodiless = await readBodiless(client, locked);
  const able = locked.filter((row) => !bodiless.has(row.id));
  const rows = await changeLocked(client, REPLAY, able, change);
  const ready = rows.filter((row) => row.key === null).map((row) => row.queue);
  if (ready.length > 0) await notifyWorkers(client, [...new Set(ready)]);
  return {
    count: able.length,
    keys: rows.flatMap(({ queue, key }) => (key === null ? [] : [{ queue, key }])),
    skips: [
      ...[...bodiless].map(([id, reason]) => ({ id: Number(id), reason })),
      ...(await explainMissing(client, change, locked)),
    ],
  };
}

/** Gives dead letters up for good, and effects that they were to carry out. Must run in a transaction. */
export async function dropJobs(client: Queryable, change: DeadChange): Promise<Changed> {
  const locked = await lockDead(client, change);
  await changeLocked(client, DROP, locked, change);
  const exhausted = locked.flatMap(({ id, death }) => (death === "exhausted" ? id : []));
  await dropEffects(client, { ...change, jobs: locked.map(({ id }) => id), exhausted });
  return { count: locked.length, keys: [], skips: await explainMissing(client, change, locked) };
}

interface LockedRow {
  readonly id: string;
  readonly event: string | null;
  readonly death: Death;
}

async function lockDead(client: Queryable, change: DeadChange): Promise<readonly LockedRow[]> {
  await client.query(SETTINGS);
  await lockEffectsOf(client, change.ids, change.tenants);
  const { rows } = await client.query<LockedRow>(LOCK, [change.ids, change.momentUs, change.tenants ?? null]);
  return rows;
}

/** Why those whose body is gone cannot be replayed, by id. */
async function readBodiless(
  client: Queryable,
  locked: readonly LockedRow[],
): Promise<ReadonlyMap<string, SkipReason>> {
  const ids = locked.map((row) => row.id);
  const { rows } = await client.query<{ id: string; erased: boolean }>(WITHOUT_BODY, [ids]);
  return new Map(rows.map((row) => [row.id, row.erased ? "erased" : "no_body"]));
}

async function changeLocked(
  client: Queryable,
  statement: string,
  rows: readonly LockedRow[],
  { actor, reason, operation }: DeadChange,
): Promise<readonly { readonly queue: string; readonly key: string | null }[]> {
  if (rows.length === 0) return [];
  await client.query(LOCK_OUTCOMES, [rows.flatMap((row) => row.event ?? [])]);
  const changed = await client.query<{ queue: string; key: string | null; count: number }>(statement, [
    rows.map((row) => row.id),
    actor,
    reason,
    operation ?? null,
  ]);
  const count = changed.rows.reduce((sum, row) => sum + row.count, 0);
  if (count !== rows.length) throw new Error(`${rows.length} jobs were locked, and ${count} were changed`);
  return changed.rows;
}

/** Says why those that were chosen and not locked are not there to be changed. */
async function explainMissing(
  client: Queryable,
  change: DeadChange,
  locked: readonly LockedRow[],
): Promise<Skip[]> {
  const found = new Set(locked.map((row) => row.id));
  const missing = change.ids.filter((id) => !found.has(id));
  if (missing.length === 0) return [];
  const { rows } = await client.query<{ id: string; state: string }>(
    `select id, state from ukemi.jobs
     where id = any($1::bigint[]) and ($2::text[] is null or tenant = any($2::text[]))`,
    [missing, change.tenants ?? null],
  );
  const states = new Map(rows.map((row) => [row.id, row.state]));
  return missing.map((id) => ({ id: Number(id), reason: reasonOf(states.get(id)) }));
}

function reasonOf(state: string | undefined): SkipReason {
  if (state === undefined) return "unknown";
  return state === "dead" ? "died_again" : "not_dead";
}

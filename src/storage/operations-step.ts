// One step of an operation: its row is locked, the ended items are noticed, a batch is taken, and all is written back.
import { timeOfUs } from "./dead-letters.ts";
import type { ItemState, OperationKind, OperationState, Stage } from "./operations.ts";
import type { Queryable } from "./postgres.ts";

/** An operation whose turn it is, with its row locked. */
export interface TakenOperation {
  readonly id: string;
  readonly name: string;
  readonly kind: OperationKind;
  readonly reason: string;
  readonly actor: string;
  readonly tenants: readonly string[] | null;
  readonly state: OperationState;
  readonly stopReason: string | null;
  readonly rate: number | null;
  readonly failureLimit: number | null;
  readonly stage: Stage;
  readonly stageLeft: number | null;
  readonly waiting: number;
  readonly replayed: number;
  readonly done: number;
  readonly dead: number;
  readonly dropped: number;
  readonly skipped: number;
  readonly gone: number;
  readonly judgedBefore: number;
  readonly failedBefore: number;
  readonly nextPosition: number;
  /** When its jobs were chosen, in microseconds since 1970. */
  readonly momentUs: string;
  /** The present moment, all on the database's clock. */
  readonly nowUs: string;
  /** How long the rate has allowed the next item; below 0 where it does not yet. */
  readonly allowedMs: number;
  /** How long ago an item changed. */
  readonly idleMs: number;
}

const ACTIVE = "(state = 'running' or replayed > 0)";

const UNTIL_DUE = `
select extract(epoch from min(next_at) - ukemi.now())::float8 * 1000 as ms
from ukemi.operations
where ${ACTIVE}`;

/** Milliseconds until an operation has to be looked at; undefined where none does. */
export async function readUntilDue(client: Queryable): Promise<number | undefined> {
  const { rows } = await client.query<{ ms: number | null }>(UNTIL_DUE);
  return rows[0]?.ms ?? undefined;
}

const TAKE = `
select
  id, name, kind, reason, actor, tenants, state, stop_reason as "stopReason", rate_per_second as rate, failure_limit as "failureLimit", stage,
  stage_left as "stageLeft", waiting, replayed, done, dead, dropped, skipped, gone,
  judged_before as "judgedBefore", failed_before as "failedBefore", next_position as "nextPosition",
  (extract(epoch from created_at) * 1000000)::bigint as "momentUs",
  (extract(epoch from m.now) * 1000000)::bigint as "nowUs",
  extract(epoch from m.now - paced_at)::float8 * 1000 as "allowedMs",
  extract(epoch from m.now - progressed_at)::float8 * 1000 as "idleMs"
from ukemi.operations
cross join (select ukemi.now() as now) as m
where ${ACTIVE} and next_at <= m.now
order by next_at
limit 1
for update of operations skip locked`;

/** Takes the operation that has been due for longest and that no other process is at. Must run in a transaction. */
export async function takeOperation(client: Queryable): Promise<TakenOperation | undefined> {
  await client.query("select set_config('lock_timeout', '2s', true), set_config('jit', 'off', true)");
  const { rows } = await client.query<TakenOperation>(TAKE);
  return rows[0];
}

// A job that was put to work in this operation's own transaction and is dead now has died again, whatever happened since.
const NOTICE = `
with ended as (
  select i.position,
    case when j.id is null or j.is_erased then 'gone' when j.state = 'done' then 'done' else 'dead' end as state,
    case when j.state in ('dead', 'cancelled') and not j.is_erased then j.error_class end as error_class,
    case
      when j.id is null then 'it ended, and was removed since'
      when j.is_erased then 'it was cancelled by an erasure before it ended'
      when j.state = 'cancelled' then 'it died again and was dropped since' || coalesce(': ' || j.error_message, '')
      when j.state = 'dead' then j.error_message
    end as message
  from ukemi.operation_items i
  -- one by one: whatever the statistics say, the millions of other jobs are not looked at
  left join lateral (
    select j.id, j.state, j.error_class, j.error_message,
      j.state = 'cancelled' and exists (
        select from ukemi.audit_log l where l.target = j.id::text and l.action = 'job.cancelled' and l.role = 'operator'
      ) as is_erased
    from ukemi.jobs j
    where j.id = i.job
    limit 1
  ) as j on true
  where i.operation = $1::uuid and i.state = 'replayed'
    and (j.id is null or j.state in ('done', 'dead', 'cancelled'))
),
noticed as (
  update ukemi.operation_items i
  set state = e.state, error_class = e.error_class, message = e.message, changed_at = ukemi.now()
  from ended e
  where i.operation = $1::uuid and i.position = e.position
  returning i.state
)
select
  count(*) filter (where state = 'done')::int as done,
  count(*) filter (where state = 'dead')::int as dead,
  count(*) filter (where state = 'gone')::int as gone
from noticed`;

/** How many items have ended since the last look. */
export interface Noticed {
  readonly done: number;
  readonly dead: number;
  readonly gone: number;
}

/** Writes down which of the replayed items have ended. */
export async function noticeEnded(client: Queryable, id: string): Promise<Noticed> {
  // fresh tables have no statistics: the indexes are always right for a thousand items at the most
  await client.query("select set_config('enable_seqscan', 'off', true)");
  const { rows } = await client.query<Noticed>(NOTICE, [id]);
  return rows[0]!;
}

/** An item that is to be done now. */
export interface DueItem {
  readonly position: number;
  readonly job: string;
}

/** The next items that wait, in their order. */
export async function readWaiting(
  client: Queryable,
  { id, nextPosition }: TakenOperation,
  most: number,
): Promise<readonly DueItem[]> {
  const { rows } = await client.query<DueItem>(
    `select position, job
     from ukemi.operation_items
     where operation = $1::uuid and position >= $2::int and state = 'waiting'
     order by position
     limit $3::int`,
    [id, nextPosition, most],
  );
  return rows;
}

/** What became of an item. */
export interface ItemResult {
  readonly position: number;
  readonly state: ItemState;
  readonly message: string | null;
}

/** Writes down what became of the items of a batch. */
export async function writeItems(client: Queryable, id: string, items: readonly ItemResult[]): Promise<void> {
  await client.query(
    `update ukemi.operation_items i
     set state = r.state, message = r.message, changed_at = ukemi.now()
     from unnest($2::int[], $3::text[], $4::text[]) as r (position, state, message)
     where i.operation = $1::uuid and i.position = r.position`,
    [
      id,
      items.map(({ position }) => position),
      items.map(({ state }) => state),
      items.map(({ message }) => message),
    ],
  );
}

/** An operation as it is after a step. */
export interface Stepped extends TakenOperation {
  /** True where an item changed. */
  readonly moved: boolean;
  /** True where a batch was done. */
  readonly acted: boolean;
  readonly nextMs: number;
  /** How far the rate's next item lies from the present moment. */
  readonly pacedMs: number;
}

const after = (parameter: string) => `m.now + ${parameter}::float8 * interval '1 millisecond'`;

const SAVE = `
update ukemi.operations
set state = $2::text, stop_reason = $3::text, stage = $4::text, stage_left = $5::int,
  waiting = $6::int, replayed = $7::int, done = $8::int, dead = $9::int, dropped = $10::int, skipped = $11::int,
  gone = $12::int, next_position = $13::int,
  progressed_at = case when $14::boolean then m.now else progressed_at end,
  started_at = case when $15::boolean then coalesce(started_at, m.now) else started_at end,
  next_at = ${after("$16")}, paced_at = ${after("$17")}, fault = null,
  stopped_at = case when $2::text = 'stopped' then coalesce(stopped_at, m.now) else stopped_at end,
  finished_at = case when $2::text = 'done' then m.now end
from (select ${timeOfUs("$18")} as now) as m
where id = $1::uuid`;

/** Writes a step down. */
export async function saveStep(client: Queryable, step: Stepped): Promise<void> {
  await client.query(SAVE, [
    step.id,
    step.state,
    step.stopReason,
    step.stage,
    step.stageLeft,
    step.waiting,
    step.replayed,
    step.done,
    step.dead,
    step.dropped,
    step.skipped,
    step.gone,
    step.nextPosition,
    step.moved,
    step.acted,
    step.nextMs,
    step.pacedMs,
    step.nowUs,
  ]);
}

/** Audits that an operation has ended by itself. */
export async function auditEnd(client: Queryable, step: Stepped, action: string): Promise<void> {
  const { waiting, replayed, done, dead, dropped, skipped, gone } = step;
  await client.query(
    `insert into ukemi.audit_log (actor, role, action, target, tenant, details)
     values ('system:operation', 'system', $1::text, $2::text, $3::text, $4::jsonb)`,
    [
      action,
      step.id,
      // one of several tenants must not read of the others' items: what was done to a job is in its own entry
      step.tenants?.length === 1 ? step.tenants[0] : null,
      JSON.stringify({
        ...(step.stopReason === null ? {} : { reason: step.stopReason }),
        name: step.name,
        kind: step.kind,
        counts: { waiting, replayed, done, dead, dropped, skipped, gone },
      }),
    ],
  );
}

/** Puts an operation off whose step failed, so that the others have their turn. */
export async function postpone(client: Queryable, id: string, ms: number, fault: string): Promise<void> {
  await client.query(
    `update ukemi.operations
     set next_at = ukemi.now() + $2::int * interval '1 millisecond', fault = $3::text
     where id = $1::uuid`,
    [id, ms, fault],
  );
}

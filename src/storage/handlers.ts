// Handlers as the whole system knows them: who wants which events, who offers to run them, and what waits for them.
import { OFFERED } from "./live-workers.ts";
import type { Queryable } from "./postgres.ts";

/** A handler as the API and the command line show it. */
export interface ListedHandler {
  readonly name: string;
  /** `handler` where it wants events, `task` where it is asked for by name. */
  readonly kind: "handler" | "task" | "effect";
  readonly source: string | null;
  readonly pattern: string | null;
  /** Null for tasks: each says for itself. */
  readonly queue: string | null;
  /** False where it was removed: new events make no jobs for it. */
  readonly active: boolean;
  /** How many live workers have it. */
  readonly workers: number;
  readonly unfinished: number;
  readonly dead: number;
  /** True where jobs wait for it and no live worker has it. */
  readonly orphaned: boolean;
}

const LIST = `
with offered as (
  select handler as name, count(*)::int as workers
  from (${OFFERED}) as o
  group by handler
),
jobs as (
  select subscription as name, min(kind) as kind, count(*)::int as unfinished, 0 as dead
  from ukemi.jobs
  where state in ('scheduled', 'ready', 'waiting', 'running') and subscription is not null
  group by subscription
  union all
  select subscription, min(kind), 0, count(*)::int
  from ukemi.jobs
  where state = 'dead' and subscription is not null
  group by subscription
),
totals as (
  select name, min(kind) as kind, sum(unfinished)::int as unfinished, sum(dead)::int as dead
  from jobs
  group by name
),
names as (
  select name from ukemi.subscriptions
  union
  select name from offered
  union
  select name from totals
)
select
  n.name,
  case
    when s.name is not null or t.kind = 'handler' then 'handler'
    when n.name in ('effect.email', 'effect.http', 'effect.usage') then 'effect'
    else 'task'
  end as kind,
  s.source, s.pattern, s.queue, coalesce(s.active, true) as active,
  coalesce(o.workers, 0) as workers,
  coalesce(t.unfinished, 0) as unfinished,
  coalesce(t.dead, 0) as dead,
  coalesce(t.unfinished, 0) > 0 and coalesce(o.workers, 0) = 0 as orphaned
from names n
left join ukemi.subscriptions s using (name)
left join offered o using (name)
left join totals t using (name)
order by n.name`;

/** Lists every handler that is registered, offered, or has jobs. */
export async function listHandlers(client: Queryable): Promise<readonly ListedHandler[]> {
  const { rows } = await client.query<ListedHandler>(LIST);
  return rows;
}

/** Which handler goes, who says so, and why. */
export interface HandlerRemoval {
  readonly name: string;
  readonly actor: string;
  readonly reason: string;
}

/** Takes back the handler's claim on events; its jobs stay. False where no active handler has this name. */
export async function removeHandler(
  client: Queryable,
  { name, actor, reason }: HandlerRemoval,
): Promise<boolean> {
  const { rows } = await client.query<{ name: string }>(
    `with removed as (
       update ukemi.subscriptions
       set active = false
       where name = $1::text and active
       returning name, source, pattern, queue
     ),
     audits as (
       insert into ukemi.audit_log (actor, role, action, target, details)
       select $2::text, 'operator', 'handler.removed', name,
         jsonb_build_object('reason', $3::text, 'source', source, 'pattern', pattern, 'queue', queue)
       from removed
     )
     select name from removed`,
    [name, actor, reason],
  );
  return rows.length === 1;
}

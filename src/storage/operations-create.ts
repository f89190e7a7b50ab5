// Making an operation: its jobs are chosen and written down with it, in one transaction with the audit.
import { whereDead, type DeadFilter } from "./dead-filter.ts";
import { timeOfUs } from "./dead-letters.ts";
import { uuidv7 } from "./ids.ts";
import type { OperationKind } from "./operations.ts";
import type { Queryable } from "./postgres.ts";
import { readMoment } from "./replay.ts";

/** What an operation is to do. */
export interface NewOperation {
  readonly name: string;
  readonly kind: OperationKind;
  readonly actor: string;
  readonly reason: string;
  /** Which jobs: those that `ids` names are all answered for, else the dead ones that it matches. */
  readonly filter: DeadFilter;
  /** The same for people. */
  readonly selection: Readonly<Record<string, unknown>>;
  /** Of a caller bound to tenants. */
  readonly tenants: readonly string[] | undefined;
  readonly rate: number | undefined;
  readonly canary: boolean;
  readonly failureLimit: number | undefined;
  /** More items than this are not written. */
  readonly most: number;
}

/** What was made. Where `chosen` is above the most, or nothing waits, the caller has to roll it back. */
export interface Created {
  readonly id: string;
  /** At the most one more than `most`. */
  readonly chosen: number;
  readonly waiting: number;
  /** How many wait in another operation that runs, and are skipped. */
  readonly busy: number;
}

/** The waiting items of other operations that run, for the jobs of `chosen`. */
const BUSY = `
  select c.job, min(i.operation::text) as operation
  from chosen c
  join ukemi.operation_items i on i.job = c.job and i.state = 'waiting'
  join ukemi.operations o on o.id = i.operation and o.state = 'running'
  group by c.job`;

/** Counts the dead letters of a filter that wait in an operation that runs: another one leaves them alone. */
export async function countBusy(client: Queryable, filter: DeadFilter): Promise<number> {
  const where = whereDead(filter);
  const { rows } = await client.query<{ count: number }>(
    `with chosen as (
       select j.id as job
       from ukemi.jobs j
       left join ukemi.events e on e.id = j.event
       where ${where.sql}
     )
     select count(*)::int as count from (${BUSY}) as busy`,
    where.values,
  );
  return rows[0]!.count;
}

/** Parameters 1 to 3: the operation, its moment, and the most. */
function chosenBy({ filter, tenants }: NewOperation, before: readonly unknown[]) {
  if (filter.ids === undefined) {
    const where = whereDead(filter, before);
    return {
      sql: `
        select j.id as job, true as known
        from ukemi.jobs j
        left join ukemi.events e on e.id = j.event
        where ${where.sql} and j.finished_at <= ${timeOfUs("$2")}
        order by j.id
        limit $3::int + 1`,
      values: where.values,
    };
  }
  return {
    sql: `
      select x.id as job, j.id is not null as known
      from unnest($4::bigint[]) as x (id)
      left join ukemi.jobs j on j.id = x.id and ($5::text[] is null or j.tenant = any($5::text[]))`,
    values: [...before, filter.ids, tenants ?? null],
  };
}

/** A caller bound to tenants may not see the other operation: its id is not told. */
const waitsIn = ({ tenants }: NewOperation) =>
  tenants === undefined
    ? "'it waits in the operation ' || b.operation || ' already'"
    : "'it waits in another operation already'";

const SETTINGS = "select set_config('lock_timeout', '2s', true), set_config('jit', 'off', true)";

/** Chooses the jobs and writes the operation with its items. Must run in a transaction. */
export async function createOperation(client: Queryable, operation: NewOperation): Promise<Created> {
  await client.query(SETTINGS);
  const momentUs = await readMoment(client);
  const id = uuidv7(Number(momentUs) / 1000);
  const chosen = chosenBy(operation, [id, momentUs, operation.most]);
  const { rows } = await client.query<Omit<Created, "id">>(
    `with chosen as materialized (${chosen.sql}),
     busy as materialized (${BUSY}),
     items as (
       insert into ukemi.operation_items (operation, position, job, state, message, changed_at)
       select $1::uuid, row_number() over (order by c.job), c.job,
         case when not c.known then 'gone' when b.job is not null then 'skipped' else 'waiting' end,
         case
           when not c.known then 'there is no such job'
           when b.job is not null then ${waitsIn(operation)}
         end,
         ${timeOfUs("$2")}
       from chosen c
       left join busy b on b.job = c.job
       where (select count(*) from chosen) <= $3::int
       returning state
     )
     select (select count(*)::int from chosen) as chosen,
       count(*) filter (where state = 'waiting')::int as waiting,
       count(*) filter (where state = 'skipped')::int as busy
     from items`,
    chosen.values,
  );
  const counts = rows[0]!;
  if (counts.waiting > 0) await insertOperation(client, operation, { id, momentUs, ...counts });
  return { id, ...counts };
}

const INSERT = `
with made as (
  insert into ukemi.operations (
    id, name, kind, reason, actor, tenants, selection, rate_per_second, canary, failure_limit, stage, stage_left,
    total, waiting, skipped, gone, created_at, running_since, progressed_at, next_at, paced_at
  )
  select
    $1::uuid, $2::text, $3::text, $4::text, $5::text, $6::text[], $7::jsonb, $8::float8, $9::boolean, $10::float8,
    case when $9::boolean then 'one' else 'all' end, case when $9::boolean then 1 end,
    $11::int, $12::int, $13::int, $11::int - $12::int - $13::int, m.at, m.at, m.at, m.at, m.at
  from (select ${timeOfUs("$14")} as at) as m
  returning *
)
insert into ukemi.audit_log (actor, role, action, target, tenant, details)
select actor, 'operator', 'operation.created', id::text, case when cardinality(tenants) = 1 then tenants[1] end,
  jsonb_build_object(
    'reason', reason, 'name', name, 'kind', kind, 'selection', selection, 'total', total, 'waiting', waiting,
    'rate_per_second', rate_per_second, 'canary', canary, 'failure_limit', failure_limit
  )
from made`;

async function insertOperation(
  client: Queryable,
  operation: NewOperation,
  made: Created & { readonly momentUs: string },
): Promise<void> {
  await client.query(INSERT, [
    made.id,
    operation.name,
    operation.kind,
    operation.reason,
    operation.actor,
    operation.tenants ?? null,
    JSON.stringify(operation.selection),
    operation.rate ?? null,
    operation.canary,
    operation.failureLimit ?? null,
    made.chosen,
    made.waiting,
    made.busy,
    made.momentUs,
  ]);
}

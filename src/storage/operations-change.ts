// An operator holds an operation up, or lets it go on: serialised with its batches by the lock on its row.
import type { OperationState } from "./operations.ts";
import { visible } from "./operations.ts";
import type { Queryable } from "./postgres.ts";

/** Who changes which operation, and why. */
export interface OperationChange {
  readonly id: string;
  readonly actor: string;
  readonly reason: string;
  /** Of a caller bound to tenants. */
  readonly tenants: readonly string[] | undefined;
}

/** What it came to. */
export interface ChangedOperation {
  readonly id: string;
  readonly state: OperationState;
  /** False where it was so before, or is done. */
  readonly changed: boolean;
}

// A batch that is under way ends first: from the commit on no further item is touched.
const LOCK = `
select o.state
from ukemi.operations o
where o.id = $1::uuid and ${visible("$2")}
for update`;

const ABORT = `
update ukemi.operations
set state = 'aborted', stopped_at = ukemi.now(), stop_reason = 'aborted by ' || $2::text || ': ' || $3::text
where id = $1::uuid
returning *`;

// After a stop by itself failures count anew, and a canary begins again: the cause should be mended by now.
const RESUME = `
update ukemi.operations
set state = 'running', stopped_at = null, stop_reason = null,
  running_since = ukemi.now(), progressed_at = ukemi.now(), next_at = ukemi.now(),
  ended_before = total - waiting - replayed,
  judged_before = case when state = 'stopped' then done + dead else judged_before end,
  failed_before = case when state = 'stopped' then dead else failed_before end,
  stage = case when state = 'stopped' and canary then 'one' else stage end,
  stage_left = case when state = 'stopped' and canary then 1 else stage_left end
where id = $1::uuid
returning *`;

const audited = (statement: string, action: string) => `
with changed as (${statement})
insert into ukemi.audit_log (actor, role, action, target, tenant, details)
select $2::text, 'operator', '${action}', id::text, case when cardinality(tenants) = 1 then tenants[1] end,
  jsonb_build_object(
    'reason', $3::text, 'name', name, 'waiting', waiting, 'replayed', replayed, 'done', done, 'dead', dead
  )
from changed`;

async function change(
  client: Queryable,
  { id, actor, reason, tenants }: OperationChange,
  wanted: { readonly from: readonly OperationState[]; readonly to: OperationState; readonly sql: string },
): Promise<ChangedOperation | undefined> {
  await client.query("select set_config('lock_timeout', '2s', true)");
  const { rows } = await client.query<{ state: OperationState }>(LOCK, [id, tenants ?? null]);
  const state = rows[0]?.state;
  if (state === undefined) return undefined;
  if (!wanted.from.includes(state)) return { id, state, changed: false };
  await client.query(wanted.sql, [id, actor, reason]);
  return { id, state: wanted.to, changed: true };
}

/** Aborts an operation that runs. Undefined where there is none that the caller may see. Must run in a transaction. */
export function abortOperation(
  client: Queryable,
  asked: OperationChange,
): Promise<ChangedOperation | undefined> {
  return change(client, asked, {
    from: ["running"],
    to: "aborted",
    sql: audited(ABORT, "operation.aborted"),
  });
}

/** Lets one go on that was aborted or stopped by itself. As abortOperation. */
export function resumeOperation(
  client: Queryable,
  asked: OperationChange,
): Promise<ChangedOperation | undefined> {
  return change(client, asked, {
    from: ["aborted", "stopped"],
    to: "running",
    sql: audited(RESUME, "operation.resumed"),
  });
}

// Months of bodies: which are old enough, and how one is replaced by the few bodies in it that must stay.
import { sleep } from "../clock.ts";
import { crashPoint } from "../crash-point.ts";
import { classifyFault } from "./faults.ts";
import { uuidv7Floor } from "./ids.ts";
import { KEPT_EVENTS, NEEDS_BODY, stopRouting } from "./kept.ts";
import { transaction, type Pool, type Queryable } from "./postgres.ts";
import type { Run } from "./retention.ts";

/** A month of bodies that has its own partition. */
export interface BodyMonth {
  /** As people write it: `2025-01`. */
  readonly month: string;
  /** The partition. */
  readonly table: string;
  /** Milliseconds since 1970. */
  readonly fromMs: number;
  readonly untilMs: number;
}

/** The months that ended more than so many days ago, oldest first. */
export async function listOldMonths(client: Queryable, days: number): Promise<readonly BodyMonth[]> {
  const { rows } = await client.query<{ table: string; now_ms: number }>(
    `select c.relname as table, extract(epoch from ukemi.now() - $1 * interval '1 day')::float8 * 1000 as now_ms
     from pg_inherits i
     join pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'ukemi.event_bodies'::regclass and c.relname ~ '^event_bodies_[0-9]{6}$'
     order by c.relname`,
    [days],
  );
  return rows.flatMap((row) => {
    const month = monthOf(row.table);
    return month.untilMs <= row.now_ms ? month : [];
  });
}

/** Months begin at midnight UTC: `ukemi.make_body_months` names them so. */
function monthOf(table: string): BodyMonth {
  const year = Number(table.slice(-6, -2));
  const month = Number(table.slice(-2));
  return {
    month: `${table.slice(-6, -2)}-${table.slice(-2)}`,
    table,
    fromMs: Date.UTC(year, month - 1, 1),
    untilMs: Date.UTC(year, month, 1),
  };
}

/** How a month is to be pruned: as a whole, or row by row where there is little to gain. */
export type MonthPlan = "replace" | "walk";

/** Ids carry the time of the process that made them: good enough for an estimate, never for a decision about one body. */
const ID_SLACK_MS = 2 * 86_400_000;

/** More bodies than this are not copied in one transaction. */
const COPIED_MAX = 50_000;

/** A month is not worth its lock for fewer bodies than this. */
const GAIN_MIN = 100;

const PLAN = (table: string) => `
with kept as materialized (
  select count(*)::int as count
  from (
    select from (${KEPT_EVENTS}) as k (event)
    where k.event >= $1::uuid and k.event < $2::uuid
    limit ${COPIED_MAX + 1}
  ) as k
)
select kept.count as kept,
  (select count(*)::int from (select from ukemi.${table} limit 2 * kept.count + ${GAIN_MIN}) as b) as bodies
from kept`;

/** Chooses, by what a look at the indexes says. A month without a body that stays always goes as a whole. */
export async function planMonth(
  client: Queryable,
  { table, fromMs, untilMs }: BodyMonth,
): Promise<MonthPlan> {
  const { rows } = await client.query<{ kept: number; bodies: number }>(PLAN(table), [
    uuidv7Floor(fromMs - ID_SLACK_MS),
    uuidv7Floor(untilMs + ID_SLACK_MS),
  ]);
  const { kept, bodies } = rows[0]!;
  if (bodies === 0 || kept === 0) return "replace";
  return kept > COPIED_MAX || bodies < 2 * kept + GAIN_MIN ? "walk" : "replace";
}

/** True where the month holds nothing. */
export async function isEmptyMonth(client: Queryable, { table }: BodyMonth): Promise<boolean> {
  const { rowCount } = await client.query(`select from ukemi.${table} limit 1`);
  return rowCount === 0;
}

/** What a month came to. */
export interface ReplacedMonth {
  /** How many went. */
  readonly bodies: number;
  /** How many stay, because a job of theirs is unfinished or dead. */
  readonly kept: number;
  /** Bytes on disk that were given back. */
  readonly bytes: number;
}

/** The lock on all bodies is waited for this long, while everybody waits behind us; then we let them pass. */
const LOCK_MS = 100;
/** Once we have it, no statement may keep it longer. */
const LOCKED_MS_MAX = 1000;
const TRIES = 10;
const PAUSE_MS = 500;
/** The copy of what stays holds nobody up. */
const COPY_MS_MAX = 600_000;

/** A statement that may take its time, whatever the pool's limit. */
const patiently = (text: string, values: unknown[] = []) => ({ text, values, query_timeout: COPY_MS_MAX });

/**
 * Replaces the month by the bodies in it that must stay, or drops it where there are none. Everything is one transaction,
 * the audit included: a crash leaves the month as it was. Undefined where somebody held the lock all the time, or we
 * were stopped.
 */
export async function replaceMonth(
  pool: Pool,
  run: Run,
  month: BodyMonth,
  signal?: AbortSignal,
): Promise<ReplacedMonth | undefined> {
  const newest = await readNewestJob(pool);
  return transaction(pool, async (client) => {
    const copied = await copyKept(client, month);
    crashPoint("retention.kept_copied");
    const swap = swapStatements(month, { ...copied, newest, run });
    await client.query(
      `set local lock_timeout = ${LOCK_MS}; set local statement_timeout = ${LOCKED_MS_MAX}; savepoint copied`,
    );
    for (let tries = 1; tries <= TRIES; tries++) {
      if (signal?.aborted) break;
      try {
        // in one message with its commit, so that no delay of ours lengthens the lock; the COMMIT after it finds nothing to do
        const results = (await client.query(swap)) as unknown as { rows: { kept: string }[] }[];
        const kept = Number(results[1]!.rows[0]!.kept);
        return { bodies: copied.bodies - kept, kept, bytes: copied.bytes };
      } catch (error) {
        if (classifyFault(error) !== "contention") throw error;
        await client.query("rollback to savepoint copied");
        await sleep(PAUSE_MS * Math.min(tries, 4), signal);
      }
    }
    await client.query("rollback");
    return undefined;
  }).catch((error: unknown) => {
    // nobody may write to an old month but to erase: one who does, or a vacuum that must not be stopped, goes first
    if (classifyFault(error) === "contention") return undefined;
    throw error;
  });
}

/**
 * The newest job before the copy. Whoever was making jobs of old events then has committed, so that the copy sees them;
 * those that come later have higher ids, by which the swap finds them.
 */
function readNewestJob(pool: Pool): Promise<string> {
  return transaction(pool, async (client) => {
    await client.query("set local lock_timeout = '2s'");
    await stopRouting(client);
    const { rows } = await client.query<{ id: string }>("select last_value as id from ukemi.jobs_id_seq");
    return rows[0]!.id;
  });
}

interface Copied {
  /** In the month, before. */
  readonly bodies: number;
  /** That the month takes more than the copy. */
  readonly bytes: number;
  /** How many were copied. */
  readonly kept: number;
  readonly columns: string;
}

async function copyKept(client: Queryable, month: BodyMonth): Promise<Copied> {
  const { table } = month;
  await client.query(`
    set local lock_timeout = '3s';
    set local enable_seqscan = off;
    set local enable_hashjoin = off;
    set local enable_mergejoin = off;
    set local jit = off`);
  // nothing is erased from it, nor changed, between the copy and the swap; readers go on
  await client.query(`lock table ukemi.${table} in share mode`);
  const { rows } = await client.query<{ bodies: string; bytes: string; columns: string }>(
    patiently(
      `select
         (select count(*) from ukemi.${table}) as bodies,
         pg_total_relation_size('ukemi.${table}') as bytes,
         (
           select string_agg(quote_ident(attname), ', ' order by attnum)
           from pg_attribute
           where attrelid = 'ukemi.event_bodies'::regclass and attnum > 0 and not attisdropped
         ) as columns`,
    ),
  );
  const { bodies, bytes, columns } = rows[0]!;
  await client.query(
    `create table ukemi.${table}_kept (like ukemi.event_bodies including defaults including constraints)`,
  );
  const copy = await client.query(
    patiently(`
      insert into ukemi.${table}_kept (${columns})
      select b.*
      from (${KEPT_EVENTS}) as k (event)
      cross join lateral (select ${columns} from ukemi.${table} b where b.event = k.event) as b`),
  );
  const [from, until] = boundsOf(month);
  // with the key, the check and the trigger made ahead, to attach it is a matter of the catalogue alone
  await client.query(
    patiently(`
      alter table ukemi.${table}_kept
        add constraint ${table}_kept_pkey primary key (event, received_at),
        add constraint ${table}_kept_month check (received_at >= ${from} and received_at < ${until});
      create trigger event_bodies_never_truncated before truncate on ukemi.${table}_kept
        for each statement execute function ukemi.refuse_change()`),
  );
  const left = await client.query<{ bytes: string }>(
    `select pg_total_relation_size('ukemi.${table}_kept') as bytes`,
  );
  const kept = copy.rowCount ?? 0;
  const given = kept === 0 ? Number(bytes) : Math.max(0, Number(bytes) - Number(left.rows[0]!.bytes));
  return { bodies: Number(bodies), bytes: given, columns, kept };
}

/** The month's bounds as SQL, whatever the session's time zone. */
function boundsOf({ fromMs, untilMs }: BodyMonth): [string, string] {
  const literal = (ms: number) => `timestamptz '${new Date(ms).toISOString()}'`;
  return [literal(fromMs), literal(untilMs)];
}

/**
 * What happens under the lock on all bodies: a statement that wants to read one waits, and then finds the new month.
 * Its cost does not grow with what was copied.
 */
function swapStatements(
  month: BodyMonth,
  swap: Copied & { readonly newest: string; readonly run: Run },
): string {
  const { table } = month;
  const [from, until] = boundsOf(month);
  const { columns, newest, kept, bodies, bytes, run } = swap;
  return `
do $swap$
declare
  late integer;
  stay integer;
begin
  alter table ukemi.event_bodies detach partition ukemi.${table};
  insert into ukemi.${table}_kept (${columns})
  select ${columns}
  from ukemi.${table} b
  where b.event in (
    select j.event from ukemi.jobs j where j.id > ${newest} and j.event is not null and ${NEEDS_BODY}
  )
  on conflict do nothing;
  get diagnostics late = row_count;
  stay := ${kept} + late;
  drop table ukemi.${table};
  if stay = 0 then
    drop table ukemi.${table}_kept;
  else
    alter table ukemi.${table}_kept rename to ${table};
    alter index ukemi.${table}_kept_pkey rename to ${table}_pkey;
    alter table ukemi.event_bodies attach partition ukemi.${table} for values from (${from}) to (${until});
    alter table ukemi.${table} drop constraint ${table}_kept_month;
    alter table ukemi.${table} enable always trigger event_bodies_append_only,
      enable always trigger event_bodies_never_truncated;
  end if;
  insert into ukemi.audit_log (actor, role, action, target, details)
  values (
    convert_from(decode('${hex(run.actor)}', 'hex'), 'UTF8'), '${run.role}', 'retention.pruned', '${table}',
    jsonb_build_object(
      'reason', convert_from(decode('${hex(run.reason)}', 'hex'), 'UTF8'), 'month', '${month.month}',
      'bodies', ${bodies} - stay, 'kept', stay, 'bytes', ${bytes}, 'body_days', ${run.limits.bodyDays}
    )
  );
  perform set_config('ukemi.kept', stay::text, true);
end $swap$;
select current_setting('ukemi.kept') as kept;
commit`;
}

/** A DO block takes no parameters: a person's words go in as hexadecimal digits. */
function hex(text: string): string {
  return Buffer.from(text, "utf8").toString("hex");
}

// Letting go of what ended effects held: the row with its key stays for ever, so that no act is done a second time.
import type { Queryable } from "./postgres.ts";
import { SETTINGS, STEP_ROWS, type Step } from "./retention-batches.ts";
import { noteRemoved, type Run } from "./retention.ts";

/** A walk in the order in which things ended. */
export interface EndWalk {
  /** Where the step before ended; empty at the beginning. */
  readonly after: string;
  readonly days: number;
}

/** Nobody can put the effect `e` back to work: its job has not ended only where it may still be carried out, or replayed. */
const IS_OVER = `
  not exists (select from ukemi.jobs j where j.id = e.job and j.state not in ('done', 'cancelled'))`;

const ago = (days: string) => `ukemi.now() - ${days} * interval '1 day'`;

/** Effects that ended more than so many days ago, and still hold something. */
const oldEffects = (days: string) => `
  from ukemi.effects e
  where e.ended_at is not null and e.pruned_at is null and e.erased_at is null and e.ended_at < ${ago(days)}`;

/** Those of them whose content goes. */
export const oldContents = (days: number): string => `select ${oldEffects(String(days))} and ${IS_OVER}`;

// What its mail server said when it took a mail, and what a meter counted, is a line, and proves that it was sent: it stays.
const CONTENTS = `
with looked as materialized (
  select e.id, e.ended_at
  ${oldEffects("$3::int")} and (e.ended_at, e.id) > ($1::timestamptz, $2::uuid)
  order by e.ended_at, e.id
  limit ${STEP_ROWS}
),
gone as (
  update ukemi.effects e
  set intent = '{}', receipt = case when e.kind in ('email', 'usage') then e.receipt end, pruned_at = ukemi.now()
  from looked
  where e.id = looked.id and ${IS_OVER}
    -- whoever replayed it meanwhile needs it
    and e.ended_at is not null and e.erased_at is null
  returning e.id
),
tries as (
  delete from ukemi.effect_attempts a using gone where a.effect = gone.id returning a.number
)
select count(*)::int as looked, (select count(*)::int from gone) as removed, (select count(*)::int from tries) as attempts,
  (select jsonb_build_array(ended_at, id)::text from looked order by ended_at desc, id desc limit 1) as last
from looked`;

interface StepRow {
  readonly looked: number;
  readonly removed: number;
  readonly attempts: number;
  readonly last: string | null;
}

const FIRST = ["-infinity", "00000000-0000-0000-0000-000000000000", 0] as const;

const placeOf = (after: string): readonly unknown[] =>
  after === "" ? FIRST : (JSON.parse(after) as readonly unknown[]);

/** Removes what effects held that ended more than so many days ago, and their calls. Must run in a transaction. */
export async function removeContents(client: Queryable, run: Run, { after, days }: EndWalk): Promise<Step> {
  await client.query(SETTINGS);
  const [endedAt, id] = placeOf(after);
  const { rows } = await client.query<StepRow>(CONTENTS, [endedAt, id, days]);
  const { looked, removed, attempts, last } = rows[0]!;
  await noteRemoved(client, run, { effects: removed, effect_attempts: attempts });
  return { after: last ?? after, removed, ended: looked < STEP_ROWS };
}

/** The call `a` was for an effect that has ended for as long. */
const ofOver = (days: string) => `
  exists (
    select from ukemi.effects e where e.id = a.effect and e.ended_at < ${ago(days)} and ${IS_OVER}
  )`;

/** Calls that go by their own age; others go with what their effects held. */
export const oldCalls = (days: number): string =>
  `select from ukemi.effect_attempts a where a.ended_at < ${ago(String(days))} and ${ofOver(String(days))}`;

const CALLS = `
with looked as materialized (
  select a.effect, a.number, a.ended_at
  from ukemi.effect_attempts a
  where a.ended_at < ${ago("$4::int")} and (a.ended_at, a.effect, a.number) > ($1::timestamptz, $2::uuid, $3::int)
  order by a.ended_at, a.effect, a.number
  limit ${STEP_ROWS}
),
gone as (
  delete from ukemi.effect_attempts a
  using looked
  where a.effect = looked.effect and a.number = looked.number and ${ofOver("$4::int")}
  returning a.number
)
select count(*)::int as looked, (select count(*)::int from gone) as removed,
  (select jsonb_build_array(ended_at, effect, number)::text
   from looked order by ended_at desc, effect desc, number desc limit 1) as last
from looked`;

/** Removes calls that were made more than so many days ago for effects that have ended. Must run in a transaction. */
export async function removeCalls(client: Queryable, run: Run, { after, days }: EndWalk): Promise<Step> {
  await client.query(SETTINGS);
  const { rows } = await client.query<Omit<StepRow, "attempts">>(CALLS, [...placeOf(after), days]);
  const { looked, removed, last } = rows[0]!;
  await noteRemoved(client, run, { effect_attempts: removed });
  return { after: last ?? after, removed, ended: looked < STEP_ROWS };
}

/** The limit of a day looks 25 hours back; nobody asks for more. */
export const OLD_HOURS =
  "select from ukemi.destination_hours h where h.hour < ukemi.now() - interval '2 days'";

/** Removes counts of calls by the hour that no limit needs any more. Must run in a transaction. */
export async function removeHours(client: Queryable, run: Run): Promise<number> {
  const { rowCount } = await client.query(
    "delete from ukemi.destination_hours where hour < ukemi.now() - interval '2 days'",
  );
  const removed = rowCount ?? 0;
  await noteRemoved(client, run, { destination_hours: removed });
  return removed;
}

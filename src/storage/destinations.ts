// Destinations: what all processes together keep to when they call one peer — its turns, its pauses, and its circuit.
import { steadyMs } from "../clock.ts";
import type { Queryable } from "./postgres.ts";

/** What is asked of everybody who calls a destination. */
export interface DestinationLimits {
  /** How many calls may begin in a second. */
  readonly perSecond?: number;
  /** How many milliseconds lie between the beginnings of two calls, at the least. */
  readonly gapMs?: number;
  /** How many calls may begin in any 24 hours. */
  readonly perDay?: number;
  /** How many calls may be under way at once. */
  readonly concurrency?: number;
}

/** Why a call must wait. */
export type WaitReason = "turn" | "concurrency" | "pause" | "day" | "circuit";

/** The call's turn, by the steady clock of this process; or it must ask again later. */
export type Admission =
  | { readonly admitted: true; readonly turnAt: number }
  | {
      readonly admitted: false;
      readonly waitMs: number;
      readonly why: WaitReason;
      readonly detail: string | null;
    };

/** Turns are spaced a little wider than they might be: what two senders do in time is not what the peer sees in time. */
const TURN_SLACK = 1.07;
/** A turn that lies further ahead is not taken: who waits so long had better ask again. */
const TURN_MS_MAX = 2000;
const CONCURRENCY_WAIT_MS = 60;
/** Who finds an open circuit in somebody's hands asks again after this. */
const LOCKED_WAIT_MS = 100;
/** How long whoever tries out an open circuit has for it before another may. */
const PROBE_MS = 30_000;

interface Row {
  readonly turn_ms: number;
  readonly pause_ms: number;
  readonly pause_reason: string | null;
  readonly open: boolean;
  readonly open_reason: string | null;
  readonly probe_ms: number;
}

const LOOK = `
select
  greatest(0, extract(epoch from d.next_at - m.at) * 1000)::float8 as turn_ms,
  greatest(0, extract(epoch from d.paused_until - m.at) * 1000)::float8 as pause_ms,
  d.pause_reason, d.opened_at is not null as open, d.open_reason,
  greatest(0, extract(epoch from d.probe_at - m.at) * 1000)::float8 as probe_ms
from ukemi.destinations d, (select ukemi.now() as at) as m
where d.name = $1`;

/**
 * Whoever stops a destination, or lets it go on, waits for those who have looked at it and not committed yet; whoever looks
 * afterwards waits for him. No lock of the row: many who look at once would write to it each, and might keep him out for
 * ever; and there need not be a row.
 */
const lockKey = (name: string) => `hashtextextended('ukemi.destination' || ${name}, 0)`;

/**
 * Until the transaction ends, nobody stops the destination with this name. To be selected in a statement before one that is
 * not limited is asked for a turn; its row must not be waited for afterwards.
 */
export const keepGoing = (name: string): string => `pg_advisory_xact_lock_shared(${lockKey(name)})::text`;

/** Waits for those who have looked: from now on everybody waits for our commit, and sees what we write. */
export async function outwait(client: Queryable, destination: string): Promise<void> {
  await client.query(`select pg_advisory_xact_lock(${lockKey("$1::text")})::text`, [destination]);
}

/**
 * Asks for a call's turn, in the transaction that begins it. Where there are limits the destination is locked until that
 * commits. Where there are none the caller has taken `keepGoing`, and calls do not wait for each other, only for those who
 * stop it.
 */
export async function admit(
  client: Queryable,
  destination: string,
  limits: DestinationLimits,
): Promise<Admission> {
  const isLimited = areLimits(limits);
  if (isLimited) {
    await client.query("insert into ukemi.destinations (name) values ($1) on conflict do nothing", [
      destination,
    ]);
  }
  let row = await look(client, destination, isLimited ? "for update of d" : "");
  if (row?.open && !isLimited) {
    // of those who would try it out, one may; the others do not wait for him
    row = await look(client, destination, "for update of d skip locked");
    if (!row) return wait(LOCKED_WAIT_MS, "circuit");
  }
  if (row && row.pause_ms > 0) return wait(row.pause_ms, "pause", row.pause_reason);
  if (row?.open && row.probe_ms > 0) return wait(row.probe_ms, "circuit", row.open_reason);
  const admission: Admission = isLimited
    ? await takeTurn(client, destination, limits, row?.turn_ms ?? 0)
    : { admitted: true, turnAt: steadyMs() };
  if (row?.open && admission.admitted) {
    await client.query(
      "update ukemi.destinations set probe_at = ukemi.now() + $2 * interval '1 ms' where name = $1",
      [destination, PROBE_MS],
    );
  }
  return admission;
}

/** Whether anything is asked at all. */
export function areLimits(limits: DestinationLimits): boolean {
  return Object.values(limits).some((limit) => limit !== undefined);
}

async function look(client: Queryable, destination: string, lock: string): Promise<Row | undefined> {
  const { rows } = await client.query<Row>(`${LOOK} ${lock}`, [destination]);
  return rows[0];
}

function wait(waitMs: number, why: WaitReason, detail: string | null = null): Admission {
  return { admitted: false, waitMs: Math.ceil(waitMs), why, detail };
}

async function takeTurn(
  client: Queryable,
  destination: string,
  { perSecond, gapMs = 0, perDay, concurrency }: DestinationLimits,
  turnMs: number,
): Promise<Admission> {
  if (turnMs > TURN_MS_MAX) return wait(turnMs - TURN_MS_MAX, "turn");
  if (concurrency !== undefined && (await countSending(client, destination)) >= concurrency) {
    return wait(CONCURRENCY_WAIT_MS * (0.5 + Math.random()), "concurrency");
  }
  if (perDay !== undefined) {
    const day = await countDay(client, destination);
    if (day.calls >= perDay) {
      await putPause(client, destination, {
        ms: day.freesMs,
        reason: `the limit of ${perDay} a day is reached`,
      });
      return wait(day.freesMs, "day", `the limit of ${perDay} a day is reached`);
    }
    await client.query(
      `insert into ukemi.destination_hours (destination, hour, calls)
       values ($1, date_trunc('hour', ukemi.now(), 'UTC'), 1)
       on conflict (destination, hour) do update set calls = destination_hours.calls + 1`,
      [destination],
    );
  }
  return { admitted: true, turnAt: await nextTurn(client, destination, { perSecond, gapMs }) };
}

/** Takes the next turn of the destination. Returns when it is, by the steady clock of this process. */
export async function nextTurn(
  client: Queryable,
  destination: string,
  { perSecond, gapMs = 0 }: { readonly perSecond?: number | undefined; readonly gapMs?: number | undefined },
): Promise<number> {
  const spaceMs = Math.max(gapMs, perSecond === undefined ? 0 : (1000 / perSecond) * TURN_SLACK);
  if (spaceMs === 0) return steadyMs();
  const { rows } = await client.query<{ ms: number }>(
    `update ukemi.destinations
     set next_at = greatest(next_at, ukemi.now()) + $2::float8 * interval '1 ms'
     where name = $1
     returning (extract(epoch from next_at - ukemi.now()) * 1000 - $2::float8)::float8 as ms`,
    [destination, spaceMs],
  );
  return steadyMs() + Math.max(0, rows[0]!.ms);
}

async function countSending(client: Queryable, destination: string): Promise<number> {
  const { rows } = await client.query<{ count: number }>(
    "select count(*)::int as count from ukemi.effects where destination = $1 and state = 'sending'",
    [destination],
  );
  return rows[0]!.count;
}

/** How many calls began in the last 24 hours, by whole hours; and in how many milliseconds the oldest no longer count. */
async function countDay(client: Queryable, destination: string): Promise<{ calls: number; freesMs: number }> {
  const { rows } = await client.query<{ calls: number; frees_ms: number }>(
    `select coalesce(sum(h.calls), 0)::int as calls,
       greatest(1000, extract(epoch from min(h.hour) + interval '25 hours' - ukemi.now()) * 1000)::float8 as frees_ms
     from ukemi.destination_hours h
     where h.destination = $1 and h.hour > ukemi.now() - interval '25 hours'`,
    [destination],
  );
  return { calls: rows[0]!.calls, freesMs: rows[0]!.frees_ms };
}

/** A pause, and why. */
export interface Pause {
  readonly ms: number;
  readonly reason: string;
}

/**
 * Nothing goes there before the pause is over; a longer one that was asked for before holds. True where it is news. When it
 * is committed no call begins any more. Must run in a transaction.
 */
export async function pause(client: Queryable, destination: string, given: Pause): Promise<boolean> {
  const isNews = await putPause(client, destination, given);
  await outwait(client, destination);
  return isNews;
}

async function putPause(client: Queryable, destination: string, { ms, reason }: Pause): Promise<boolean> {
  const { rows } = await client.query<{ news: boolean }>(
    `with was as (
       select paused_until from ukemi.destinations where name = $1 for update
     )
     insert into ukemi.destinations as d (name, paused_until, pause_reason)
     values ($1, ukemi.now() + $2::float8 * interval '1 ms', $3)
     on conflict (name) do update
     set paused_until = greatest(d.paused_until, excluded.paused_until),
       pause_reason = case
         when d.paused_until > excluded.paused_until then d.pause_reason else excluded.pause_reason
       end
     returning coalesce((select paused_until from was) < ukemi.now(), true) as news`,
    [destination, ms, reason],
  );
  return rows[0]!.news;
}

/** So many failures in a row open the circuit. */
const FAILURES_MAX = 10;
/** How long it stays open at first; twice as long after each try that failed, to the longest. */
const OPEN_MS = 30_000;
const OPEN_MS_MAX = 600_000;

/** What a call said of its destination. */
export type Health = "well" | "failing" | "blocked";

/** The class under which a job waits for its destination. */
export const BUSY = "DestinationBusy";

/** Those that wait for the destination need not wait any longer. One that is locked has been taken up since. */
async function callWaiting(client: Queryable, destination: string): Promise<void> {
  await client.query(
    `with waiting as (
       select j.id
       from ukemi.effects e
       join ukemi.jobs j on j.id = e.job
       where e.destination = $1 and e.state in ('planned', 'uncertain') and j.state = 'scheduled'
         and j.error_class = '${BUSY}'
       -- whoever has it in his hands may wait for us
       for update of j skip locked
     )
     update ukemi.jobs j
     set run_at = ukemi.now()
     from waiting w
     where j.id = w.id`,
    [destination],
  );
}

/** What a call says of its destination, and which effect's call it was. */
export interface HealthNote {
  readonly effect: string;
  readonly health: Health;
  readonly reason: string;
}

/**
 * Takes note of how a call ended. Returns `opened` where it opened the circuit, `closed` where it closed it. Must run in a
 * transaction.
 */
export async function noteHealth(
  client: Queryable,
  destination: string,
  { effect, health, reason }: HealthNote,
): Promise<"opened" | "closed" | undefined> {
  if (health === "well") {
    const { rows } = await client.query<{ was_open: boolean }>(
      `with was as (
         select name, opened_at from ukemi.destinations
         where name = $1 and (failures > 0 or opened_at is not null)
         for update
       )
       update ukemi.destinations d
       set failures = 0, opened_at = null, open_reason = null, probe_at = null, probes = 0
       from was
       where d.name = was.name
       returning was.opened_at is not null as was_open`,
      [destination],
    );
    if (!rows[0]?.was_open) return undefined;
    await callWaiting(client, destination);
    return "closed";
  }
  const { rows } = await client.query<{ opened: boolean }>(
    `insert into ukemi.destinations as d (name, failures) values ($1, 1)
     on conflict (name) do update set failures = d.failures + 1
     returning opened_at is null and (failures >= $2 or $3) as opened`,
    [destination, FAILURES_MAX, health === "blocked"],
  );
  const { opened } = rows[0]!;
  // before the time is noted: those that did not see it open have all begun by then
  if (opened) await outwait(client, destination);
  await client.query(
    `update ukemi.destinations
     set opened_at = coalesce(opened_at, ukemi.now()), open_reason = $4, probes = probes + 1,
       probe_at = ukemi.now() + least($5::float8, $6::float8 * power(2, least(probes, 10))) * interval '1 ms'
     where name = $1 and (failures >= $2 or $3)
       -- a call that was begun before it opened says nothing new
       and not exists (select from ukemi.effects e where e.id = $7::uuid and e.begun_at < opened_at)`,
    [destination, FAILURES_MAX, health === "blocked", reason, OPEN_MS_MAX, OPEN_MS, effect],
  );
  return opened ? "opened" : undefined;
}

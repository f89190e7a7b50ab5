// Compares what is stored with what the client was told: the client's log is the truth, the server's word is not asked.
import { expect } from "vitest";
import type { Pool } from "../../src/storage/postgres.ts";
import type { Answered, Letter } from "./sender.ts";

/** What the database holds for one event id. */
export interface Kept {
  readonly id: string;
  readonly events: number;
  readonly bodies: number;
  readonly jobs: number;
  /** Of the stored bytes, computed by the database. */
  readonly sha256: string;
}

/** Everything stored, by the provider's event id. */
export async function readKept(pool: Pool): Promise<Map<string, Kept>> {
  const { rows } = await pool.query<Kept & { event_id: string }>(`
    select
      e.event_id,
      min(e.id::text) as id,
      count(*)::int as events,
      sum((select count(*) from ukemi.event_bodies b where b.event = e.id))::int as bodies,
      sum((select count(*) from ukemi.jobs j where j.event = e.id))::int as jobs,
      min((
        select encode(sha256(b.body), 'hex')
        from ukemi.event_bodies b
        where b.event = e.id and b.received_at = e.received_at
      )) as sha256
    from ukemi.events e
    group by e.event_id`);
  return new Map(rows.map(({ event_id, ...kept }) => [event_id, kept]));
}

/** Answers as lines that a person can read in a failure. */
export function brief(answers: readonly Answered[]): string[] {
  return answers.map(
    ({ eventId, status, fault, duplicate, durationMs }) =>
      `${eventId} ${status || fault}${duplicate ? " duplicate" : ""} after ${Math.round(durationMs)} ms`,
  );
}

/** The answers that acknowledged. */
export function acknowledged(log: readonly Answered[]): Answered[] {
  return log.filter((answer) => answer.status >= 200 && answer.status < 300);
}

/** Promise 1: whatever was told 2xx is stored, once, under the id that was told, and called new at most once. */
export async function expectTold(pool: Pool, log: readonly Answered[]): Promise<Map<string, Kept>> {
  const kept = await readKept(pool);
  const lost = acknowledged(log).filter((answer) => kept.get(answer.eventId)?.id !== answer.messageId);
  expect(brief(lost), "told 2xx, and not stored under the id that was told").toEqual([]);
  const fresh = acknowledged(log).filter((answer) => !answer.duplicate);
  const twice = fresh.filter((a, index) => fresh.findIndex((b) => b.eventId === a.eventId) !== index);
  expect(brief(twice), "called new more than once").toEqual([]);
  const notOnce = [...kept].filter(([, { events, bodies }]) => events !== 1 || bodies !== 1);
  expect(notOnce, "stored other than once").toEqual([]);
  return kept;
}

/** After the heal: every letter was told 2xx in the end and is stored once, byte for byte. */
export async function expectDrained(
  pool: Pool,
  sent: readonly Letter[],
  log: readonly Answered[],
  options: { jobs?: number } = {},
): Promise<void> {
  const kept = await expectTold(pool, log);
  const told = new Set(acknowledged(log).map((answer) => answer.eventId));
  expect(
    sent.map((letter) => letter.eventId).filter((eventId) => !told.has(eventId)),
    "never told 2xx",
  ).toEqual([]);
  const wrong = sent.filter((letter) => kept.get(letter.eventId)?.sha256 !== letter.sha256);
  expect(
    wrong.map((letter) => letter.eventId),
    "stored with other bytes than were sent",
  ).toEqual([]);
  expect(kept.size, "events stored").toBe(sent.length);
  const jobs = options.jobs ?? 0;
  const otherJobs = [...kept].filter(([, event]) => event.jobs !== jobs);
  expect(otherJobs, `with other than ${jobs} jobs`).toEqual([]);
}

/** While a fault lasts the answer is 204 or 503 with Retry-After, and it comes in time; 500 and silence are bugs. */
export function expectCivil(log: readonly Answered[], durationMsMax: number): void {
  const rude = log.filter(
    (answer) =>
      !(answer.status === 204 || (answer.status === 503 && Number(answer.retryAfter) > 0)) ||
      answer.durationMs > durationMsMax,
  );
  expect(
    brief(rude),
    `answers that are neither 204 nor 503 with Retry-After within ${durationMsMax} ms`,
  ).toEqual([]);
}

/** How many events wait for a commit in this server, by its own metrics. */
export async function waitingEvents(url: string): Promise<number> {
  const metrics = await (await fetch(`${url}/metrics`)).text();
  return Number(/^ukemi_inbox_waiting_events(?:\{.*\})? (\S+)$/m.exec(metrics)?.[1]);
}

// Events that were stored before: a delivery that comes again is told the id that the first one was given.
import { boolArray, textArray } from "./arrays.ts";
import type { Connection } from "./postgres.ts";
import { REVIVABLE } from "./revive.ts";

/** What makes two deliveries the same event. */
export interface Identified {
  readonly source: string;
  readonly account: string;
  readonly livemode: boolean;
  readonly eventId: string;
}

/** What is known of events that were stored before. */
export interface StoredEarlier {
  /** By identity. */
  readonly ids: ReadonlyMap<string, string>;
  /** Those with a dead job that a resend brings back. */
  readonly revivable: readonly string[];
}

/** An identity as one text. */
export function identityOf(event: Identified): string {
  return `${event.source}\u0000${event.account}\u0000${event.livemode}\u0000${event.eventId}`;
}

/**
 * Looked up one by one in the index of identities. The statement is planned while the table may be empty: joined, it would be
 * read as a whole for ever after, and an index by source would be walked, which `|| ''` keeps out of sight.
 */
const LOOKED_UP = `
  cross join lateral (
    select e.id, exists (select from ukemi.jobs j where j.event = e.id and ${REVIVABLE}) as revivable
    from ukemi.events e
    where e.event_id = a.event_id and e.source || '' = a.source and e.account = a.account and e.livemode = a.livemode
    limit 1
  ) as e`;

/** Told by the storing statement itself, as far as its snapshot reaches. */
export const EARLIER = `(
    select json_agg(json_build_array(a.arrival, e.id, e.revivable))
    from arrived a
    ${LOOKED_UP}
    where a.id not in (select id from stored)
  )`;

/** One of them, as it is told. */
export type EarlierRow = readonly [arrival: number, id: string, revivable: boolean];

const FIND = `
select a.number, e.id, e.revivable
from unnest($1::text[], $2::text[], $3::text[], $4::bool[]) with ordinality as a (event_id, source, account, livemode, number)
${LOOKED_UP}`;

/** Finds the events whose fate the storing statement could not tell: others stored them at the same moment. */
export async function findEarlier(
  connection: Pick<Connection, "query" | "pooled">,
  events: readonly Identified[],
): Promise<EarlierRow[]> {
  const { rows } = await connection.query<{ number: string; id: string; revivable: boolean }>({
    ...(connection.pooled ? {} : { name: "find events" }),
    text: FIND,
    values: [
      textArray(events.map((event) => event.eventId)),
      textArray(events.map((event) => event.source)),
      textArray(events.map((event) => event.account)),
      boolArray(events.map((event) => event.livemode)),
    ],
  });
  return rows.map(({ number, id, revivable }) => [Number(number) - 1, id, revivable]);
}

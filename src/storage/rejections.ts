// The quarantine: refused requests with their diagnosis, bounded by throwing out the oldest.
import type { Queryable } from "./postgres.ts";

/** A request that was refused, as it is kept. */
export interface Rejection {
  readonly source: string;
  readonly reason: string;
  readonly diagnosis: string;
  readonly address: string | null;
  readonly requestId: string;
  /** JSON text of the headers, secrets left out. */
  readonly headers: string;
  readonly bodyBytes: number;
  /** The first bytes of the body. */
  readonly bodySample: Buffer;
}

/** The same without what is sealed in an event: an honest sender's request is refused too, by a wrong secret. */
export function withoutContent(rejection: Rejection): Rejection {
  const names = Object.keys(JSON.parse(rejection.headers) as object);
  const headers = JSON.stringify(Object.fromEntries(names.map((name) => [name, "[not kept]"])));
  return { ...rejection, headers, bodySample: Buffer.alloc(0) };
}

/** Keeps the rejections, and at most `rowsMax` rows in all. */
export async function keepRejections(
  client: Queryable,
  rejections: readonly Rejection[],
  rowsMax: number,
): Promise<void> {
  const column = <T>(read: (rejection: Rejection) => T): T[] => rejections.map(read);
  await client.query(
    `insert into ukemi.rejections
       (source, reason, diagnosis, address, request_id, headers, body_bytes, body_sample)
     select *
     from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::int4[], $8::bytea[])`,
    [
      column((r) => r.source),
      column((r) => r.reason),
      column((r) => r.diagnosis),
      column((r) => r.address),
      column((r) => r.requestId),
      column((r) => r.headers),
      column((r) => r.bodyBytes),
      column((r) => r.bodySample),
    ],
  );
  await client.query(
    `delete from ukemi.rejections
     where id <= (select id from ukemi.rejections order by id desc offset $1 limit 1)`,
    [rowsMax],
  );
}

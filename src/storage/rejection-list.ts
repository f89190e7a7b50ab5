// Reading the quarantine: refused requests, and why each was refused.
import { createConditions, pageOf, type Page } from "./conditions.ts";
import type { Queryable } from "./postgres.ts";

/** Which refused requests to list, newest first. */
export interface RejectionFilter {
  readonly source?: string;
  readonly reason?: string;
  readonly since?: Date;
  readonly until?: Date;
}

/** A refused request as the API and the command line show it. */
export interface ListedRejection {
  readonly id: number;
  readonly received_at: Date;
  readonly source: string;
  readonly reason: string;
  readonly diagnosis: string;
  /** Masked. */
  readonly address: string | null;
  readonly request_id: string;
  readonly body_bytes: number;
}

/** With what was kept of it. */
export interface ShownRejection extends ListedRejection {
  /** Without those that hold secrets. */
  readonly headers: Readonly<Record<string, string>>;
  /** The first bytes of the body as text; what is no text is shown as �. */
  readonly body_sample: string;
}

const FACTS = `id, to_json(received_at) as received_at, source, reason, diagnosis, address, request_id, body_bytes`;

type Row = Omit<ListedRejection, "id" | "received_at"> & {
  readonly id: string;
  readonly received_at: string;
};

const toListed = (row: Row): ListedRejection => ({
  ...row,
  id: Number(row.id),
  received_at: new Date(row.received_at),
});

/** Lists refused requests, newest first. */
export async function listRejections(
  client: Queryable,
  filter: RejectionFilter,
  page: { readonly limit: number; readonly before?: string },
): Promise<Page<ListedRejection>> {
  const conditions = createConditions();
  conditions.add("source = ?", filter.source);
  conditions.add("reason = ?", filter.reason);
  conditions.add("received_at >= ?", filter.since);
  conditions.add("received_at < ?", filter.until);
  conditions.add("id < ?::bigint", page.before);
  const { rows } = await client.query<Row>(
    `select ${FACTS}
     from ukemi.rejections
     ${conditions.where()}
     order by id desc
     limit ${conditions.value(page.limit + 1)}`,
    conditions.values,
  );
  return pageOf(rows.map(toListed), page.limit, (rejection) => String(rejection.id));
}

/** One refused request with what was kept of it. */
export async function showRejection(client: Queryable, id: number): Promise<ShownRejection | undefined> {
  const { rows } = await client.query<Row & { headers: string; body_sample: Buffer }>(
    `select ${FACTS}, headers, body_sample from ukemi.rejections where id = $1::bigint`,
    [id],
  );
  const row = rows[0];
  if (!row) return undefined;
  return {
    ...toListed(row),
    headers: JSON.parse(row.headers) as Readonly<Record<string, string>>,
    body_sample: row.body_sample.toString("utf8"),
  };
}

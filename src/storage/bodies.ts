// Reading the body of one event as it came, or why it is no longer there.
import type { Keyring } from "./keyring.ts";
import { isUuid } from "./ids.ts";
import type { Queryable } from "./postgres.ts";

/** The body of one event as the API and the command line show it. */
export interface ShownBody {
  /** Our id of the event. */
  readonly event: string;
  readonly event_id: string;
  /** `pruned` is what retention did, `erased` what an operator did. */
  readonly state: "kept" | "pruned" | "erased";
  readonly erased_at: Date | null;
  /** The data key that it is sealed with; null where it lies as it came. */
  readonly data_key: string | null;
  /** The body as text; null where there is none. Bytes that are no text are replaced: `body_base64` has them all. */
  readonly body: string | null;
  readonly body_base64: string | null;
  readonly headers: Readonly<Record<string, unknown>> | null;
}

interface BodyRow {
  readonly id: string;
  readonly event_id: string;
  readonly erased_at: string | null;
  readonly body: Buffer | null;
  readonly headers: string | null;
  readonly key_id: string | null;
}

const SHOW = `
select e.id, e.event_id, to_json(x.erased_at) as erased_at, b.body, b.headers, b.key_id
from ukemi.events e
left join ukemi.event_bodies b on b.event = e.id and b.received_at = e.received_at
left join ukemi.erasures x on x.event = e.id`;

/** The body of an event, by our id or the sender's; undefined where these tenants have no such event. */
export async function readBody(
  client: Queryable,
  keyring: Keyring,
  id: string,
  tenants?: readonly string[],
): Promise<ShownBody | undefined> {
  // a sender's id may look like one of ours
  for (const column of isUuid(id) ? ["e.id", "e.event_id"] : ["e.event_id"]) {
    const { rows } = await client.query<BodyRow>(
      `${SHOW} where ${column} = $1 and ($2::text[] is null or e.tenant = any($2::text[])) order by e.id desc limit 1`,
      [id, tenants ?? null],
    );
    if (rows[0]) return show(client, keyring, rows[0]);
  }
  return undefined;
}

async function show(client: Queryable, keyring: Keyring, row: BodyRow): Promise<ShownBody> {
  const { id, event_id, body, headers, key_id: keyId } = row;
  const erasedAt = row.erased_at === null ? null : new Date(row.erased_at);
  if (body === null || headers === null) {
    const state = erasedAt === null ? "pruned" : "erased";
    const nothing = { data_key: null, body: null, body_base64: null, headers: null };
    return { event: id, event_id, state, erased_at: erasedAt, ...nothing };
  }
  const content = await keyring.open(client, id, { body, headers, keyId });
  return {
    event: id,
    event_id,
    state: "kept",
    erased_at: null,
    data_key: keyId,
    body: content.body.toString(),
    body_base64: content.body.toString("base64"),
    headers: JSON.parse(content.headers) as Record<string, unknown>,
  };
}

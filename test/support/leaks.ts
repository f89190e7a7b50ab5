// Canaries, the ways in which a handler may let them out, and the search for them.
import { expect } from "vitest";
import { notYet, retryAfter, terminal, type Audit, type HandlerTransaction } from "../../src/index.ts";
import type { Pool } from "../../src/storage/postgres.ts";

/** What must be found nowhere. */
export const CANARY = {
  key: "canaryApiKey0123456789",
  signing: "canarySigningSecret",
  bearer: "canaryBearerToken",
  address: "canary.person@example.com",
  card: "4000056655665556",
  spacedCard: "4000 0566 5566 5556",
  password: "canaryPassword",
};

/** All of them, as applications carry them about. */
export const FIELDS = {
  api_key: `sk_live_${CANARY.key}`,
  webhook: `whsec_${CANARY.signing}`,
  headers: { authorization: `Bearer ${CANARY.bearer}` },
  email: CANARY.address,
  card: CANARY.card,
  printed: CANARY.spacedCard,
  database: `postgres://app:${CANARY.password}@db.internal:5432/app`,
};

/** All of them in one sentence. */
export const SAID = [
  `refused sk_live_${CANARY.key}, whsec_${CANARY.signing}, Authorization: Bearer ${CANARY.bearer}, <${CANARY.address}>`,
  `${CANARY.card}, ${CANARY.spacedCard} at https://app:${CANARY.password}@host/path`,
].join(", ");

/** What a handler has that lets them out. */
export interface Leaking {
  readonly tx: HandlerTransaction;
  readonly audit: Audit;
  /** Its event or its payload. */
  readonly content: unknown;
}

const fail = (message: string, properties: object = {}) =>
  Promise.reject(Object.assign(new Error(message), properties));

/** Every way ends in a failed try. */
export const LEAKS: Readonly<Record<string, (leaking: Leaking) => Promise<unknown>>> = {
  message: () => fail(SAID),
  cause: () => Promise.reject(new Error("outside", { cause: new TypeError(SAID) })),
  several: () => Promise.reject(new AggregateError([new Error(SAID)], SAID)),
  stack: () => fail("outside", { stack: `Error: ${SAID}\n    at ${SAID}` }),
  name: () => fail("outside", { name: SAID }),
  code: () => fail("outside", { code: `sk_live_${CANARY.key}` }),
  text: () => Promise.reject(SAID),
  object: () => Promise.reject(FIELDS),
  content: ({ content }) => fail(`cannot handle ${JSON.stringify(content)}`),
  terminal: () => Promise.reject(terminal(SAID, { cause: new Error(SAID) })),
  retryAfter: () => Promise.reject(retryAfter(1, SAID)),
  notYet: () => Promise.reject(notYet(SAID, { within: 1 })),
  statement: ({ tx }) => tx.query("select $1::integer", [SAID]),
  row: ({ tx }) => tx.query("insert into people values ($1), ($1)", [SAID]),
  notice: ({ tx }) => tx.query(`do $$ begin raise exception '${SAID}'; end $$`),
  auditRefused: ({ audit }) => audit("person.seen", { details: { ...FIELDS, said: `${SAID}\0` } }),
  auditUnwritable: ({ audit }) => audit("person.seen", { details: { ...FIELDS, amount: 5n } }),
  auditRaised: ({ audit }) => audit("person.refused", { details: FIELDS }),
  auditAction: ({ audit }) => audit(`${SAID}\n`, { details: FIELDS }),
};

/** The same, where only the COMMIT says so. */
export const leakAtCommit = ({ tx }: Pick<Leaking, "tx">) => tx.query("insert into late values ($1)", [SAID]);

/** The tables and triggers that some of the ways need. */
export async function createLeakyTables(pool: Pool): Promise<void> {
  await pool.query(`
    create table people (said text primary key);
    create table late (said text);
    create function tell() returns trigger language plpgsql as $$
      begin raise exception 'refused at last: %', new.said; end $$;
    create constraint trigger tell after insert on late initially deferred for each row execute function tell();
    create function refuse() returns trigger language plpgsql as $$
      begin raise exception 'refused %', new.details using detail = new.details::text; end $$;
    create trigger refuse before insert on ukemi.audit_log for each row
      when (new.action = 'person.refused') execute function refuse()`);
}

/** Rows that may be read by somebody who may not read the events themselves. */
export async function keptRows(pool: Pool): Promise<string[]> {
  const tables = ["attempts", "jobs", "event_outcomes", "audit_log", "rejections"];
  const found = await Promise.all(
    tables.map((table) =>
      // a rejection keeps the body beside it, as an event does
      pool.query<{ row: string }>(`select (to_jsonb(t) - 'body_sample')::text as row from ukemi.${table} t`),
    ),
  );
  return found.flatMap(({ rows }) => rows.map(({ row }) => row));
}

/** Fails with the lines in which one is found, and where nothing was put in the place of any. */
export function expectNoCanary(lines: readonly string[]): void {
  const canaries = Object.entries(CANARY);
  const found = lines.flatMap((line) => {
    const names = canaries.flatMap(([name, canary]) => (line.includes(canary) ? name : []));
    return names.length > 0 ? `${names.join(", ")} in ${line}` : [];
  });
  expect(found).toEqual([]);
  const text = lines.join("\n");
  for (const place of ["[key]", "[secret]", "[token]", "[address]", "[number]"])
    expect(text).toContain(place);
}

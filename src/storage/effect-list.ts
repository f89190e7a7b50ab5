// Reading the ledger: effects by what people ask for, newest first, without looking through all of history.
import { timeOf, type Page } from "./conditions.ts";
import { formsOf, intentName, openTarget, receiptName, showText, wordsOf } from "./effect-content.ts";
import { findByDedupe } from "./effect-dedupe.ts";
import { shownState } from "./effect-state.ts";
import type { EffectKind, EffectState, OnUncertain } from "./effects.ts";
import { isUuid, uuidv7Floor } from "./ids.ts";
import { NO_KEYS, type Keyring } from "./keyring.ts";
import type { Queryable } from "./postgres.ts";
import { sift, type Sieve, type SiftOptions } from "./sift.ts";

/** Which effects to list, newest first. */
export interface EffectFilter {
  readonly kind?: EffectKind;
  /** As it is shown: a call whose lease has lapsed is uncertain. */
  readonly state?: EffectState;
  readonly tenant?: string;
  /** Only of these tenants. */
  readonly tenants?: readonly string[];
  /** A mailbox, in whatever case. */
  readonly to?: string;
  readonly target?: string;
  /** The event that decided it, by our id or by the sender's. */
  readonly event?: string;
  readonly dedupe?: string;
  readonly destination?: string;
  /** Intended at this time or later. */
  readonly since?: Date;
  /** Intended before this time. */
  readonly until?: Date;
}

export const CONTENT_STATES = ["kept", "sealed", "altered", "pruned", "erased"] as const;
/** Whether what an effect held is there: `sealed` under a key that this process lacks, `altered` since it was sealed, or removed by retention or an erasure. */
export type ContentState = (typeof CONTENT_STATES)[number];

/** An effect as the API and the command line show it. What is to be done is not shown: it may hold secrets. */
export interface ListedEffect {
  readonly id: string;
  readonly kind: EffectKind;
  readonly state: EffectState;
  readonly tenant: string | null;
  readonly target: string;
  readonly dedupe: string;
  readonly amount: number | null;
  readonly currency: string | null;
  readonly destination: string;
  /** Our id of the event. */
  readonly event: string | null;
  /** The sender's. */
  readonly event_id: string | null;
  readonly handler: string | null;
  readonly job: number | null;
  readonly attempt: number;
  readonly uncertainties: number;
  readonly on_uncertain: OnUncertain;
  readonly after: string | null;
  readonly suppressed_by: string | null;
  readonly planned_at: Date;
  readonly begun_at: Date | null;
  readonly ended_at: Date | null;
  readonly reason: string | null;
  readonly feedback: string | null;
  readonly feedback_at: Date | null;
  /** Of one that waits: for what, and until when where that is known. */
  readonly waits_for: string | null;
  readonly next_at: Date | null;
  /** Of a mail. */
  readonly template: string | null;
  readonly locale: string | null;
  /** What the server said when it took the mail. */
  readonly accepted_as: string | null;
  readonly content: ContentState;
  /** When it was pruned or erased. */
  readonly content_removed_at: Date | null;
}

type Timed = "planned_at" | "begun_at" | "ended_at" | "feedback_at" | "next_at" | "content_removed_at";
type Counted = "job" | "amount";
type Made = "template" | "locale" | "accepted_as" | "content";

/** A row as it comes: its times are text, and so are large numbers where it is not read as JSON. */
export type EffectRow = Omit<ListedEffect, Timed | Counted | Made> & {
  readonly [time in Timed]: string | null;
} & { readonly [count in Counted]: string | number | null } & {
  readonly target_sealed: string | null;
  readonly removed: "pruned" | "erased" | null;
  readonly mail: string | null;
  readonly mail_receipt: string | null;
};

/** What is told of the effect `t`; its event is `v`, its job `w`, and `f` the one that must be done first. */
export const EFFECT_COLUMNS = {
  select: `t.id::text, t.kind, ${shownState("t")} as state, t.tenant, t.target, t.dedupe_key as dedupe, t.amount, t.currency,
    t.destination, t.event, v.event_id, t.handler, t.job, t.attempt, t.uncertainties, t.on_uncertain, t.after,
    t.suppressed_by, to_json(t.planned_at) as planned_at, to_json(t.begun_at) as begun_at,
    to_json(t.ended_at) as ended_at, t.reason, t.feedback, to_json(t.feedback_at) as feedback_at,
    case
      when t.state not in ('planned', 'uncertain') then null
      when t.job is null and f.id is not null then 'effect ' || f.id || ', which is ' || f.state
      when w.state = 'dead' then 'an operator: its job ' || w.id || ' is dead'
      when w.state = 'cancelled' then 'an operator: its job ' || w.id || ' was dropped'
      when w.state = 'scheduled' and w.not_yet_since is not null then regexp_replace(w.error_message, '^waits for ', '')
      when w.state = 'scheduled' then 'its next try'
      when w.state = 'ready' then 'a free worker'
    end as waits_for,
    to_json(case when w.state = 'scheduled' and t.state in ('planned', 'uncertain') then w.run_at end) as next_at,
    t.target_sealed, to_json(coalesce(t.erased_at, t.pruned_at)) as content_removed_at,
    case when t.erased_at is not null then 'erased' when t.pruned_at is not null then 'pruned' end as removed,
    case when t.kind = 'email' and coalesce(t.erased_at, t.pruned_at) is null then t.intent end as mail,
    case when t.kind = 'email' then t.receipt end as mail_receipt`,
  joins: `left join ukemi.events v on v.id = t.event
    left join ukemi.jobs w on w.id = t.job
    left join ukemi.effects f on f.id = t.after`,
};

/** A process clock and the database's may differ: ids are only a coarse bound, `planned_at` the exact one. */
const ID_SLACK_MS = 3_600_000;

/** Lists effects, newest first. Rows that are added while a reader pages do not shift the pages. */
export async function listEffects(
  client: Queryable,
  filter: EffectFilter,
  options: SiftOptions,
  keyring: Keyring = NO_KEYS,
): Promise<Page<ListedEffect>> {
  // without the key a mail would seem never to have been intended
  if (filter.to !== undefined || filter.target !== undefined) await keyring.know(client);
  const { state, since, until } = filter;
  const events = filter.event === undefined ? undefined : await findEvents(client, filter.event);
  const first = filter.dedupe === undefined ? undefined : await findByDedupe(client, filter.dedupe, filter);
  if (events?.length === 0 || first?.length === 0) return { items: [] };
  const isHistory = state === "done" || state === "suppressed" || state === "cancelled";
  const sieve: Sieve = {
    table: "ukemi.effects",
    idType: "uuid",
    time: "planned_at",
    found: [
      ["tenant = ?", filter.tenant],
      ["tenant = any(?::text[])", filter.tenants],
      targetIs(keyring, filter.target),
      targetIs(keyring, filter.to?.trim().toLowerCase()),
      ["event = any(?::uuid[])", events],
      ["(id = any(?::uuid[]) or suppressed_by = any(?::uuid[]))", first],
      // the states on the way and the failed have an index
      ["?::boolean and " + statesLike(state), state === undefined || isHistory ? undefined : true],
      ["id >= ?::uuid", since && uuidv7Floor(since.getTime() - ID_SLACK_MS)],
      ["id < ?::uuid", until && uuidv7Floor(until.getTime() + ID_SLACK_MS)],
    ],
    told: [
      [`${shownState("looked")} = ?`, state],
      ["kind = ?", filter.kind],
      ["destination = ?", filter.destination],
    ],
    since,
    until,
  };
  const { items, ...rest } = await sift<EffectRow>(client, sieve, EFFECT_COLUMNS, options);
  return { items: await Promise.all(items.map((row) => toListed(client, keyring, row))), ...rest };
}

/** One form is found in the order of ids. */
function targetIs(keyring: Keyring, target: string | undefined): readonly [string, unknown] {
  const forms = target === undefined ? [] : formsOf(keyring, target);
  return forms.length > 1 ? ["target = any(?::text[])", forms] : ["target = ?", target];
}

/** What may be shown as this state. Written out: a partial index is found by what a condition says, not by a parameter. */
const statesLike = (state: EffectState | undefined) =>
  state === "sending" || state === "uncertain" ? "state in ('sending', 'uncertain')" : `state = '${state}'`;

async function findEvents(client: Queryable, event: string): Promise<readonly string[]> {
  // a sender's id may look like one of ours
  const byOurs = isUuid(event) ? "or id = $1::text::uuid" : "";
  const { rows } = await client.query<{ id: string }>(
    `select id::text from ukemi.events where event_id = $1::text ${byOurs}`,
    [event],
  );
  return rows.map(({ id }) => id);
}

/** The row with its times, and what may be told of a mail. */
export async function toListed(
  client: Queryable,
  keyring: Keyring,
  { mail, mail_receipt: receipt, target_sealed: sealed, removed, ...row }: EffectRow,
): Promise<ListedEffect> {
  const open = async (name: string, stored: string | null) =>
    stored === null ? undefined : showText(keyring.openText(client, name, stored));
  const target = await showText(openTarget(client, keyring, { target: row.target, sealed }));
  const intent = await open(intentName(row.id), mail);
  const taken = await open(receiptName(row.id), receipt);
  const hidden = [target, intent, taken].flatMap((shown) => (shown && "why" in shown ? shown.why : []));
  const { template = null, locale = null } = parse<{ template?: string; locale?: string }>(intent?.text);
  return {
    ...row,
    target: wordsOf(target),
    job: row.job === null ? null : Number(row.job),
    amount: row.amount === null ? null : Number(row.amount),
    planned_at: new Date(row.planned_at!),
    begun_at: timeOf(row.begun_at),
    ended_at: timeOf(row.ended_at),
    feedback_at: timeOf(row.feedback_at),
    next_at: timeOf(row.next_at),
    template,
    locale,
    accepted_as: parse<{ response?: string }>(taken?.text).response ?? null,
    content: removed ?? (hidden.includes("altered") ? "altered" : (hidden[0] ?? "kept")),
    content_removed_at: timeOf(row.content_removed_at),
  };
}

/** What was written as JSON; nothing where nothing was. Here, not in SQL: PostgreSQL's JSON refuses some of what is legal. */
function parse<T extends object>(text: string | undefined): Partial<T> {
  return text === undefined ? {} : ((JSON.parse(text) ?? {}) as T);
}

// Reading one effect with every call that was made for it, and what people did to it.
import { EFFECT_COLUMNS, toListed, type EffectRow, type ListedEffect } from "./effect-list.ts";
import { answerName, receiptName, showText } from "./effect-content.ts";
import { briefEffects, openBriefs, type BriefEffect, type StoredBrief } from "./effect-state.ts";
import type { ShownAct } from "./job-show.ts";
import { NO_KEYS, type Keyring } from "./keyring.ts";
import type { Queryable } from "./postgres.ts";

/** One call. */
export interface ShownCall {
  readonly number: number;
  /** Null while it is under way, by somebody's account. */
  readonly result: "done" | "again" | "failed" | "uncertain" | "blocked" | null;
  /** True where an earlier call may have been the one that counted. */
  readonly repeats: boolean;
  readonly error_class: string | null;
  readonly error_message: string | null;
  /** What the peer said, where a program can read it. */
  readonly answer: unknown;
  readonly started_at: string;
  readonly ended_at: string | null;
  readonly duration_ms: number | null;
}

/** An effect with all that is known of it. */
export interface ShownEffect extends ListedEffect {
  /** What the peer gave for it. Not of a call that somebody waited for: it may hold secrets. */
  readonly receipt: unknown;
  /** The latest calls, oldest first. */
  readonly attempts: readonly ShownCall[];
  /** Those that may begin when it is done. */
  readonly followers: readonly BriefEffect[];
  /** What was done to it, oldest first. */
  readonly acts: readonly ShownAct[];
}

const SHOW = `
select ${EFFECT_COLUMNS.select},
  case when t.kind <> 'call' then t.receipt end as receipt,
  coalesce((
    select json_agg(json_build_object('number', a.number, 'result', a.result, 'repeats', a.repeats,
      'error_class', a.error_class, 'error_message', a.error_message, 'answer', a.answer, 'started_at', a.started_at,
      'ended_at', a.ended_at, 'duration_ms', a.duration_ms) order by a.number)
    from (select * from ukemi.effect_attempts x where x.effect = t.id order by x.number desc limit 50) as a
  ), '[]') as attempts,
  ${briefEffects("e.after = t.id")} as followers,
  coalesce((
    select json_agg(json_build_object('at', l.at, 'actor', l.actor, 'action', l.action, 'reason', l.reason) order by l.id)
    from (
      select x.id, x.at, x.actor, x.action, x.details ->> 'reason' as reason
      from ukemi.audit_log x
      -- a handler may write of a target with the same name
      where x.target = t.id::text and x.role <> 'handler'
      order by x.id desc
      limit 50
    ) as l
  ), '[]') as acts
from ukemi.effects t
${EFFECT_COLUMNS.joins}
where t.id = $1::uuid and ($2::text[] is null or t.tenant = any($2::text[]))`;

type Row = EffectRow & {
  readonly receipt: string | null;
  readonly attempts: readonly (Omit<ShownCall, "answer"> & { readonly answer: string | null })[];
  readonly followers: readonly StoredBrief[];
  readonly acts: readonly ShownAct[];
};

/** Shows one effect; with tenants, only one of theirs. */
export async function showEffect(
  client: Queryable,
  id: string,
  tenants?: readonly string[],
  keyring: Keyring = NO_KEYS,
): Promise<ShownEffect | undefined> {
  const { rows } = await client.query<Row>(SHOW, [id, tenants ?? null]);
  if (!rows[0]) return undefined;
  const { receipt, attempts, followers, acts, ...row } = rows[0];
  const read = async (name: string, stored: string | null): Promise<unknown> => {
    if (stored === null) return null;
    const { text } = await showText(keyring.openText(client, name, stored));
    return text === undefined ? null : (JSON.parse(text) as unknown);
  };
  return {
    ...(await toListed(client, keyring, row)),
    receipt: await read(receiptName(id), receipt),
    attempts: await Promise.all(
      attempts.map(async ({ answer, ...call }) => ({
        ...call,
        answer: await read(answerName(id, call.number), answer),
      })),
    ),
    followers: await openBriefs(client, keyring, followers),
    acts,
  };
}

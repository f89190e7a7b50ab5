// Where an effect is on its way, as people are told: a call that is under way by nobody's account is uncertain.
import { openTarget, showText, wordsOf } from "./effect-content.ts";
import type { EffectKind, EffectState } from "./effects.ts";
import type { Keyring } from "./keyring.ts";
import type { Queryable } from "./postgres.ts";

/** Whether a worker has the job `j` in its hands. */
const IN_HANDS = "j.state = 'running' and j.lease_until > ukemi.now()";

/**
 * The state of the row with this name. A call that was begun and whose lease has lapsed *is* uncertain, whether or not
 * somebody has come by and written it down.
 */
export const shownState = (row: string): string => `
case
  when ${row}.state <> 'sending' then ${row}.state
  when ${row}.kind = 'call' then case when ${row}.lease_until > ukemi.now() then 'sending' else 'uncertain' end
  when exists (select from ukemi.jobs j where j.id = ${row}.job and ${IN_HANDS}) then 'sending'
  else 'uncertain'
end`;

/** An effect in a few words, where it is told beside something else. */
export interface BriefEffect {
  readonly id: string;
  readonly kind: EffectKind;
  readonly state: EffectState;
  readonly target: string;
}

/** The same as it comes from the database. */
export interface StoredBrief extends BriefEffect {
  readonly target_sealed: string | null;
}

/** What is told of the effect with this name, as JSON. */
export const briefOf = (row: string): string =>
  `json_build_object('id', ${row}.id, 'kind', ${row}.kind, 'state', ${row}.state, 'target', ${row}.target,
    'target_sealed', ${row}.target_sealed)`;

/** Their targets as they were; of those that cannot be read, why. */
export function openBriefs(
  client: Queryable,
  keyring: Keyring,
  stored: readonly StoredBrief[],
): Promise<BriefEffect[]> {
  return Promise.all(
    stored.map(async ({ target_sealed: sealed, ...brief }) => {
      const target = await showText(openTarget(client, keyring, { target: brief.target, sealed }));
      return { ...brief, target: wordsOf(target) };
    }),
  );
}

/** More would not be read by a person. */
const BRIEF_MOST = 100;

/** The effects for which the condition on `e` holds, in the order in which they were intended, as JSON: see openBriefs. */
export const briefEffects = (condition: string): string => `
coalesce((
  select json_agg(${briefOf("b")} order by b.id)
  from (
    select e.id, e.kind, ${shownState("e")} as state, e.target, e.target_sealed
    from ukemi.effects e
    where ${condition}
    order by e.id
    limit ${BRIEF_MOST}
  ) as b
), '[]')`;

// Settling a call: its effect and its job in one commit. What is known of a call is written down even where the job is lost.
import { crashPoint } from "../crash-point.ts";
import type { AttemptResult, Fault } from "../effects/attempt.ts";
import { decide, type Decision } from "../effects/decide.ts";
import { withoutProse } from "../effects/hidden.ts";
import { noteHealth, pause, type Health } from "../storage/destinations.ts";
import { expireEffect, launchReleased, settleEffect, type Settlement } from "../storage/effects-settle.ts";
import type { Effect } from "../storage/effects.ts";
import { classifyFault } from "../storage/faults.ts";
import type { Keyring } from "../storage/keyring.ts";
import { suppressAddress } from "../storage/mail-feedback.ts";
import { transaction, type Queryable } from "../storage/postgres.ts";
import { LeaseLost, settleDone } from "../storage/settle.ts";
import { settleFailed, type Failure, type KeptError } from "../storage/settle-failed.ts";
import type { Death } from "../storage/states.ts";
import {
  PATIENCE_MS,
  situationOf,
  stoppedAs,
  type EffectEnd,
  type EffectNews,
  type EffectRun,
} from "./effect-run.ts";

/** Writes down how the call ended and what follows; tried until the database has answered, for nobody else knows it. */
export async function settleCall(
  run: EffectRun,
  effect: Effect,
  result: AttemptResult,
  tookMs: number,
): Promise<EffectEnd> {
  const { seals } = await run.kinds.openKeyring();
  const bounded = withBoundedPause(seals ? withoutProse(result) : result);
  const decision = decide(bounded, situationOf(run, effect, tookMs));
  const settlement = settlementOf(run, effect, { decision, result: bounded, tookMs });
  const note = (client: Queryable) => noteDestination(client, effect, bounded);
  return write(run, { effect, decision, settlement, note });
}

/** Longer than this nobody is left alone because of one answer: after a day it is asked again. */
const PAUSE_MS_MAX = 86_400_000;

function withBoundedPause(result: AttemptResult): AttemptResult {
  if (result.is !== "again" || result.pauseMs === undefined) return result;
  return { ...result, pauseMs: Math.min(result.pauseMs, PAUSE_MS_MAX) };
}

/** Leaves it to a person, in the transaction that found it: the call was begun by somebody who is gone. */
export async function settleHeld(
  run: EffectRun,
  client: Queryable,
  effect: Effect,
  fault: Fault,
): Promise<{ readonly end: EffectEnd; readonly news: readonly EffectNews[] }> {
  const decision = { state: "held", fault } as const;
  const settlement = settlementOf(run, effect, { decision, result: undefined, tookMs: 0 });
  await settleEffect(client, settlement, await run.kinds.openKeyring());
  const end = await settleJob(client, run, effect.id, decision);
  return { end: { ...end, effect: effect.id }, news: [{ is: "held", effect, fault }] };
}

/** The call was not made, or certainly not heard, because the worker has to stop: as if it had not been begun. */
export async function settleUnmade(
  run: EffectRun,
  effect: Effect,
  fault: Fault,
  tookMs: number,
): Promise<EffectEnd> {
  const state = effect.uncertainties > 0 ? "uncertain" : "planned";
  const decision = { state, next: "wait", delayMs: 0, fault } as const;
  const result = { is: "again", fault } as const;
  const settlement = settlementOf(run, effect, { decision, result, tookMs });
  await run.returns.until(async () => {
    const keyring = await run.kinds.openKeyring();
    await transaction(run.pool, (client) => settleWithoutJob(client, settlement, keyring));
  });
  return { outcome: stoppedAs(run), effect: effect.id };
}

interface Ending {
  readonly effect: Effect;
  readonly decision: Decision;
  readonly settlement: Settlement;
  readonly note: (client: Queryable) => Promise<EffectNews[]>;
}

async function write(run: EffectRun, ending: Ending): Promise<EffectEnd> {
  let end: EffectEnd | undefined;
  let refused = false;
  await run.returns.until(async () => {
    try {
      end = await settleBoth(run, refused ? bareOf(ending) : ending);
    } catch (error) {
      if (error instanceof LeaseLost) end = await settleAlone(run, { ...bareOf(ending), note: ending.note });
      // what is known of the call must be written down, whatever of it the database does not take
      else if (classifyFault(error) !== "refused" || !refused) {
        refused ||= classifyFault(error) === "refused";
        throw error;
      }
    }
  });
  crashPoint("effect.settled");
  // the worker has ended before the database answered: its lease lapses, and the call is uncertain
  return end ?? { outcome: "lost", effect: ending.effect.id };
}

/** Only what is needed to go on: nothing in it comes from the peer or the application. */
function bareOf(ending: Ending): Ending {
  const { settlement, decision } = ending;
  const bare = {
    ...settlement,
    audit: null,
    answer: null,
    errorMessage: settlement.errorClass,
    receipt: null,
  };
  const fault = { class: "Unkept", message: "what the peer said could not be kept" };
  return {
    ...ending,
    settlement: bare,
    decision: "fault" in decision ? { ...decision, fault } : decision,
    note: () => Promise.resolve([]),
  };
}

async function settleBoth(run: EffectRun, ending: Ending): Promise<EffectEnd> {
  const { effect, decision, settlement, note } = ending;
  const news: EffectNews[] = [];
  const keyring = await run.kinds.openKeyring();
  const end = await transaction(run.pool, async (client) => {
    news.length = 0;
    const isOurs = await settleEffect(client, settlement, keyring);
    news.push(...(await note(client)));
    if (isOurs && decision.state === "held") news.push({ is: "held", effect, fault: decision.fault });
    if (isOurs && decision.state === "done" && decision.remark !== undefined)
      news.push({ is: "odd", effect, remark: decision.remark });
    if (decision.state === "failed" && isRecipientRefused(decision.fault))
      await suppressAddress(client, effect.id, "refused");
    const settled = await settleJob(client, run, effect.id, decision);
    crashPoint("effect.before_settle");
    return settled;
  });
  for (const one of news) run.onNews(one);
  return { ...end, effect: effect.id };
}

/** There is nobody of this address: to try it again and again ruins the sender's name. */
const isRecipientRefused = ({ answer }: Fault) => answer?.refused === "recipient";

/** The job is somebody else's by now; what we know of the call is true all the same. */
async function settleAlone(run: EffectRun, ending: Ending): Promise<EffectEnd> {
  const { effect, decision, settlement, note } = ending;
  const keyring = await run.kinds.openKeyring();
  const news: EffectNews[] = [];
  const isOurs = await transaction(run.pool, async (client) => {
    news.length = 0;
    const settled = await settleWithoutJob(client, settlement, keyring);
    news.push(...(await note(client))); // what the peer asks for holds, whoever has the job
    return settled;
  });
  for (const one of news) run.onNews(one);
  if (isOurs && decision.state === "held") run.onNews({ is: "held", effect, fault: decision.fault });
  return { outcome: stoppedAs(run), effect: effect.id };
}

/** Whoever has the job goes on with the effect as it is now; where that has ended it by holding the effect, a new one does. */
async function settleWithoutJob(
  client: Queryable,
  settlement: Settlement,
  keyring: Keyring,
): Promise<boolean> {
  const isOurs = await settleEffect(client, settlement, keyring);
  if (isOurs) await launchReleased(client, settlement.effect);
  return isOurs;
}

const NOTHING = { audits: [], links: new Map<string, string>() };

async function settleJob(
  client: Queryable,
  { running: { job }, tried }: EffectRun,
  effect: string,
  decision: Decision,
): Promise<Omit<EffectEnd, "effect">> {
  if (decision.state === "done" || decision.state === "held") {
    const done = { trail: NOTHING, attempt: tried(), within: null };
    await settleDone((text, values) => client.query(text, values), job, done);
    return { outcome: "done" };
  }
  const { failure, outcome } = failureOf(decision);
  const death: Death | null = await settleFailed(client, job, failure, tried());
  if (death === "overdue") await expireEffect(client, effect, failure.error.message);
  if (death !== null) return { outcome: "dead", death, error: failure.error };
  return { outcome, error: failure.error };
}

function failureOf(decision: Exclude<Decision, { state: "done" | "held" }>): {
  readonly failure: Failure;
  readonly outcome: "retry" | "not_yet" | "dead";
} {
  const error = keptOf(decision.fault);
  if (decision.state === "failed") {
    return { failure: { next: "die", death: decision.death, error }, outcome: "dead" };
  }
  const { next, delayMs } = decision;
  if (next === "retry") return { failure: { next, delayMs, error }, outcome: "retry" };
  return { failure: { next, delayMs, withinMs: PATIENCE_MS, error }, outcome: "not_yet" };
}

const keptOf = (fault: Fault): KeptError => ({ class: fault.class, message: fault.message, stack: null });

interface Ended {
  readonly decision: Decision;
  readonly result: AttemptResult | undefined;
  readonly tookMs: number;
}

function settlementOf({ performer }: EffectRun, effect: Effect, ended: Ended): Settlement {
  const { decision, result, tookMs } = ended;
  const fault = "fault" in decision ? decision.fault : undefined;
  const audit = performer.auditOf(effect);
  return {
    effect: effect.id,
    attempt: effect.attempt,
    state: decision.state,
    result: result?.is ?? null,
    receipt: decision.state === "done" ? textOf(decision.receipt) : null,
    errorClass: fault?.class ?? null,
    errorMessage: fault?.message ?? (decision.state === "done" ? (decision.remark ?? null) : null),
    answer: fault?.answer === undefined ? null : textOf(fault.answer),
    tookMs,
    waitMs: "next" in decision && decision.next === "retry" ? decision.delayMs : 0,
    audit: audit === undefined ? null : textOf(audit),
  };
}

/** A transport of somebody else's may give what is no JSON: the mail was taken all the same. */
function textOf(value: object): string | null {
  try {
    return JSON.stringify(value);
  } catch {
    return null;
  }
}

/** What the call says of its destination; what is news there is told when it is committed. */
async function noteDestination(
  client: Queryable,
  { id: effect, destination }: Effect,
  result: AttemptResult,
): Promise<EffectNews[]> {
  if (result.is === "again" && (result.pauseMs ?? 0) > 0) {
    const reason = result.fault.message;
    const isNews = await pause(client, destination, { ms: result.pauseMs!, reason });
    return isNews ? [{ is: "paused", destination, reason }] : [];
  }
  const health = HEALTH[result.is];
  if (health === undefined) return [];
  const reason = "fault" in result ? result.fault.message : "";
  const change = await noteHealth(client, destination, { effect, health, reason });
  return change === undefined ? [] : [{ is: change, destination, reason }];
}

/** A refusal of this one effect says nothing of its destination. */
const HEALTH: Readonly<Record<AttemptResult["is"], Health | undefined>> = {
  done: "well",
  again: "failing",
  uncertain: "failing",
  blocked: "blocked",
  failed: undefined,
};

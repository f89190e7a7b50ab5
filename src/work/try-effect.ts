// Carrying out an effect: begun in the ledger → its turn → one call → settled, together with its job.
import { crashPoint } from "../crash-point.ts";
import { sleep, steadyMs } from "../clock.ts";
import type { AttemptResult, Fault } from "../effects/attempt.ts";
import { afterDoubt, mayBeRepeated } from "../effects/decide.ts";
import { BUSY, nextTurn } from "../storage/destinations.ts";
import { beginEffect, type Begun } from "../storage/effects-begin.ts";
import { expireEffect } from "../storage/effects-settle.ts";
import type { Effect } from "../storage/effects.ts";
import type { Keyring } from "../storage/keyring.ts";
import { transaction, type Queryable } from "../storage/postgres.ts";
import { settleDone } from "../storage/settle.ts";
import { settleFailed } from "../storage/settle-failed.ts";
import {
  PATIENCE_MS,
  situationOf,
  stoppedAs,
  type EffectEnd,
  type EffectNews,
  type EffectRun,
} from "./effect-run.ts";
import { Stopped } from "./running.ts";
import { isUnreadable, settleErased, settleUnread } from "./unread-effect.ts";
import { settleCall, settleHeld, settleUnmade } from "./settle-call.ts";

/** Waits up to this long are sat out; for longer ones the job makes room for others. */
const SIT_OUT_MS = 5000;

/** Carries out the effect that the job is about. Rejects with LeaseLost, or where the database failed before the call. */
export async function tryEffect(run: EffectRun): Promise<EffectEnd> {
  const { job } = run.running;
  const { effect } = JSON.parse(job.payload ?? "{}") as { readonly effect: string };
  let begun: Beginning;
  try {
    begun = await beginInTurn(run, effect);
  } catch (error) {
    if (isUnreadable(error)) return settleUnread(run, effect, error);
    throw error;
  }
  switch (begun.is) {
    case "go":
      return callOnce(run, begun.effect, begun.turnAt);
    case "settled":
      for (const news of begun.news) run.onNews(news);
      return begun.end;
    // the worker has to stop, and gives the job back
    case "wait":
      return { outcome: stoppedAs(run), effect };
    case "over":
      await transaction(run.pool, (client) =>
        settleDone((text, values) => client.query(text, values), job, {
          trail: NOTHING,
          attempt: run.tried(),
          within: null,
        }),
      );
      return { outcome: "done", effect };
  }
}

const NOTHING = { audits: [], links: new Map<string, string>() };

const NOT_MADE: Fault = { class: "Stopped", message: "the call was not made: the worker had to stop" };

/** What is to be done; or that the job is settled for now: it makes room for others, or a person must decide. */
type Beginning =
  | Exclude<Begun, { readonly is: "uncertain" | "erased" }>
  | { readonly is: "settled"; readonly end: EffectEnd; readonly news: readonly EffectNews[] };

/** Asks until it may begin, and sits out short waits. */
async function beginInTurn(run: EffectRun, effect: string): Promise<Beginning> {
  const { stop } = run.running;
  const keyring = await run.kinds.openKeyring();
  const until = steadyMs() + SIT_OUT_MS;
  for (;;) {
    crashPoint("effect.before_begin");
    let isDoubted = false;
    const onDoubt = () => (isDoubted = true);
    const begun = await transaction(run.pool, (client) =>
      beginOrSettle(run, client, { effect, until, keyring, onDoubt }),
    );
    if (isDoubted) run.onNews({ is: "called", kind: run.performer.kind, outcome: "uncertain" });
    if (begun.is !== "wait" || stop.reason()) return begun;
    await sleep(begun.waitMs, stop.signal());
  }
}

interface Turn {
  readonly effect: string;
  readonly until: number;
  readonly keyring: Keyring;
  readonly onDoubt: () => void;
}

/** In one transaction: who reopens a destination finds every job that waits for it. */
async function beginOrSettle(
  run: EffectRun,
  client: Queryable,
  { effect, until, keyring, onDoubt }: Turn,
): Promise<Beginning> {
  const { running, performer, worker } = run;
  const begun = await beginEffect(client, {
    effect,
    lease: running.job,
    onDoubt,
    worker,
    keyring,
    // what a process did before it died burns no try; whether it is done again is the policy's to say
    mayRepeat: (found) => afterDoubt(NOT_MADE, situationOf(run, found, 0)).state !== "held",
    mayStill: (found) => mayBeRepeated(situationOf(run, found, 0)),
    limitsFor: (destination) => performer.limitsFor(destination),
  });
  if (begun.is === "erased") return { is: "settled", end: await settleErased(run, client, effect), news: [] };
  if (begun.is === "uncertain") {
    const fault = { class: "CallerGone", message: begun.why };
    return { is: "settled", ...(await settleHeld(run, client, begun.effect, fault)) };
  }
  if (begun.is !== "wait" || steadyMs() + begun.waitMs <= until) return begun;
  const { why, destination, detail } = begun;
  const news = why === "day" ? [{ is: "paused", destination, reason: detail ?? "" } as const] : [];
  return { is: "settled", end: await postpone(run, client, effect, begun), news };
}

async function callOnce(run: EffectRun, effect: Effect, turnAt: number): Promise<EffectEnd> {
  const { running, performer } = run;
  crashPoint("effect.begun");
  let isUnmade = false;
  const mayBegin = () => {
    crashPoint("effect.before_call");
    // by our own steady clock, whatever timers have or have not fired: another may hold the job by now
    if (running.leaseEndsAt <= steadyMs()) running.stop.stop(new Stopped("lease_lost"));
    isUnmade = running.stop.reason() !== undefined;
    return !isUnmade;
  };
  const call = callSignal(run);
  const turn = async () => {
    await untilTurn(run, effect, turnAt);
    if (!mayBegin()) throw new Error(NOT_MADE.message);
  };
  if (!performer.takesTurn) await turn().catch(() => {});
  if (running.stop.reason()) return settleUnmade(run, effect, NOT_MADE, 0);
  const startedAt = steadyMs();
  const timeoutMs = Math.max(1000, Math.min(performer.timeoutMs, performer.limitMs - effect.spentMs));
  const begins = () => mayBegin() && call.begin();
  const limits = { timeoutMs, signal: call.signal, mayBegin: begins, ...(performer.takesTurn && { turn }) };
  const result = await performer.perform(effect, limits).catch(asUncertain);
  crashPoint("effect.called");
  // it came to nothing because we had to stop: that is no fault of the effect, and burns no try
  if (isUnmade || (result.is === "again" && call.signal.aborted))
    return settleUnmade(run, effect, NOT_MADE, steadyMs() - startedAt);
  run.onNews({ is: "called", kind: effect.kind, outcome: result.is });
  return settleCall(run, effect, result, steadyMs() - startedAt);
}

/**
 * What gives a call up early. A mail is a conversation, and can be broken off; a request that is out cannot be taken back: to
 * give it up because our job or session is lost would only turn an answer that comes into a doubt that stays. Its own time
 * limit holds, and so does a stop of the worker.
 */
function callSignal({ running: { stop }, performer }: EffectRun) {
  const giving = new AbortController();
  let isOut = false;
  const hear = (reason: Error) => {
    if (!isOut || !(reason instanceof Stopped) || reason.reason === "stopping") giving.abort(reason);
  };
  const before = stop.reason();
  if (before) giving.abort(before);
  stop.listen(hear);
  return {
    signal: giving.signal,
    /** Its first byte goes out now. */
    begin() {
      isOut = !performer.takesTurn;
      return true;
    },
  };
}

/** A turn that was missed by more than this is not used: the calls before and after it would be too close to it. */
const LATE_MS = 25;
const ASK_AGAIN_MS = 100;

/** Waits for the call's turn; one that was missed, because this process or the database was slow, is taken anew. */
async function untilTurn(
  { running, performer, pool }: EffectRun,
  effect: Effect,
  turnAt: number,
): Promise<void> {
  const limits = performer.limitsFor(effect.destination);
  const isSpaced = limits.perSecond !== undefined || (limits.gapMs ?? 0) > 0;
  for (let at = turnAt; ;) {
    const waitMs = at - steadyMs();
    if (waitMs > 0) await sleep(waitMs, running.stop.signal());
    if (!isSpaced || running.stop.reason() || steadyMs() - at <= LATE_MS) return;
    // where the database cannot be asked nobody knows whose turn it is: until the lease ends, it is asked again
    at = await nextTurn(pool, effect.destination, limits).catch(() => steadyMs() - LATE_MS - 1);
    if (steadyMs() - at > LATE_MS) await sleep(ASK_AGAIN_MS, running.stop.signal());
    if (running.leaseEndsAt <= steadyMs()) return;
  }
}

/** It never rejects; where it does, that is a mistake of ours, and nobody knows how far the call came. */
function asUncertain(error: unknown): AttemptResult {
  const name = error instanceof Error ? error.name : "unknown";
  return { is: "uncertain", fault: { class: "Fault", message: `a fault in Ukemi while calling: ${name}` } };
}

/** The destination takes nothing now: the job comes again when it may. No try is counted. */
async function postpone(
  run: EffectRun,
  client: Queryable,
  effect: string,
  { waitMs, why, detail, destination }: Extract<Begun, { is: "wait" }>,
): Promise<EffectEnd> {
  const message = `waits for ${destination}: ${detail ?? WAITS[why]}`;
  const error = { class: BUSY, message, stack: null };
  const failure = { next: "wait", withinMs: PATIENCE_MS, delayMs: waitMs, error } as const;
  const death = await settleFailed(client, run.running.job, failure, run.tried());
  if (death !== null) await expireEffect(client, effect, message);
  return death === null ? { outcome: "not_yet", error, effect } : { outcome: "dead", death, error, effect };
}

const WAITS = {
  turn: "its rate is used up",
  concurrency: "as many calls as may be are under way",
  pause: "it is paused",
  day: "its limit of a day is reached",
  circuit: "it failed too often",
} as const;

// Effects that an application intends outside of handlers: in a transaction of its own, or in none.
import type { SqlClient } from "../storage/enqueue.ts";
import type { EffectKind } from "../storage/effects.ts";
import type { Planned } from "../storage/effects-plan.ts";
import { transaction, type Pool } from "../storage/postgres.ts";
import type { CallNow } from "./call-now.ts";
import { readTenant } from "./draft.ts";
import { createEffects, type Effects, type Kinds } from "./effects.ts";
import type { EmailGiven } from "./email/performer.ts";
import type { HttpGiven } from "./http/performer.ts";
import type { UsageRecordGiven } from "./usage/performer.ts";

/** For whom it is: one tenant's keys are not those of another. */
export interface ForTenant {
  readonly tenant?: string;
}

/** Effects in the caller's transaction: they are carried out if and only if that commits. `null` is one of their own. */
export interface CallerEffects {
  /** A mail, by the name of its template. */
  email(tx: SqlClient | null, template: string, mail: EmailGiven & ForTenant): Promise<Planned>;
  /** An HTTP call. It carries the same Idempotency-Key on every try. */
  http(tx: SqlClient | null, call: HttpGiven & ForTenant): Promise<Planned>;
  /** A record of use for the API_Meter. */
  usage(
    tx: SqlClient | null,
    record: UsageRecordGiven,
    options?: ForTenant & { readonly dedupe?: string },
  ): Promise<Planned>;
  /**
   * Makes a call whose answer somebody waits for, such as creating a Checkout Session: the intent is committed first, the
   * call is made with a key, and its result kept. Whoever asks again with the same key gets that result.
   */
  readonly callNow: CallNow;
}

export function createCallerEffects(
  kinds: Kinds,
  open: () => Promise<Pool>,
  callNow: CallNow,
): CallerEffects {
  async function within(
    tx: SqlClient | null,
    { kind, tenant, after }: ForTenant & { readonly kind: EffectKind; readonly after?: unknown },
    plan: (effects: Effects) => Promise<Planned>,
  ): Promise<Planned> {
    const cause = { tenant: readTenant(kind, tenant), event: null, cause: null, handler: null };
    const planBy = (client: SqlClient) => plan(createEffects(kinds, client, cause));
    if (tx !== null) return planBy(tx);
    // what it comes after must not change between two statements
    return after === undefined ? planBy(await open()) : transaction(await open(), planBy);
  }
  return {
    email: (tx, template, mail) =>
      within(tx, { ...mail, kind: "email" }, (effects) => effects.email(template, mail)),
    http: (tx, call) => within(tx, { ...call, kind: "http" }, (effects) => effects.http(call)),
    usage: (tx, record, options = {}) =>
      within(tx, { ...options, kind: "usage" }, (effects) => effects.usage(record, options)),
    callNow,
  };
}

// Effects that an application intends outside of handlers: in a transaction of its own, or in none.
import type { SqlClient } from "../storage/enqueue.ts";
import type { Planned } from "../storage/effects-plan.ts";
import type { Pool } from "../storage/postgres.ts";
import type { CallNow } from "./call-now.ts";
import { wrong } from "./draft.ts";
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
  async function within(tx: SqlClient | null, { tenant }: ForTenant): Promise<Effects> {
    if (tenant !== undefined && (tenant === "" || Buffer.byteLength(tenant) > 255)) {
      throw wrong("tenant", "it must be 1 to 255 bytes");
    }
    const cause = { tenant: tenant ?? null, event: null, cause: null, handler: null };
    return createEffects(kinds, tx ?? (await open()), cause);
  }
  return {
    email: async (tx, template, mail) => (await within(tx, mail)).email(template, mail),
    http: async (tx, call) => (await within(tx, call)).http(call),
    usage: async (tx, record, options = {}) => (await within(tx, options)).usage(record, options),
    callNow,
  };
}

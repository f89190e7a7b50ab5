// What applications intend: mail, HTTP calls and records of use, written into the ledger by whoever decides.
import { UkemiError } from "../errors.ts";
import type { SqlClient } from "../storage/enqueue.ts";
import { planEffect, type Planned } from "../storage/effects-plan.ts";
import type { Keyring } from "../storage/keyring.ts";
import type { Draft } from "./draft.ts";
import type { EmailGiven, EmailKind } from "./email/performer.ts";
import type { HttpGiven, HttpKind } from "./http/performer.ts";
import type { UsageKind, UsageRecordGiven } from "./usage/performer.ts";

/** What this process can carry out, and plan. */
export interface Kinds {
  readonly email: EmailKind | undefined;
  readonly http: HttpKind;
  readonly usage: UsageKind | undefined;
  /** True where somebody has configured one of them: there is work for a process without handlers, too. */
  readonly areConfigured: boolean;
  /** What seals intents, and opens them. */
  readonly openKeyring: () => Promise<Keyring>;
}

/** Effects that a handler intends: they are carried out if and only if its transaction commits. */
export interface Effects {
  /** A mail, by the name of its template. */
  email(template: string, mail: EmailGiven): Promise<Planned>;
  /** An HTTP call. It carries the same Idempotency-Key on every try. */
  http(call: HttpGiven): Promise<Planned>;
  /** A record of use for the API_Meter. */
  usage(record: UsageRecordGiven, options?: { readonly dedupe?: string }): Promise<Planned>;
}

/** Who decides, and for whom. */
export interface Cause {
  readonly tenant: string | null;
  readonly event: string | null;
  readonly cause: string | null;
  readonly handler: string | null;
}

/** The effects of one who decides, written through this client. */
export function createEffects(kinds: Kinds, client: SqlClient, cause: Cause): Effects {
  const plan = async (draft: Draft) => planEffect(client, { ...draft, ...cause }, await kinds.openKeyring());
  return {
    email: async (template, mail) => plan(await (kinds.email ?? missing("email")).draft(template, mail)),
    http: async (call) => plan(kinds.http.draft(call)),
    usage: async (record, { dedupe } = {}) => plan((kinds.usage ?? missing("usage")).draft(record, dedupe)),
  };
}

const NEEDED = {
  email: "set SMTP_URL and MAIL_FROM",
  usage: "set API_METER_URL, API_METER_TOKEN and API_METER_TENANT_ID",
};

function missing(kind: keyof typeof NEEDED): never {
  throw new UkemiError(
    "invalid_option",
    `effects.${kind}: there is nobody to carry it out: ${NEEDED[kind]}.`,
  );
}

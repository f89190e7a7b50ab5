// The list of addresses that get no mail, in an operator's hands.
import { addressOf } from "../effects/email/performer.ts";
import { isMailbox, maskMailbox } from "../effects/email/mailbox.ts";
import { UkemiError } from "../errors.ts";
import type { Page } from "../storage/conditions.ts";
import type { Keyring } from "../storage/keyring.ts";
import type { Pool } from "../storage/postgres.ts";
import {
  addSuppression,
  listSuppressions,
  removeSuppression,
  type Suppression,
  type SuppressionFilter,
} from "../storage/suppressions.ts";
import { readMandate, readText, wrong, type Mandate } from "./mandate.ts";
import { readPage, type PageRequest } from "./page.ts";
import type { Read } from "./read.ts";
import { inTransaction } from "./transaction.ts";

/** An address, and whose mail is meant; without a tenant, mail of nobody in particular. */
export interface SuppressedAddress {
  readonly address: string;
  readonly tenant?: string | undefined;
}

/** What a change of the list did. */
export interface SuppressionResult {
  readonly address: string;
  readonly tenant: string | null;
  /** Whether mail goes there now. */
  readonly suppressed: boolean;
  /** False where it was so before. */
  readonly changed: boolean;
}

/** What can be done with the list. */
export interface Suppressions {
  /** By address. */
  list(filter?: SuppressionFilter, page?: PageRequest): Promise<Page<Suppression>>;
  /** No mail goes to the address from the commit on, also none that is planned. */
  add(given: SuppressedAddress, mandate: Mandate): Promise<SuppressionResult>;
  /** Mail goes there again; what was suppressed meanwhile is not sent. */
  remove(given: SuppressedAddress, mandate: Mandate): Promise<SuppressionResult>;
}

const TENANT_MAX = 255;
/** An address, a blank, a tenant. */
const CURSOR = /^\S+ /;

export function createSuppressions(open: () => Promise<Pool>, read: Read, keyring: Keyring): Suppressions {
  return {
    async list({ address, ...filter } = {}, page = {}) {
      const { limit, before: after } = readPage(page, CURSOR);
      const wanted = { ...filter, ...(address === undefined ? {} : { address: addressOf(address) }) };
      return read((client) => listSuppressions(client, wanted, { limit, after }, keyring));
    },
    async add(given, mandate) {
      const change = readChange(given, mandate);
      const pool = await open();
      if (keyring.seals) await keyring.load(pool);
      const changed = await inTransaction(pool, (client) => addSuppression(client, change, keyring));
      return { address: change.address, tenant: change.tenant, suppressed: true, changed };
    },
    async remove(given, mandate) {
      const change = readChange(given, mandate);
      const changed = await inTransaction(await open(), (client) =>
        removeSuppression(client, change, keyring),
      );
      // a mistyped address would look as if it got mail again
      if (!changed) throw new UkemiError("not_found", "This address is not on the list for this tenant.");
      return { address: change.address, tenant: change.tenant, suppressed: false, changed };
    },
  };
}

function readChange({ address: given, tenant }: SuppressedAddress, mandate: Mandate) {
  const by = readMandate(mandate);
  const address = addressOf(given);
  if (!isMailbox(address)) throw wrong("address", "must be one plain mailbox, such as jane@example.com");
  return {
    ...by,
    address,
    masked: maskMailbox(address),
    tenant: tenant === undefined ? null : readText("tenant", tenant, TENANT_MAX),
  };
}

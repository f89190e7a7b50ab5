// Handlers in an operator's hands: who has which, whose jobs nobody runs, and taking one's claim on events back.
import { listHandlers, removeHandler, type ListedHandler } from "../storage/handlers.ts";
import type { Pool } from "../storage/postgres.ts";
import { inTransaction } from "./transaction.ts";
import type { Read } from "./read.ts";
import { readMandate, readText, type Mandate } from "./mandate.ts";

/** What can be done with handlers. */
export interface Handlers {
  list(): Promise<readonly ListedHandler[]>;
  /**
   * New events make no jobs for it any more; its jobs stay. False where no active handler has the name.
   * A worker that still has it registers it anew when it starts.
   */
  remove(name: string, mandate: Mandate): Promise<boolean>;
}

const NAME_MAX = 500;

export function createHandlers(open: () => Promise<Pool>, read: Read): Handlers {
  return {
    list: () => read(listHandlers),
    async remove(given, mandate) {
      const by = readMandate(mandate);
      const name = readText("name", given, NAME_MAX);
      return inTransaction(await open(), (client) => removeHandler(client, { name, ...by }));
    },
  };
}

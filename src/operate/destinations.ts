// Destinations in an operator's hands: hold up what goes to one, and let it go on when the cause is mended.
import { UkemiError } from "../errors.ts";
import { pauseDestination, resumeDestination, type Resumption } from "../storage/destination-change.ts";
import {
  listDestinations,
  readDestinationNames,
  type ListedDestination,
} from "../storage/destination-list.ts";
import type { Pool } from "../storage/postgres.ts";
import { readMandate, readText, wrong, type Mandate } from "./mandate.ts";
import type { Read } from "./read.ts";
import { inTransaction } from "./transaction.ts";

/** What can be done with destinations. */
export interface Destinations {
  list(): Promise<readonly ListedDestination[]>;
  /** No call begins for so long; those that are under way go on. Returns until when. */
  pause(name: string, minutes: number, mandate: Mandate): Promise<Date>;
  /** Ends its pause and resets its circuit; what waited for it goes out now. */
  resume(name: string, mandate: Mandate): Promise<Resumption>;
}

/** Thirty days: as long as an effect waits for its destination. */
export const PAUSE_MINUTES_MAX = 43_200;
const NAME_MAX = 255;

export function createDestinations(open: () => Promise<Pool>, read: Read): Destinations {
  /** A mistyped name would look paused, and nothing would have stopped. */
  async function check(given: string): Promise<string> {
    const name = readText("name", given, NAME_MAX);
    const known = await read(readDestinationNames);
    if (known.includes(name)) return name;
    const there = known.length === 0 ? "there are none yet" : `there is ${known.join(", ")}`;
    throw new UkemiError("not_found", `There is no destination ${JSON.stringify(name)}: ${there}.`);
  }
  return {
    list: () => read(listDestinations),
    async pause(given, minutes, mandate) {
      const by = readMandate(mandate);
      if (!(minutes >= 1 && minutes <= PAUSE_MINUTES_MAX)) {
        throw wrong("minutes", `must be a number from 1 to ${PAUSE_MINUTES_MAX}`);
      }
      const name = await check(given);
      const change = { name, ms: minutes * 60_000, ...by };
      return inTransaction(await open(), (client) => pauseDestination(client, change));
    },
    async resume(given, mandate) {
      const by = readMandate(mandate);
      const name = await check(given);
      return inTransaction(await open(), (client) => resumeDestination(client, { name, ...by }));
    },
  };
}

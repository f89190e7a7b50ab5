// Keeps one store open for as long as it is needed, and does its regular duties.
import { inTime, sleep, steadyMs, type DatabaseClock } from "../clock.ts";
import { UkemiError } from "../errors.ts";
import { describeFault } from "./faults.ts";
import type { Tell } from "./news.ts";
import { MONTHS_AHEAD, openStore, type Store, type StoreSettings } from "./open.ts";
import { indexRefs, makeBodyMonths, requireWritable, sampleClock } from "./upkeep.ts";

export interface StoreKeeper {
  /** Opens the store if it is not open. After a failure the next call tries again. */
  open(): Promise<Store>;
  /** The open store; throws where it is not open. */
  current(): Store;
  /** Throws where an event could not be stored now, or the database does not say so in time. */
  check(timeoutMs: number): Promise<void>;
  /** Cuts what still waits for a silent database. */
  close(): Promise<void>;
}

const REFS_EVERY_MS = 2000;
const UPKEEP_MS = 15_000;
const MONTHS_EVERY_MS = 6 * 60 * 60_000;

/** Nothing is opened until somebody asks. */
export function createStoreKeeper(settings: StoreSettings, clock: DatabaseClock, tell: Tell): StoreKeeper {
  const closing = new AbortController();
  let store: Store | undefined;
  let opening: Promise<Store> | undefined;
  let upkeep: Promise<unknown> | undefined;

  async function openNow(): Promise<Store> {
    store = await openStore(settings, tell);
    await sampleClock(store.duties, clock).catch(() => {}); // the first commit brings a reading too
    upkeep = Promise.all([keepUp(store), keepRefs(store)]);
    return store;
  }

  /** The database's time, the key of a new month, and the months of bodies. A fault only means that the next round tries again. */
  async function keepUp({ duties, keyring }: Store): Promise<void> {
    let monthsDueAt = steadyMs() + MONTHS_EVERY_MS;
    for (;;) {
      await sleep(UPKEEP_MS, closing.signal);
      if (closing.signal.aborted) return;
      try {
        await sampleClock(duties, clock);
        await keyring.renew(duties);
        if (steadyMs() < monthsDueAt) continue;
        await makeBodyMonths(duties, MONTHS_AHEAD);
        monthsDueAt = steadyMs() + MONTHS_EVERY_MS;
      } catch (error) {
        tell("warn", "upkeep failed", { error: describeFault(error) });
      }
    }
  }

  /** Only the index's owner may; where we are not, autovacuum does it, and now and then a receiver. */
  async function keepRefs({ duties }: Store): Promise<void> {
    while (!closing.signal.aborted) {
      await sleep(REFS_EVERY_MS, closing.signal);
      if (!closing.signal.aborted) await indexRefs(duties).catch(() => {});
    }
  }

  function current(): Store {
    if (!store) throw new UkemiError("store_unavailable", "The store is not open.");
    return store;
  }

  return {
    current,
    async open() {
      if (closing.signal.aborted) throw new UkemiError("stopping");
      opening ??= openNow().catch((error: unknown) => {
        opening = undefined;
        throw error;
      });
      return opening;
    },
    check: async (timeoutMs) =>
      inTime(requireWritable(current().duties), timeoutMs, () => {
        throw new UkemiError("store_unavailable", `The database did not answer within ${timeoutMs} ms.`);
      }),
    async close() {
      closing.abort();
      await opening?.catch(() => {});
      await store?.close();
      await upkeep;
    },
  };
}

// A handler's transaction before it is used. Most handlers never use theirs, and what one is made of costs more than they do.
import type { HandlerTransaction } from "./handler-statements.ts";
import type { OpenableTransaction } from "./handler-transaction.ts";

/** `make` is called when the handler first uses it, or when there is something to commit. */
export function createLazyTransaction(make: () => OpenableTransaction): OpenableTransaction {
  let made: OpenableTransaction | undefined;
  let ending: ((transaction: OpenableTransaction) => unknown) | undefined;

  function use(): OpenableTransaction {
    if (made) return made;
    made = make();
    ending?.(made); // whoever comes after its end is told so
    return made;
  }

  function end(how: (transaction: OpenableTransaction) => unknown): unknown {
    if (made) return how(made);
    ending ??= how;
    return undefined;
  }

  const tx: HandlerTransaction = {
    query: ((...args: [string]) => use().tx.query(...args)) as HandlerTransaction["query"],
    send: ((...args: [string]) => use().tx.send(...args)) as HandlerTransaction["send"],
    get client() {
      return use().tx.client;
    },
    get pool() {
      return use().tx.pool;
    },
  };

  return {
    tx,
    used: () => made !== undefined && made.used(),
    lostToInfrastructure: () => made !== undefined && made.lostToInfrastructure(),
    mark: () => made?.mark() ?? null,
    commit: (last) => use().commit(last),
    rollback: async () => void (await end((transaction) => transaction.rollback())),
    close: () => void end((transaction) => transaction.close()),
    abandon: () => void end((transaction) => transaction.abandon()),
  };
}

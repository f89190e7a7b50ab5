// Objects that behave like the clients of `pg`, for query builders that expect those.
import type pg from "pg";

/** `pg` also takes a callback as the last argument; knex uses that. */
export function withCallbacks(
  send: (args: readonly unknown[]) => Promise<pg.QueryResult>,
): pg.PoolClient["query"] {
  const query = (...args: unknown[]) => {
    const tell = args.at(-1);
    if (typeof tell !== "function") return send(args);
    void send(args.slice(0, -1)).then(
      (result) => void tell(null, result),
      (error: unknown) => void tell(error),
    );
  };
  return query as unknown as pg.PoolClient["query"];
}

/** A client that is given back to nobody, and tells of nothing. */
export function clientLike(query: pg.PoolClient["query"]): pg.PoolClient {
  const nothing = () => {};
  const client = {
    query,
    release: nothing,
    on: nothing,
    once: nothing,
    off: nothing,
    removeListener: nothing,
  };
  return client as unknown as pg.PoolClient;
}

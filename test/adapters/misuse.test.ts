// What a handler must not do with its transaction: it is told so, and nothing is committed by halves.
import { Kysely, PostgresDialect } from "kysely";
import knex from "knex";
import { expect, test } from "vitest";
import type { HandlerTransaction, TaskContext } from "../../src/index.ts";
import { createDatabase } from "../support/database.ts";
import { makeUkemi, untilDrained } from "../support/work.ts";

type Attempt = TaskContext["job"];
type Handler = (tx: HandlerTransaction, job: Attempt) => Promise<unknown>;

/** Runs the handler until its job has ended; returns what its failed tries said and the notes that were committed. */
async function run(handler: Handler, options: { readonly leaseMs?: number; readonly retries?: number } = {}) {
  const { url, pool } = await createDatabase();
  await pool.query("create table notes (id text)");
  const { ukemi } = makeUkemi(url, { leaseMs: options.leaseMs ?? 30_000 });
  ukemi.task("note", ({ tx, job }) => handler(tx, job), {
    retry: { retries: options.retries ?? 0, delaysMs: [20] },
  });
  await ukemi.work();
  await ukemi.enqueue(null, "note", null);
  const [job] = await untilDrained(pool);
  const attempts = await pool.query<{ said: string }>(
    "select error_message as said from ukemi.attempts where outcome in ('retry', 'dead') order by id",
  );
  const notes = await pool.query<{ id: string }>("select id from notes order by id");
  return {
    state: job!.state,
    said: attempts.rows.map((row) => row.said),
    notes: notes.rows.map((row) => row.id),
  };
}

const note = (tx: Pick<HandlerTransaction, "query">, id: string) =>
  tx.query("insert into notes values ($1)", [id]);

test.each(["commit", "COMMIT;", "end", "rollback", "abort", "/* by hand */ commit", "-- by hand\nrollback"])(
  "refuses to end the handler's transaction: %j",
  async (statement) => {
    const { state, said, notes } = await run(async (tx) => {
      await note(tx, "one");
      await tx.query(statement);
    });
    expect({ state, notes }).toEqual({ state: "dead", notes: [] });
    expect(said[0]).toContain("return to commit, throw to roll back");
  },
);

test("leaves savepoints of the handler's own alone", async () => {
  const { state, notes } = await run(async (tx) => {
    await note(tx, "one");
    await tx.query("savepoint mine");
    await note(tx, "two");
    await tx.query("rollback transaction to savepoint mine");
  });
  expect({ state, notes }).toEqual({ state: "done", notes: ["one"] });
});

test("refuses an inner transaction that is to be stricter than the handler's", async () => {
  const { said, notes } = await run(async (tx) => {
    await note(tx, "one");
    await new Kysely({ dialect: new PostgresDialect({ pool: tx.pool }) })
      .transaction()
      .setIsolationLevel("serializable")
      .execute(() => Promise.resolve());
  });
  expect(said[0]).toContain("isolation level");
  expect(notes).toEqual([]);
});

test("refuses a second inner transaction beside an open one", async () => {
  const results: string[] = [];
  const { state, notes } = await run(async (tx) => {
    const inner = async (id: string) => {
      const client = await tx.pool.connect();
      await client.query("begin");
      await note(client, id);
      await client.query("commit");
    };
    const [first, second] = await Promise.allSettled([inner("one"), inner("two")]);
    results.push(first.status, second.status);
  });
  expect(results).toEqual(["fulfilled", "rejected"]);
  expect({ state, notes }).toEqual({ state: "done", notes: ["one"] });
});

test("refuses a statement of another client beside an open inner transaction", async () => {
  const { state, notes } = await run(async (tx) => {
    const [inner, other] = [await tx.pool.connect(), await tx.pool.connect()];
    await inner.query("begin");
    await note(inner, "one");
    await expect(note(other, "two")).rejects.toThrow("an inner transaction is open");
    await inner.query("rollback");
    await note(other, "three");
  });
  expect({ state, notes }).toEqual({ state: "done", notes: ["three"] });
});

test("does not commit the first half of an inner transaction that nobody waited for", async () => {
  const { state, said, notes } = await run(async (tx, { attempt }) => {
    await tx.client.query("begin");
    await note(tx.client, `try ${attempt}`);
  });
  expect({ state, notes }).toEqual({ state: "dead", notes: [] });
  expect(said[0]).toContain("ended before a transaction that it opened");
});

test("a failed inner transaction that its builder tries to commit can still be rolled back", async () => {
  const { state, notes } = await run(async (tx) => {
    await tx.query("begin");
    await note(tx, "one");
    await expect(tx.query("select 1 / 0")).rejects.toThrow("division by zero");
    await expect(tx.query("commit")).rejects.toThrow("aborted");
    await tx.query("rollback");
    await note(tx, "two");
  });
  expect({ state, notes }).toEqual({ state: "done", notes: ["two"] });
});

test("a caught error is named as the reason, not what followed from it", async () => {
  const { said } = await run(async (tx) => {
    await note(tx, "one");
    await expect(tx.query("select 1 / 0")).rejects.toThrow("division by zero");
    await expect(note(tx, "two")).rejects.toThrow("aborted");
  });
  expect(said).toEqual(["division by zero"]);
});

test("a mistake in the call of a query counts as a failed try", async () => {
  const { state, said, notes } = await run(async (tx) => {
    await note(tx, "one");
    await tx.query("insert into notes values ($1)", "two" as never);
  });
  expect({ state, said, notes }).toEqual({
    state: "dead",
    said: ["Query values must be an array"],
    notes: [],
  });
});

test("a builder that goes on after the handler's end gets an error and writes nothing", async () => {
  const db = knex({ client: "pg" });
  let late: Promise<unknown> | undefined;
  const { state, notes } = await run(async (tx) => {
    await note(tx, "one");
    late = new Promise((resolve) => setTimeout(resolve, 200)).then(() =>
      db("notes").connection(tx.client).insert({ id: "late" }),
    );
    late.catch(() => {}); // looked at below
  });
  await expect(late).rejects.toThrow("The transaction is over");
  expect({ state, notes }).toEqual({ state: "done", notes: ["one"] });
});

test("a transaction that is left idle for too long counts as a failed try", async () => {
  const { state, said, notes } = await run(
    async (tx, { attempt }) => {
      await note(tx, `try ${attempt}`);
      // the server's limit is 5/6 of the lease, which itself is kept alive
      await new Promise((resolve) => setTimeout(resolve, attempt === 1 ? 1500 : 0));
      await note(tx, `try ${attempt} again`);
    },
    { leaseMs: 1200, retries: 1 },
  );
  expect(state).toBe("done");
  expect(said).toEqual(["terminating connection due to idle-in-transaction timeout"]);
  expect(notes).toEqual(["try 2", "try 2 again"]);
});

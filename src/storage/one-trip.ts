// A whole transaction in one trip, without BEGIN and COMMIT. The server runs all statements up to one Sync in one transaction,
// and commits it there; where one of them fails, none has happened.
import pg from "pg";
import { crashPoint } from "../crash-point.ts";
import { CommitUnknown } from "./commit.ts";
import { classifyFault, isAnswered } from "./faults.ts";
import { asSent } from "./postgres.ts";
import { whyNotSettled } from "./settle.ts";
import { isKnown, wireOf, type Wire } from "./wire.ts";

/** A statement that nobody waits for. Only one with a name is planned once for a connection. */
export interface Sendable {
  readonly name?: string | undefined;
  readonly text: string;
  readonly values?: readonly unknown[] | undefined;
}

/** True where the connection hears a name for the first time. If that fails, nobody knows which names it has. */
export function learnsNames(client: pg.ClientBase, statements: readonly Sendable[]): boolean {
  const wire = wireOf(client);
  return statements.some((statement) => statement.name !== undefined && !isKnown(wire, statement));
}

/** Runs them as one transaction. Rejects with CommitUnknown where nobody can tell whether it was committed. */
export async function commitInOneTrip(client: pg.ClientBase, statements: readonly Sendable[]): Promise<void> {
  crashPoint("work.before_commit");
  try {
    await new Promise<void>((resolve, reject) => {
      client.query(new Trip(statements, (error: unknown) => (error ? reject(error) : resolve())));
    });
  } catch (error) {
    // what the server refuses, at its statement or at the end (a deferred constraint), is undone
    if (isAnswered(error)) throw whyNotSettled(error);
    if (classifyFault(error) !== "infrastructure") throw error;
    throw new CommitUnknown("the answer to the commit was lost", { cause: error });
  }
  const { parsedStatements } = wireOf(client);
  for (const { name, text } of statements) if (name !== undefined) parsedStatements[name] = text;
}

/** To `pg` it is one query, which is answered when all of them are committed. */
class Trip extends pg.Query {
  readonly #statements: readonly Sendable[];

  constructor(statements: readonly Sendable[], told: (error: unknown) => void) {
    super("", told);
    this.#statements = statements;
  }

  override submit = (connection: unknown): null => {
    const wire = connection as Wire; // as `pg` gives it to each of its queries
    wire.stream.cork();
    try {
      this.#write(wire);
    } catch (error) {
      wire.stream.destroy(error as Error); // half of it may be written: nothing can follow
    } finally {
      wire.stream.uncork();
    }
    return null;
  };

  #write(wire: Wire): void {
    const heard = new Set<string>();
    for (const statement of this.#statements) {
      const { name = "", text, values = [] } = statement;
      if (!isKnown(wire, statement) && !heard.has(name)) wire.parse({ name, text });
      if (name !== "") heard.add(name);
      wire.bind({ statement: name, values, valueMapper: asSent });
      wire.execute({ rows: 0 });
    }
    wire.sync();
  }

  // nobody asks for rows
  handleRowDescription(): void {}
  handleDataRow(): void {}
  handleCommandComplete(): void {}
}

// What lies beneath a client of `pg`, whose types do not tell of it: for queries of our own kind.
import type pg from "pg";
import type { asSent } from "./postgres.ts";

/** A connection as `pg` gives it to each of its queries. */
export interface Wire {
  readonly stream: {
    cork(): void;
    uncork(): void;
    write(bytes: Buffer, written: () => void): void;
    destroy(error: Error): void;
  };
  /** The named statements that the server has, by their text. */
  readonly parsedStatements: Record<string, string>;
  /** Those that are on their way to it. */
  readonly submittedNamedStatements: Record<string, string>;
  parse(statement: { name: string; text: string }): void;
  bind(portal: { statement: string; values: readonly unknown[]; valueMapper: typeof asSent }): void;
  execute(portal: { rows: number }): void;
  sync(): void;
}

export const wireOf = (client: pg.ClientBase) => (client as unknown as { connection: Wire }).connection;

/** One that is on its way counts: whoever stands behind it comes when it is there. Where it failed, the database is to blame. */
export const isKnown = (
  { parsedStatements, submittedNamedStatements }: Wire,
  { name }: { readonly name?: string | undefined },
) =>
  name !== undefined &&
  (Object.hasOwn(parsedStatements, name) || Object.hasOwn(submittedNamedStatements, name));

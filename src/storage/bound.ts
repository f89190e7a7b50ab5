// A statement with one row for an answer, whose parameters are written straight into the message that is sent.
import pg from "pg";
import { asBuffer, Message, type Parameter } from "./message.ts";
import type { Connection } from "./postgres.ts";
import { isKnown, type Wire } from "./wire.ts";

export interface BoundStatement {
  /** Only one with a name is planned once for a connection. */
  readonly name: string | undefined;
  readonly text: string;
  readonly parameters: readonly Parameter[];
}

/** A row as PostgreSQL writes it: each column as text. */
export type Texts = readonly (string | null)[];

const asText = { getTypeParser: () => (text: string) => text };

/** Runs the statement. A transaction that somebody else has opened takes it as any other; there, it is rare. */
export function askBound(
  connection: Pick<Connection, "query"> & Partial<Pick<Connection, "submit">>,
  statement: BoundStatement,
): Promise<Texts> {
  const { submit } = connection;
  if (submit) {
    return new Promise((resolve, reject) => {
      submit(new Bound(statement, (error, row) => (error ? reject(error) : resolve(row!))));
    });
  }
  const { name, text, parameters } = statement;
  const values = parameters.map(asBuffer);
  const query = { ...(name !== undefined && { name }), text, values, rowMode: "array", types: asText };
  return connection.query<never>(query).then(({ rows }) => rows[0]!);
}

type Told = (error: unknown, row?: Texts) => void;

/** To `pg` it is one of its queries. It asks for no description of the row: whoever wrote the statement knows it. */
class Bound extends pg.Query {
  readonly name: string;
  readonly text: string;
  readonly #parameters: readonly Parameter[];
  #row: Texts | undefined;
  declare callback: Told;

  constructor({ name = "", text, parameters }: BoundStatement, told: Told) {
    super("", told);
    this.name = name;
    this.text = text;
    this.#parameters = parameters;
  }

  override submit = (connection: unknown): unknown => {
    const wire = connection as Wire; // as `pg` gives it to each of its queries
    const { name, text } = this;
    const message = new Message();
    try {
      writeRequest(message, name, this.#parameters);
    } catch (error) {
      message.giveBack();
      return error; // nothing was sent: `pg` tells whoever waits, and goes on
    }
    const isNew = !(name !== "" && isKnown(wire, { name }));
    if (isNew) {
      wire.stream.cork();
      wire.parse({ name, text });
      if (name !== "") wire.submittedNamedStatements[name] = text;
    }
    wire.stream.write(message.bytes(), () => message.giveBack());
    if (isNew) wire.stream.uncork();
    return null;
  };

  handleDataRow({ fields }: { readonly fields: Texts }): void {
    this.#row = fields;
  }
  handleCommandComplete(): void {}

  handleReadyForQuery(): void {
    this.callback(null, this.#row);
  }
}

/** Bind, Execute and Sync; https://www.postgresql.org/docs/current/protocol-message-formats.html says what they are made of. */
function writeRequest(message: Message, name: string, parameters: readonly Parameter[]): void {
  message.byte(CODES.bind);
  message.measured(() => {
    message.name(""); // the portal
    message.name(name);
    message.int16(1); // one format for all parameters,
    message.int16(1); // which is binary
    message.int16(parameters.length);
    for (const write of parameters) write(message);
    message.int16(0); // and text for the answer
  }, 4);
  message.byte(CODES.execute);
  message.measured(() => {
    message.name("");
    message.int32(0); // all rows
  }, 4);
  message.byte(CODES.sync);
  message.int32(4);
}

const CODES = { bind: 0x42, execute: 0x45, sync: 0x53 };

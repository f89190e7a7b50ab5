// The transactions that a query builder opens inside a handler's: savepoints of the one that is committed with the job.
import { UkemiError } from "../errors.ts";

/** Who sends a statement: a client of the builder's pool, or null for those that share the transaction itself. */
export type Sender = object | null;

/** Knows the one inner transaction that may be open. */
export interface Savepoints {
  /** Sends the statement, or what stands for it here. Throws at once where it would end the transaction or tear it apart. */
  run<T>(text: string, by: Sender, send: (text: string) => Promise<T>): Promise<T>;
  isOpen(): boolean;
}

const NAME = "ukemi_inner";

const LEAD = String.raw`^(?:\s|;|--[^\n]*\n|/\*[^]*?\*/)*`;
const BEGIN = new RegExp(String.raw`${LEAD}(?:begin|start\s+transaction)\b(?<modes>[^;]*)`, "i");
const COMMIT = new RegExp(String.raw`${LEAD}(?:commit|end)\b`, "i");
const TO_SAVEPOINT = String.raw`\s+(?:(?:work|transaction)\s+)?to\b`;
const ROLLBACK = new RegExp(String.raw`${LEAD}(?:rollback|abort)\b(?!${TO_SAVEPOINT})`, "i");
/** What the handler's transaction is anyway. */
const PLAIN_MODES =
  /^\s*(?:(?:work|transaction|read\s+write|isolation\s+level\s+read\s+committed)\b[\s,]*)*$/i;

export function createSavepoints(): Savepoints {
  let holder: Sender | undefined;

  /** Checked and noted before anything is sent: two that begin at once must not both be let in. */
  function begin<T>(modes: string, by: Sender, send: (text: string) => Promise<T>): Promise<T> {
    // a builder that nests uses savepoints of its own: this one overlaps, and their ends could not be told apart
    if (holder !== undefined) throw refusal("an inner transaction is open already: wait for its end first");
    if (!PLAIN_MODES.test(modes))
      throw refusal("an inner transaction has the isolation level and access mode of the handler's");
    holder = by;
    return send(`savepoint ${NAME}`).catch((error: unknown) => {
      holder = undefined;
      throw error;
    });
  }

  /** One that could not be ended stays open: the builder may still roll it back, and until then nothing is committed. */
  function end<T>(text: string, send: (text: string) => Promise<T>): Promise<T> {
    if (holder === undefined)
      throw refusal("it is committed with its job: return to commit, throw to roll back");
    return send(text).then((answer) => {
      holder = undefined;
      return answer;
    });
  }

  return {
    isOpen: () => holder !== undefined,
    run(text, by, send) {
      if (by && holder && holder !== by)
        throw refusal("an inner transaction is open: use that one, or wait for its end");
      const beginning = BEGIN.exec(text);
      if (beginning) return begin(beginning.groups?.modes ?? "", by, send);
      if (COMMIT.test(text)) return end(`release savepoint ${NAME}`, send);
      if (ROLLBACK.test(text)) return end(`rollback to savepoint ${NAME}`, send);
      return send(text);
    },
  };
}

function refusal(why: string): UkemiError {
  return new UkemiError("transaction_over", `The handler's transaction cannot do this: ${why}.`);
}

// Prisma opens the handler's transaction itself, and Ukemi's statements run in it as raw SQL.
import type { SqlClient } from "../storage/enqueue.ts";
import type { TransactionOwner } from "./transaction-owner.ts";

/** What is used of a client of Prisma. */
export interface PrismaLike<Tx> {
  $transaction(
    work: (tx: Tx) => Promise<void>,
    limits: { readonly maxWait: number; readonly timeout: number },
  ): Promise<void>;
}

/** What is used of a transaction of Prisma. */
export interface RawQueries {
  $queryRawUnsafe(text: string, ...values: unknown[]): PromiseLike<unknown>;
}

/** How long Prisma may wait for a free connection. */
const MAX_WAIT_MS = 5000;

/** Prisma's own time limit must not come before the handler's, which is judged and recorded. */
const MARGIN_MS = 5000;

/** For the option `transaction` of a handler, whose `tx` is then that of Prisma's `$transaction`. */
export function prismaTransaction<Tx extends RawQueries>(prisma: PrismaLike<Tx>): TransactionOwner<Tx> {
  return {
    async run(work, { timeLimitMs }) {
      let thrown: { readonly error: unknown } | undefined;
      const keeping = async (tx: Tx) => {
        try {
          await work(tx, prismaSql(tx));
        } catch (error) {
          thrown = { error };
          throw error;
        }
      };
      try {
        await prisma.$transaction(keeping, { maxWait: MAX_WAIT_MS, timeout: timeLimitMs + MARGIN_MS });
      } catch (error) {
        throw thrown ? thrown.error : asSqlError(error);
      }
    },
  };
}

/** For `ukemi.enqueue(prismaSql(tx), …)`: runs plain SQL in a transaction of Prisma. */
export function prismaSql(tx: RawQueries): SqlClient {
  return {
    async query(text, values) {
      try {
        return { rows: (await tx.$queryRawUnsafe(text, ...values)) as unknown[] };
      } catch (error) {
        throw asSqlError(error);
      }
    },
  };
}

/** Where Prisma's errors keep what the driver said: an SQLSTATE, or else that the connection failed. */
interface PrismaError {
  readonly cause?: { readonly kind?: unknown; readonly originalCode?: unknown };
  readonly meta?: { readonly driverAdapterError?: PrismaError };
}

/** An error with the server's SQLSTATE as its code, as `pg` has it; without a code where the connection failed. */
function asSqlError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { cause, meta } = error as PrismaError;
  const said = meta?.driverAdapterError?.cause ?? cause;
  if (said?.kind === undefined) return error;
  const plain = new Error(error.message, { cause: error });
  return said.originalCode === undefined ? plain : Object.assign(plain, { code: said.originalCode });
}

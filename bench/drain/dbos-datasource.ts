// A datasource of DBOS for `pg`, after its documented contract for datasources: the published ones are made for an older
// DBOS. As theirs do, it looks for a checkpoint, and commits the handler's writes together with the step's own.
import { AsyncLocalStorage } from "node:async_hooks";
import type pg from "pg";
import { peer } from "../peer.ts";

type Run<T> = (this: unknown, ...args: unknown[]) => Promise<T>;

interface Datasource {
  registerDataSource(handler: object): void;
  runTransaction<T>(run: () => Promise<T>, name: string, options: { readonly dsName: string }): Promise<T>;
  migrateDataSourcePG(run: (sql: string) => Promise<unknown[]>): Promise<void>;
  replayRecordedStep(recorded: object): unknown;
  assertStillOwnsWorkflow(workflow: string): Promise<void>;
}
interface Dbos {
  readonly DBOS: { readonly workflowID: string; readonly stepID: number };
}
const contract = await peer<Datasource>("@dbos-inc/dbos-sdk/datasource");
const { DBOS } = await peer<Dbos>("@dbos-inc/dbos-sdk");

const NAME = "bench";
const current = new AsyncLocalStorage<pg.PoolClient>();

/** Registers it; what is given to `transaction` runs as a step of its own transaction. */
export function useDatasource(pool: pg.Pool) {
  contract.registerDataSource({
    name: NAME,
    initialize: () => migrate(pool),
    destroy: () => Promise.resolve(),
    async deleteCheckpoints(workflow: string, step: number) {
      await pool.query(
        "delete from dbos.transaction_completion where workflow_id = $1 and function_num >= $2",
        [workflow, step],
      );
    },
    async invokeTransactionFunction<T>(_: unknown, target: unknown, run: Run<T>, ...args: unknown[]) {
      const { workflowID, stepID } = DBOS;
      const { rows } = await pool.query<object>(
        "select output, error from dbos.transaction_completion where workflow_id = $1 and function_num = $2",
        [workflowID, stepID],
      );
      if (rows[0]) return contract.replayRecordedStep(rows[0]);
      return inTransaction(pool, async (client) => {
        const result = await current.run(client, () => run.call(target, ...args));
        await client.query(
          "insert into dbos.transaction_completion (workflow_id, function_num, output) values ($1, $2, $3)",
          [workflowID, stepID, JSON.stringify({ json: result ?? null })],
        );
        await contract.assertStillOwnsWorkflow(workflowID);
        return result;
      });
    },
  });
  return {
    transaction: <T>(run: (client: pg.PoolClient) => Promise<T>): Promise<T> =>
      contract.runTransaction(() => run(current.getStore()!), "effect", { dsName: NAME }),
  };
}

async function inTransaction<T>(pool: pg.Pool, run: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  try {
    await client.query("begin");
    const result = await run(client);
    await client.query("commit");
    return result;
  } catch (error) {
    await client.query("rollback");
    throw error;
  } finally {
    client.release();
  }
}

async function migrate(pool: pg.Pool): Promise<void> {
  await inTransaction(pool, (client) =>
    contract.migrateDataSourcePG(async (sql) => (await client.query<object>(sql)).rows),
  );
}

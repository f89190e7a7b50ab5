// DBOS 5.3. A workflow for each event, on a queue, with one transaction step: the UPDATE and the step's checkpoint commit
// together. Settings: a high worker concurrency and a short polling interval, a pool as large as it uses. One workflow is
// enqueued by its client; the others are copies of its rows.
import { peer } from "../peer.ts";
import { useDatasource } from "./dbos-datasource.ts";
import { answerDrain, HAS_EFFECT, noteHandled, openBenchPool } from "./drainer.ts";
import { EFFECT, eventSql, TEMPLATE, type DrainEvent } from "./job.ts";

interface Client {
  enqueue(options: object, ...args: unknown[]): Promise<unknown>;
  destroy(): Promise<void>;
}
interface Dbos {
  readonly DBOS: {
    setConfig(config: object): void;
    launch(): Promise<void>;
    shutdown(options: { readonly workflowCompletionTimeoutMS: number }): Promise<void>;
    registerQueue(name: string, options: object): Promise<unknown>;
    registerWorkflow(run: (event: DrainEvent) => Promise<void>, config: { readonly name: string }): unknown;
  };
  readonly DBOSClient: { create(options: { readonly systemDatabaseUrl: string }): Promise<Client> };
}
const { DBOS, DBOSClient } = await peer<Dbos>("@dbos-inc/dbos-sdk");

const QUEUE = "drain";
const CONCURRENCY = 100;
const POLL_MS = 20;
const STOP_MS = 10_000;

const systemDatabaseUrl = process.env.DATABASE_URL!;
const pool = openBenchPool(10);
const { transaction } = useDatasource(pool);
DBOS.setConfig({
  name: "bench",
  systemDatabaseUrl,
  systemDatabasePoolSize: 20,
  applicationVersion: "1",
  logLevel: "error",
});
DBOS.registerWorkflow(
  async ({ data }) => {
    if (HAS_EFFECT)
      await transaction(async (client) => void (await client.query(EFFECT, [data.object.account])));
    noteHandled();
  },
  { name: "drain" },
);

const work = async () => {
  await DBOS.launch();
  return () => DBOS.shutdown({ workflowCompletionTimeoutMS: STOP_MS });
};

// the tables and the queue
const first = await work();
await DBOS.registerQueue(QUEUE, { workerConcurrency: CONCURRENCY, minPollingIntervalMs: POLL_MS });
await first();
// one that nobody dequeues: its version is another
const client = await DBOSClient.create({ systemDatabaseUrl });
const model = { workflowName: "drain", queueName: QUEUE, workflowID: "model", appVersion: "0" };
await client.enqueue(model, JSON.parse(TEMPLATE));
await client.destroy();

await answerDrain({
  async store(from, count) {
    await pool.query(
      `with made as materialized (
         select n, 'drain-' || n as id from generate_series($1::integer, $1::integer + $2::integer - 1) as n
       ),
       inputs as (
         insert into dbos.workflow_input
         select (jsonb_populate_record(model, jsonb_build_object('workflow_uuid', made.id,
           'inputs', ${eventSql("made.n", "model.inputs")}))).*
         from made, dbos.workflow_input model where model.workflow_uuid = 'model'
       )
       insert into dbos.workflow_status
       select (jsonb_populate_record(model,
         jsonb_build_object('workflow_uuid', made.id, 'application_version', '1'))).*
       from made, dbos.workflow_status model where model.workflow_uuid = 'model'`,
      [from, count],
    );
  },
  async unfinished() {
    const { rows } = await pool.query<{ count: number }>(
      `select count(*)::integer as count from dbos.workflow_status
       where status in ('ENQUEUED', 'PENDING', 'DELAYED') and workflow_uuid <> 'model'`,
    );
    return rows[0]!.count;
  },
  work,
  end: () => pool.end(),
});

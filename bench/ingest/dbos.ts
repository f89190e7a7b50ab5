// DBOS: `DBOSClient.enqueue` with a pool of 10 (4, 24 and 48 are no faster), on a registered queue; the event's id as workflow id, which
// is its idempotency key and is kept as long as the workflow.
import { peer } from "../peer.ts";
import { serve } from "./verify.ts";

interface Client {
  registerQueue(name: string): Promise<unknown>;
  enqueue(
    options: { readonly queueName: string; readonly workflowName: string; readonly workflowID: string },
    event: object,
  ): Promise<unknown>;
  destroy(): Promise<void>;
}

interface Dbos {
  readonly DBOS: {
    setConfig(config: Readonly<Record<string, unknown>>): void;
    launch(): Promise<void>;
    shutdown(): Promise<void>;
  };
  readonly DBOSClient: {
    create(options: {
      readonly systemDatabaseUrl: string;
      readonly systemDatabasePoolSize: number;
    }): Promise<Client>;
  };
}

const { DBOS, DBOSClient } = await peer<Dbos>("@dbos-inc/dbos-sdk");
const systemDatabaseUrl = process.env.DATABASE_URL!;
// an application that starts and ends makes the tables; what only enqueues must not work on the queue too
DBOS.setConfig({ name: "bench", systemDatabaseUrl, logLevel: "error", runAdminServer: false });
await DBOS.launch();
await DBOS.shutdown();
const client = await DBOSClient.create({ systemDatabaseUrl, systemDatabasePoolSize: 10 });
await client.registerQueue("stripe");

await serve(
  async ({ event }) =>
    void (await client.enqueue({ queueName: "stripe", workflowName: "stripe", workflowID: event.id }, event)),
  () => client.destroy(),
);

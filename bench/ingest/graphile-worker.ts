// graphile-worker: `addJob` of one long-lived WorkerUtils with a pool of 10 (4, 24 and 48 are no faster); the event's id as job key in
// the mode `unsafe_dedupe`, the only one that leaves a job alone which is there already. It forgets the id when the job is done.
import { peer } from "../peer.ts";
import { serve } from "./verify.ts";

interface GraphileWorker {
  makeWorkerUtils(options: { readonly connectionString: string; readonly maxPoolSize: number }): Promise<{
    migrate(): Promise<void>;
    addJob(
      task: string,
      payload: unknown,
      spec: { readonly jobKey: string; readonly jobKeyMode: "unsafe_dedupe" },
    ): Promise<unknown>;
    release(): Promise<void>;
  }>;
}

const { makeWorkerUtils } = await peer<GraphileWorker>("graphile-worker");
const utils = await makeWorkerUtils({
  connectionString: process.env.DATABASE_URL!,
  maxPoolSize: 10,
});
await utils.migrate();

await serve(
  async ({ event }) =>
    void (await utils.addJob("stripe", event, { jobKey: event.id, jobKeyMode: "unsafe_dedupe" })),
  () => utils.release(),
);

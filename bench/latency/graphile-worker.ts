// graphile-worker 0.18: worker and sender in one process. Settings: its defaults, which are told of new jobs by NOTIFY. The
// batching options of its performance page trade latency for throughput, so they are off here.
import { eventOf } from "../drain/job.ts";
import { peer } from "../peer.ts";
import { answerLatency, createStarts } from "./samples.ts";

interface Runner {
  addJob(task: string, payload: unknown): Promise<unknown>;
  stop(): Promise<void>;
}
interface GraphileWorker {
  readonly Logger: new (factory: () => () => void) => unknown;
  run(options: object): Promise<Runner>;
}
const { Logger, run } = await peer<GraphileWorker>("graphile-worker");

const starts = createStarts();
const runner = await run({
  preset: {
    worker: {
      connectionString: process.env.DATABASE_URL,
      concurrentJobs: 10,
      maxPoolSize: 12,
      logger: new Logger(() => () => {}),
    },
  },
  taskList: { latency: starts.note },
  noHandleSignals: true,
});

answerLatency({
  prepare(number) {
    const event = eventOf(number);
    return () => runner.addJob("latency", event);
  },
  started: starts.next,
  end: () => runner.stop(),
});

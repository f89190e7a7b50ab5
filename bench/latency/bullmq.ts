// BullMQ 6 on Redis with `appendfsync always`: worker and sender in one process. Settings: its defaults; the worker waits in a
// blocking command, and finished jobs are removed at once.
import { eventOf } from "../drain/job.ts";
import { peer } from "../peer.ts";
import { answerLatency, createStarts } from "./samples.ts";

interface BullMq {
  readonly Queue: new (
    name: string,
    options: object,
  ) => { add(name: string, data: object, options: object): Promise<unknown>; close(): Promise<void> };
  readonly Worker: new (
    name: string,
    handler: () => Promise<void>,
    options: object,
  ) => {
    on(event: "error", listener: (error: Error) => void): void;
    waitUntilReady(): Promise<unknown>;
    close(): Promise<void>;
  };
}
const { Queue, Worker } = await peer<BullMq>("bullmq");

const connection = {
  host: "127.0.0.1",
  port: Number(process.env.REDIS_PORT),
  maxRetriesPerRequest: null,
};
const starts = createStarts();
const queue = new Queue("latency", { connection });
const worker = new Worker("latency", () => Promise.resolve(starts.note()), { connection });
worker.on("error", (error) => console.error(error));
await worker.waitUntilReady();

answerLatency({
  prepare(number) {
    const event = eventOf(number);
    return () => queue.add("latency", event, { removeOnComplete: true });
  },
  started: starts.next,
  async end() {
    await worker.close();
    await queue.close();
  },
});

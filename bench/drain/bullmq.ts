// BullMQ 6 on Redis with `appendfsync always`. Settings: a high concurrency in one worker, as its guide advises for handlers
// that wait for others, and finished jobs removed at once. Redis has no part in a transaction of PostgreSQL.
import { peer } from "../peer.ts";
import { answerDrain, noteHandled } from "./drainer.ts";
import { eventOf, type DrainEvent } from "./job.ts";

interface Queue {
  addBulk(jobs: readonly { name: string; data: DrainEvent; opts: object }[]): Promise<unknown>;
  getJobCountByTypes(...types: string[]): Promise<number>;
  close(): Promise<void>;
}
interface Worker {
  on(event: "error", listener: (error: Error) => void): void;
  waitUntilReady(): Promise<unknown>;
  close(): Promise<void>;
}
interface BullMq {
  readonly Queue: new (name: string, options: object) => Queue;
  readonly Worker: new (name: string, handler: () => Promise<void>, options: object) => Worker;
}
const { Queue, Worker } = await peer<BullMq>("bullmq");

const ADD_ROWS = 2000;
const CONCURRENCY = 200;
const connection = {
  host: "127.0.0.1",
  port: Number(process.env.REDIS_PORT),
  maxRetriesPerRequest: null,
};
const queue = new Queue("drain", { connection });

await answerDrain({
  async store(first, count) {
    for (let from = first; from < first + count; from += ADD_ROWS) {
      const length = Math.min(ADD_ROWS, first + count - from);
      await queue.addBulk(
        Array.from({ length }, (_, index) => ({
          name: "drain",
          data: eventOf(from + index),
          opts: { removeOnComplete: true },
        })),
      );
    }
  },
  unfinished: () => queue.getJobCountByTypes("wait", "active", "delayed", "prioritized"),
  async work() {
    const handle = () => Promise.resolve(noteHandled());
    const worker = new Worker("drain", handle, { connection, concurrency: CONCURRENCY });
    worker.on("error", (error) => console.error(error));
    await worker.waitUntilReady();
    return () => worker.close();
  },
  end: () => queue.close(),
});

// pg-boss 12.38: worker and sender in one process. Settings: `useListenNotify`, a queue with `notify`, so that the worker is
// woken rather than polling.
import { eventOf } from "../drain/job.ts";
import { peer } from "../peer.ts";
import { answerLatency, createStarts } from "./samples.ts";

interface Boss {
  on(event: "error", listener: (error: Error) => void): void;
  start(): Promise<unknown>;
  stop(options: { readonly graceful: boolean }): Promise<void>;
  createQueue(name: string, options: { readonly notify: boolean }): Promise<void>;
  send(name: string, data: object): Promise<unknown>;
  work(name: string, options: object, handler: () => Promise<void>): Promise<string>;
}
const { PgBoss } = await peer<{ readonly PgBoss: new (options: object) => Boss }>("pg-boss");

const QUEUE = "latency";
const starts = createStarts();
const boss = new PgBoss({
  connectionString: process.env.DATABASE_URL,
  max: 10,
  schedule: false,
  useListenNotify: true,
});
boss.on("error", (error) => console.error(error));
await boss.start();
await boss.createQueue(QUEUE, { notify: true });
await boss.work(QUEUE, { batchSize: 1 }, () => Promise.resolve(starts.note()));

answerLatency({
  prepare(number) {
    const event = eventOf(number);
    return () => boss.send(QUEUE, event);
  },
  started: starts.next,
  end: () => boss.stop({ graceful: false }),
});

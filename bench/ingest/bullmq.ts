// BullMQ: `Queue.add` over one ioredis connection, which sends commands without waiting for answers (auto-pipelining is no faster); the
// event's id as job id, kept as long as the job. Redis: appendonly yes, appendfsync always, no snapshots, no rewrites, noeviction.
import { peer } from "../peer.ts";
import { serve } from "./verify.ts";

interface Queue {
  on(event: "error", listener: (error: Error) => void): void;
  waitUntilReady(): Promise<unknown>;
  add(name: string, data: object, options: { readonly jobId: string }): Promise<unknown>;
  close(): Promise<void>;
}

const { Queue } = await peer<{
  Queue: new (name: string, options: Readonly<Record<string, unknown>>) => Queue;
}>("bullmq");
const queue = new Queue("stripe", {
  connection: { host: "127.0.0.1", port: Number(process.env.REDIS_PORT), enableOfflineQueue: false },
});
queue.on("error", console.error);
await queue.waitUntilReady();

await serve(
  async ({ event }) => void (await queue.add(event.type, event, { jobId: event.id })),
  () => queue.close(),
);

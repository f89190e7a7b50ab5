// pg-boss: `send` with a pool of 24 (10 is slower, 48 no faster), no supervision and no schedules in the process that only sends; a
// queue with the policy `exclusive` and a table of its own, and the event's id as singleton key. It forgets the id when the job is done.
import { peer } from "../peer.ts";
import { serve } from "./verify.ts";

interface PgBoss {
  on(event: "error", listener: (error: Error) => void): void;
  start(): Promise<unknown>;
  createQueue(name: string, options: { readonly policy: string; readonly partition: boolean }): Promise<void>;
  send(name: string, data: object, options: { readonly singletonKey: string }): Promise<string | null>;
  stop(options: { readonly graceful: boolean }): Promise<void>;
}

const { PgBoss } = await peer<{ PgBoss: new (options: Readonly<Record<string, unknown>>) => PgBoss }>(
  "pg-boss",
);
const boss = new PgBoss({
  connectionString: process.env.DATABASE_URL,
  max: 24,
  supervise: false,
  schedule: false,
});
boss.on("error", console.error);
await boss.start();
await boss.createQueue("stripe", { policy: "exclusive", partition: true });

await serve(
  async ({ event }) => void (await boss.send("stripe", event, { singletonKey: event.id })),
  () => boss.stop({ graceful: false }),
);

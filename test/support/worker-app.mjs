// A worker as its own process, for tests that kill it: the handler writes what can be counted, and keeps its own log.
import { appendFileSync, existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { createUkemi, stripe } from "../../dist/index.js";

const {
  DATABASE_URL,
  WORKER_LOG,
  WORKER_GATE,
  WORKER_SECRET,
  WORKER_OPTIONS = "{}",
  WORKER_SHARED,
  WORKER_SENDS,
} = process.env;

const ukemi = createUkemi({
  database: DATABASE_URL,
  ...JSON.parse(WORKER_OPTIONS),
  sources: { stripe: stripe({ secrets: [WORKER_SECRET] }) },
});

/** One short append is one whole line, also where several processes write and one of them dies. */
const note = (what, event) =>
  appendFileSync(WORKER_LOG, `${what} ${event} ${process.pid} ${process.hrtime.bigint() / 1_000_000n}\n`);

async function untilGateOpens() {
  while (!existsSync(WORKER_GATE)) await sleep(5);
}

// the event's id says what happens: evt_7_ms20 takes 20 ms, evt_8_crash ends the process, and evt_9_held waits at the
// gate, where the process has one
const handle = async ({ event, tx }) => {
  const ms = Number(/_ms(\d+)/.exec(event.id)?.[1] ?? 0);
  const number = Number(/^evt_(\d+)/.exec(event.id)?.[1] ?? 0);
  const write = WORKER_SENDS === "on" ? tx.send : tx.query;
  note("begin", event.id);
  await sleep(ms / 2);
  await write("update counter set n = n + 1 where id = $1", [number % 16]);
  await write("insert into written (event, pid) values ($1, $2)", [event.id, process.pid]);
  note("wrote", event.id);
  if (event.id.endsWith("_crash")) process.kill(process.pid, "SIGKILL");
  await sleep(ms / 2);
  if (event.id.endsWith("_held") && WORKER_GATE) {
    await untilGateOpens();
    note("awake", event.id);
    try {
      await tx.query("insert into late (event, pid) values ($1, $2)", [event.id, process.pid]);
      note("late", event.id);
    } catch (error) {
      note("refused", event.id);
      throw error;
    }
  }
  note("end", event.id);
};
ukemi.on("stripe", "payment_intent.succeeded", handle, { sharedCommit: WORKER_SHARED === "on" });

// as a deploy ends it: a handler that heeds no signal does not hold it up
process.once("SIGTERM", () => void ukemi.stop().then(() => process.exit(0)));

await ukemi.work();

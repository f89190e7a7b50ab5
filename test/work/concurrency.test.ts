// How many jobs of a queue run at once in a process, counted inside the handlers.
import { expect, test } from "vitest";
import { sampleEvent } from "../../src/testing/sample-events.ts";
import { signStripe } from "../../src/testing/sign.ts";
import { createDatabase } from "../support/database.ts";
import { createSignal } from "../support/sender.ts";
import { SECRET } from "../support/server.ts";
import { until } from "../support/until.ts";
import { makeUkemi, untilDrained } from "../support/work.ts";

/** Counts what runs at once; whoever is counted stays until the gate is opened, and then for one turn of a timer. */
function createCount() {
  const gate = createSignal();
  const count = { running: 0, peak: 0, ended: 0, open: gate.give, stay };
  async function stay(): Promise<void> {
    count.running += 1;
    count.peak = Math.max(count.peak, count.running);
    await gate.given;
    await new Promise((resolve) => setTimeout(resolve, 5));
    count.running -= 1;
    count.ended += 1;
  }
  return count;
}

test("each queue runs as many jobs at once as it may and no more, and a full one holds up no other", async () => {
  const { url, pool } = await createDatabase();
  const { ukemi } = makeUkemi(url, { concurrency: 3, queues: { narrow: { concurrency: 2 } } });
  const [full, narrow, other] = [createCount(), createCount(), createCount()];
  ukemi.task("full", full.stay, { queue: "full" });
  ukemi.task("narrow", narrow.stay, { queue: "narrow" });
  ukemi.task("other", other.stay, { queue: "other" });
  other.open();
  for (const task of ["full", "narrow", "other"]) {
    for (let n = 0; n < 12; n++) await ukemi.enqueue(null, task, n);
  }
  await ukemi.work();
  await until(() => full.running === 3 && narrow.running === 2, "both queues to be full");
  await until(() => other.ended === 12, "the third queue to be worked off");
  // a worker that went on looking would have taken more of them by now
  expect({ full: full.running, narrow: narrow.running }).toEqual({ full: 3, narrow: 2 });
  full.open();
  narrow.open();
  const jobs = await untilDrained(pool);
  expect(jobs).toHaveLength(36);
  expect(jobs.every(({ state, attempt }) => state === "done" && attempt === 1)).toBe(true);
  expect({ full: full.peak, narrow: narrow.peak, other: other.peak }).toEqual({
    full: 3,
    narrow: 2,
    other: 3,
  });
});

test("a queue takes no more than it may also where events come in at its own door", async () => {
  const { url, pool } = await createDatabase();
  const { ukemi } = makeUkemi(url, { concurrency: 3 });
  const [held, other] = [createCount(), createCount()];
  ukemi.on("stripe", "payment_intent.succeeded", held.stay);
  ukemi.on("stripe", "charge.succeeded", other.stay, { queue: "other" });
  other.open();
  await ukemi.work();
  const receive = ukemi.receiver("stripe");
  const post = async (type: string) => {
    const body = sampleEvent(type);
    const request = { method: "POST", headers: signStripe(body, SECRET), body };
    expect((await receive(new Request("http://here/webhooks/stripe", request))).status).toBe(204);
  };
  const twelve = (type: string) => Promise.all(Array.from({ length: 12 }, () => post(type)));
  await twelve("payment_intent.succeeded");
  await until(() => held.running === 3, "the queue to be full");
  await twelve("charge.succeeded");
  await until(() => other.ended === 12, "the other queue to be worked off");
  expect(held.running).toBe(3);
  held.open();
  expect(await untilDrained(pool)).toHaveLength(24);
  expect({ held: held.peak, other: other.peak <= 3 }).toEqual({ held: 3, other: true });
});

// The gauges of the queues must never hold up whoever asks for metrics.
import { expect, test, vi } from "vitest";
import { createBacklog, type Backlog, type QueueBacklog } from "./backlog.ts";
import { createMetrics } from "./metrics.ts";

const QUEUE: QueueBacklog = {
  name: "default",
  paused: true,
  ready: 3,
  scheduled: 2,
  waiting: 1,
  running: 4,
  dead: 5,
  oldest_ready_seconds: 7.5,
};

const BACKLOG: Backlog = {
  queues: [QUEUE],
  operations: { running: 2, stopped: 1 },
  ledger: {
    effects: [
      { kind: "email", destination: "smtp", waiting: 3, uncertain: 2, held: 1, oldest_waiting_seconds: 9.5 },
      { kind: "http", destination: "other", waiting: 0, uncertain: 0, held: 0, oldest_waiting_seconds: null },
    ],
    destinations: [
      { destination: "smtp", paused: 1, open: 0 },
      { destination: "other", paused: 0, open: 4 },
    ],
  },
};

const facts = { version: "0", waiting: () => 0, running: () => 0, skewMs: () => 0 };

test("shows what waits in each queue, and asks once for all of it", async () => {
  const read = vi.fn(() => Promise.resolve(BACKLOG));
  const { registry } = createMetrics({ ...facts, backlog: createBacklog(read) });
  for (let times = 0; times < 3; times += 1) {
    const text = await registry.metrics();
    expect(text).toContain('ukemi_queue_jobs{queue="default",state="ready"} 3');
    expect(text).toContain('ukemi_queue_jobs{queue="default",state="scheduled"} 2');
    expect(text).toContain('ukemi_queue_jobs{queue="default",state="waiting"} 1');
    expect(text).toContain('ukemi_queue_jobs{queue="default",state="running"} 4');
    expect(text).toContain('ukemi_queue_jobs{queue="default",state="dead"} 5');
    expect(text).toContain('ukemi_queue_oldest_ready_seconds{queue="default"} 7.5');
    expect(text).toContain('ukemi_operations{state="running"} 2');
    expect(text).toContain('ukemi_operations{state="stopped"} 1');
    expect(text).toContain('ukemi_queue_paused{queue="default"} 1');
  }
  expect(read).toHaveBeenCalledTimes(1);
});

test("shows what of the ledger waits, is uncertain or held, and which destinations take nothing", async () => {
  const { registry } = createMetrics({ ...facts, backlog: createBacklog(() => Promise.resolve(BACKLOG)) });
  const text = await registry.metrics();
  for (const line of [
    'ukemi_effects{kind="email",destination="smtp",state="waiting"} 3',
    'ukemi_effects{kind="email",destination="smtp",state="uncertain"} 2',
    'ukemi_effects{kind="email",destination="smtp",state="held"} 1',
    'ukemi_effects{kind="http",destination="other",state="waiting"} 0',
    'ukemi_effects_oldest_waiting_seconds{kind="email",destination="smtp"} 9.5',
    'ukemi_effects_oldest_waiting_seconds{kind="http",destination="other"} 0',
    'ukemi_destinations_paused{destination="smtp"} 1',
    'ukemi_destinations_open{destination="other"} 4',
  ])
    expect(text).toContain(line);
});

test("answers without the queues when the database hangs, and asks it once", async () => {
  const read = vi.fn(() => new Promise<never>(() => {}));
  const { registry } = createMetrics({ ...facts, backlog: createBacklog(read) });
  for (let times = 0; times < 3; times += 1) {
    const text = await registry.metrics();
    expect(text).toContain("ukemi_jobs_running 0");
    expect(text).not.toContain("ukemi_queue_jobs{");
    expect(text).not.toContain("ukemi_operations{");
  }
  expect(read).toHaveBeenCalledTimes(1);
});

test("gives the last answer while the database is away, and none when that is old", async () => {
  let now = 0;
  const read = vi.fn<() => Promise<Backlog>>().mockResolvedValueOnce(BACKLOG);
  read.mockRejectedValue(new Error("away"));
  const backlog = createBacklog(read, () => now);
  expect(await backlog()).toEqual(BACKLOG);
  now += 10_000;
  expect(await backlog()).toEqual(BACKLOG);
  now += 60_000;
  expect(await backlog()).toBeUndefined();
  read.mockResolvedValue({ ...BACKLOG, queues: [{ ...QUEUE, ready: 9 }] });
  now += 10_000;
  expect(await backlog()).toMatchObject({ queues: [{ ready: 9 }] });
  expect(read).toHaveBeenCalledTimes(4);
});

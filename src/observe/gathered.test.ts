import { Counter, Histogram, Registry } from "prom-client";
import { expect, test } from "vitest";
import { gatherCount, gatherValues } from "./gathered.ts";

test("gives away what is held when it is asked to, and only once", async () => {
  const registers = [new Registry()];
  const counter = new Counter({ name: "seen", help: "-", registers });
  const count = gatherCount((by) => counter.inc(by));
  count.add(1);
  count.add(1);
  expect((await counter.get()).values[0]!.value).toBe(0);
  count.handOver();
  count.handOver();
  expect((await counter.get()).values[0]!.value).toBe(2);
});

test("gives away values by itself before many are held", async () => {
  const registers = [new Registry()];
  const histogram = new Histogram({ name: "sizes", help: "-", buckets: [10, 1000], registers });
  const values = gatherValues((value) => histogram.observe(value));
  for (let value = 1; value <= 2000; value += 1) values.add(value);
  const seen = async (name: string) =>
    (await histogram.get()).values.find(({ metricName }) => metricName === name)!.value;
  expect(await seen("sizes_count")).toBeGreaterThan(1000);
  values.handOver();
  expect(await seen("sizes_count")).toBe(2000);
  expect(await seen("sizes_sum")).toBe(2_001_000);
});

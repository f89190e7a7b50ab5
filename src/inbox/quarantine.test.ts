import { expect, test } from "vitest";
import type { Rejection } from "../storage/rejections.ts";
import { BODY_SAMPLE_BYTES, createQuarantine } from "./quarantine.ts";

const rejection = (requestId: string, bodySample = Buffer.alloc(0)) =>
  ({ requestId, bodySample }) as Rejection;

test("writes what it holds together, keeps no more than its rate, and counts the rest", async () => {
  const written: string[][] = [];
  let dropped = 0;
  const quarantine = createQuarantine({
    write: (rejections) => Promise.resolve(void written.push(rejections.map((each) => each.requestId))),
    perInterval: 2,
    intervalMs: 60_000,
    onDropped: (count) => (dropped += count),
  });
  for (const id of ["a", "b", "c", "d"]) quarantine.keep(rejection(id));
  await quarantine.stop();
  quarantine.keep(rejection("e"));
  await quarantine.stop();
  expect(written).toEqual([["a", "b"], ["e"]]);
  expect(dropped).toBe(2);
});

test("keeps only the beginning of a body, as a copy of its own", async () => {
  let kept: Rejection | undefined;
  const quarantine = createQuarantine({
    write: ([first]) => Promise.resolve(void (kept = first)),
    perInterval: 1,
    intervalMs: 60_000,
  });
  const body = Buffer.alloc(BODY_SAMPLE_BYTES * 2, "x");
  quarantine.keep(rejection("a", body));
  await quarantine.stop();
  expect(kept!.bodySample).toHaveLength(BODY_SAMPLE_BYTES);
  expect(kept!.bodySample.buffer).not.toBe(body.buffer);
});

test("goes on after a failed write", async () => {
  const faults: unknown[] = [];
  let calls = 0;
  const quarantine = createQuarantine({
    write: () => (++calls === 1 ? Promise.reject(new Error("away")) : Promise.resolve()),
    perInterval: 1,
    intervalMs: 60_000,
    onFault: (error) => faults.push(error),
  });
  quarantine.keep(rejection("a"));
  await quarantine.stop();
  quarantine.keep(rejection("b"));
  await quarantine.stop();
  expect([calls, faults.length]).toEqual([2, 1]);
});

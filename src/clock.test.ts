import { afterEach, expect, test, vi } from "vitest";
import { createDatabaseClock, inTime, sleep, steadyMs } from "./clock.ts";

afterEach(() => void vi.restoreAllMocks());

test("follows the database and does not see a jump of the process clock", () => {
  const clock = createDatabaseClock();
  const databaseMs = 1_700_000_000_000;
  clock.sample(databaseMs, steadyMs());
  for (const jump of [3_600_000, -3_600_000]) {
    vi.spyOn(Date, "now").mockReturnValue(databaseMs + jump);
    expect(Math.abs(clock.now() - databaseMs)).toBeLessThan(1000);
    expect(Math.abs(clock.skewMs()! - jump)).toBeLessThan(1000);
  }
});

test("uses the process clock until the database has been heard", () => {
  const clock = createDatabaseClock();
  expect(Math.abs(clock.now() - Date.now())).toBeLessThan(1000);
  expect(clock.skewMs()).toBeUndefined();
});

test("takes the middle of a round trip", () => {
  const clock = createDatabaseClock();
  vi.spyOn(performance, "now").mockReturnValue(1100);
  clock.sample(5000, 1000);
  expect(clock.now()).toBe(5050);
});

test("ends a sleep early when the signal fires", async () => {
  const controller = new AbortController();
  const slept = sleep(60_000, controller.signal);
  controller.abort();
  await slept;
  await sleep(60_000, controller.signal);
});

test("gives work its time, and asks what to do only when it is late", async () => {
  vi.useFakeTimers();
  const late = vi.fn(() => "late");
  expect(await inTime(Promise.resolve("done"), 10, late)).toBe("done");
  await expect(inTime(Promise.reject(new Error("failed")), 10, late)).rejects.toThrow("failed");
  await vi.advanceTimersByTimeAsync(20);
  expect(late).not.toHaveBeenCalled();
  const slow = inTime(new Promise<string>(() => {}), 10, late);
  await vi.advanceTimersByTimeAsync(20);
  expect(await slow).toBe("late");
  vi.useRealTimers();
});

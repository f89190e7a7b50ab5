// What follows from a call, row by row.
import { expect, test } from "vitest";
import { afterDoubt, decide, type Situation } from "./decide.ts";

const fault = { class: "X", message: "x" };
const given = (change: Partial<Situation> = {}): Situation => ({
  attempt: 0,
  maxAttempts: 3,
  uncertainties: 0,
  onUncertain: "hold",
  spentMs: 100,
  limitMs: 30_000,
  ageMs: 100,
  keyValidMs: 0,
  delayMs: (retry) => 2000 * 2 ** (retry - 1),
  ...change,
});

test.each([
  ["a first failure", {}, { state: "planned", next: "retry", delayMs: 2000, fault }],
  ["a second", { attempt: 1 }, { state: "planned", next: "retry", delayMs: 4000, fault }],
  ["the last", { attempt: 2 }, { state: "failed", death: "exhausted", fault }],
  ["one whose time is over", { spentMs: 28_500 }, { state: "failed", death: "exhausted", fault }],
  ["one after a doubt", { uncertainties: 1 }, { state: "uncertain", next: "retry", delayMs: 2000, fault }],
  ["the last after a doubt", { attempt: 2, uncertainties: 1 }, { state: "held", fault }],
  [
    "the last after a doubt, where the peer will forget the key",
    { attempt: 2, uncertainties: 1, keyValidMs: 9e9 },
    { state: "held", fault },
  ],
  [
    "the last after a doubt, where the peer never forgets it",
    { attempt: 2, uncertainties: 1, keyValidMs: Infinity },
    { state: "failed", death: "exhausted", fault },
  ],
])("again: %s", (_, change, decision) => {
  expect(decide({ is: "again", fault }, given(change))).toEqual(decision);
});

test("a pause burns no try, not even the last", () => {
  expect(decide({ is: "again", fault, pauseMs: 5000 }, given({ attempt: 2 }))).toEqual({
    state: "planned",
    next: "wait",
    delayMs: 5000,
    fault,
  });
});

test("a destination that refuses us burns no try, not even the last", () => {
  expect(decide({ is: "blocked", fault }, given({ attempt: 2 }))).toMatchObject({
    state: "planned",
    next: "wait",
  });
});

test.each([
  ["hold", {}, "held"],
  ["retry", { onUncertain: "retry" as const }, "uncertain"],
  ["retry, at the last try", { onUncertain: "retry" as const, attempt: 2 }, "held"],
  ["hold, where the peer knows the key", { keyValidMs: 9e9 }, "uncertain"],
  ["hold, where the peer has forgotten the key", { keyValidMs: 1000, ageMs: 1000 }, "held"],
])("uncertain, policy %s", (_, change, state) => {
  expect(decide({ is: "uncertain", fault }, given(change)).state).toBe(state);
  expect(afterDoubt(fault, given(change)).state).toBe(state);
});

test("a refusal after a doubt does not make the doubt go away", () => {
  expect(decide({ is: "failed", fault }, given())).toEqual({ state: "failed", death: "terminal", fault });
  expect(decide({ is: "failed", fault }, given({ uncertainties: 1 }))).toEqual({ state: "held", fault });
  // unless it is the word of a peer that knows the key
  expect(decide({ is: "failed", fault }, given({ uncertainties: 1, keyValidMs: 9e9 })).state).toBe("failed");
});

// The bench's arithmetic: a wrong median would be believed.
import { expect, test } from "vitest";
import { figureOf, inTurn, ratioOf, runContest, spreadOf } from "./contest.ts";

test("the median and the quartiles lie between the figures where they must", () => {
  expect(spreadOf([3])).toEqual({ low: 3, median: 3, high: 3 });
  expect(spreadOf([4, 1, 3, 2])).toEqual({ low: 1.75, median: 2.5, high: 3.25 });
  expect(spreadOf([5, 1, 2, 4, 3])).toEqual({ low: 2, median: 3, high: 4 });
  expect(() => spreadOf([])).toThrow("no figures");
});

test("everyone runs once in each round, and nobody is always first", async () => {
  const ran: string[] = [];
  const contestants = ["a", "b", "c"].map((name, index) => ({
    name,
    run: () => {
      ran.push(name);
      return Promise.resolve((index + 1) * ran.length);
    },
  }));
  const rounds = await runContest(contestants, { rounds: 4 });
  expect(ran.join("")).toBe("abccbabcaacb");
  expect([...rounds.values()].map((figures) => figures.length)).toEqual([4, 4, 4]);
  expect(figureOf(rounds, "a").median).toBeGreaterThan(0);
  expect(() => figureOf(rounds, "d")).toThrow("nobody named d");
});

test("a ratio is taken within a round: what slows a round down slows both", async () => {
  let round = 0;
  const slow = () => (Math.floor(round++ / 2) % 2 === 0 ? 1 : 0.25);
  const rounds = await runContest(
    [
      { name: "ours", run: () => Promise.resolve(200 * slow()) },
      { name: "theirs", run: () => Promise.resolve(100 * slow()) },
    ],
    { rounds: 8 },
  );
  expect(ratioOf(rounds, "ours", "theirs")).toEqual({ low: 2, median: 2, high: 2 });
});

test("the order turns and goes back", () => {
  const orders = (items: string) =>
    Array.from({ length: items.length * 2 }, (_, round) => inTurn(items.split(""), round).join(""));
  expect(orders("abc")).toEqual(["abc", "cba", "bca", "acb", "cab", "bac"]);
  expect(orders("ab")).toEqual(["ab", "ba", "ba", "ab"]);
});

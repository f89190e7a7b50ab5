import { expect, test } from "vitest";
import { LeaseLost, type Completion } from "../storage/settle.ts";
import { createCompletions } from "./completions.ts";

const completion = (id: string) => ({ job: { id }, attempt: {} }) as Completion;

/** Settles whatever it is given unless the test answers otherwise; notes what was asked for in one statement. */
function fakeStore(answer?: (ids: string[], call: number) => Promise<Iterable<string>> | undefined) {
  const batches: string[][] = [];
  const completions = createCompletions(async (given) => {
    const ids = given.map(({ job }) => job.id);
    batches.push(ids);
    const settled = new Set((await answer?.(ids, batches.length)) ?? ids);
    return new Set(ids.filter((id) => !settled.has(id)));
  });
  return { batches, add: (id: string) => completions.add(completion(id)) };
}

const statuses = async (promises: readonly Promise<void>[]) =>
  (await Promise.allSettled(promises)).map(({ status }) => status);

test("completions that come together share one statement", async () => {
  const store = fakeStore();
  await Promise.all(["a", "b", "c"].map(store.add));
  expect(store.batches).toEqual([["a", "b", "c"]]);
  await store.add("d");
  expect(store.batches).toEqual([["a", "b", "c"], ["d"]]);
});

test("completions that come during a statement share the next one", async () => {
  let release = () => {};
  const held = new Promise<void>((resolve) => (release = resolve));
  const store = fakeStore((ids, call) => (call === 1 ? held.then(() => ids) : undefined));
  const first = store.add("a");
  await new Promise((resolve) => setImmediate(resolve));
  expect(store.batches).toEqual([["a"]]);
  const others = ["b", "c"].map(store.add);
  release();
  await Promise.all([first, ...others]);
  expect(store.batches).toEqual([["a"], ["b", "c"]]);
});

test("more than a statement takes are settled by several, each once", async () => {
  const store = fakeStore();
  const ids = Array.from({ length: 1201 }, (_, index) => String(index));
  await Promise.all(ids.map(store.add));
  expect(store.batches.map((batch) => batch.length)).toEqual([500, 500, 201]);
  expect(store.batches.flat()).toEqual(ids);
});

test("one that lost its lease is rejected alone", async () => {
  const store = fakeStore((ids) => Promise.resolve(ids.filter((id) => id !== "lost")));
  const added = ["a", "lost", "b"].map(store.add);
  expect(await statuses(added)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  await expect(added[1]).rejects.toBeInstanceOf(LeaseLost);
  expect(store.batches).toHaveLength(1);
});

test("an error of the database rejects its own statement's completions, and the next ones go on", async () => {
  const fault = new Error("Connection terminated");
  let fail!: (error: Error) => void;
  const failing = new Promise<never>((_, reject) => (fail = reject));
  const store = fakeStore((_, call) => (call === 1 ? failing : undefined));
  const first = ["a", "b"].map(store.add);
  await new Promise((resolve) => setImmediate(resolve));
  const next = ["c", "d"].map(store.add);
  fail(fault);
  expect(await statuses(first)).toEqual(["rejected", "rejected"]);
  for (const each of first) await expect(each).rejects.toBe(fault);
  expect(await statuses(next)).toEqual(["fulfilled", "fulfilled"]);
  await store.add("e");
  expect(store.batches).toEqual([["a", "b"], ["c", "d"], ["e"]]);
});

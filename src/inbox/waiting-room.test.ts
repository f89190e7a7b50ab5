import { expect, onTestFinished, test, vi } from "vitest";
import type { NewEvent } from "../storage/events.ts";
import { createWaitingRoom } from "./waiting-room.ts";

const LIMITS = {
  deadlineMs: 1000,
  batchRowsMax: 3,
  batchBytesMax: 100,
  waitingRowsMax: 5,
};

const event = (eventId: string, bytes = 10) => ({ eventId, body: Buffer.alloc(bytes) }) as NewEvent;
const stored = { id: "id", duplicate: false };

test("gives batches in the order of arrival, bounded by rows and by bytes", async () => {
  const room = createWaitingRoom(LIMITS);
  const entered = [event("a", 60), event("b", 60), event("c"), event("d"), event("e")].map(room.enter);
  const taken: string[][] = [];
  while (taken.flat().length < 5) {
    const batch = await room.take();
    taken.push(batch.map((waiting) => waiting.event.eventId));
    for (const waiting of batch) waiting.resolve(stored);
  }
  expect(taken).toEqual([["a"], ["b", "c", "d"], ["e"]]);
  await Promise.all(entered);
});

test("takes one event however large it is", async () => {
  const room = createWaitingRoom(LIMITS);
  void room.enter(event("huge", 150)).catch(() => {});
  expect(await room.take()).toHaveLength(1);
});

test("turns away who comes when too many wait, and lets in again when they have gone", async () => {
  const room = createWaitingRoom(LIMITS);
  const waiting = ["a", "b", "c", "d", "e"].map((id) => room.enter(event(id)));
  await expect(room.enter(event("f"))).rejects.toMatchObject({ code: "overloaded" });
  for (const seat of await room.take()) seat.resolve(stored);
  await Promise.all(waiting.slice(0, 3));
  for (const patient of waiting.slice(3)) patient.catch(() => {});
  void room.enter(event("g")).catch(() => {});
  expect(room.size()).toBe(3);
});

test("answers by the deadline, also those in flight, and ignores what the lane says afterwards", async () => {
  const room = createWaitingRoom({ ...LIMITS, deadlineMs: 50 });
  const first = room.enter(event("in flight"));
  const [inFlight] = await room.take();
  const second = room.enter(event("waiting"));
  await Promise.all([
    expect(first).rejects.toMatchObject({ code: "store_unavailable" }),
    expect(second).rejects.toMatchObject({ code: "store_unavailable" }),
  ]);
  inFlight!.resolve(stored);
  room.putBack([inFlight!]);
  expect(room.size()).toBe(0);
  room.close();
  expect(await room.take()).toEqual([]);
});

test("puts back at the head of the queue", async () => {
  const room = createWaitingRoom(LIMITS);
  for (const id of ["a", "b", "c", "d"]) void room.enter(event(id)).catch(() => {});
  room.putBack(await room.take());
  expect((await room.take()).map((waiting) => waiting.event.eventId)).toEqual(["a", "b", "c"]);
});

test("refuses newcomers once closed, and lets every lane end when the last one is answered", async () => {
  const room = createWaitingRoom(LIMITS);
  const last = room.enter(event("a"));
  const [seat] = await room.take();
  const idleLanes = [room.take(), room.take()];
  room.close();
  await expect(room.enter(event("b"))).rejects.toMatchObject({ code: "stopping" });
  seat!.resolve(stored);
  expect(await last).toBe(stored);
  expect(await Promise.all(idleLanes)).toEqual([[], []]);
});

test("gives those that were put aside a turn of their own, between the batches of the others", async () => {
  const room = createWaitingRoom(LIMITS);
  const entered = ["held", "a", "b", "c", "d"].map((id) => room.enter(event(id)));
  const [held, ...others] = await room.take();
  room.putBack(others);
  room.putAside(held!);
  const first = await room.take();
  expect(first.map((waiting) => waiting.event.eventId)).toEqual(["a", "b", "c"]);
  for (const waiting of first) waiting.resolve(stored);
  const rest = [await room.take(), await room.take()];
  expect(rest.map((batch) => batch.map((waiting) => waiting.event.eventId))).toEqual([["d"], ["held"]]);
  for (const waiting of rest.flat()) waiting.resolve(stored);
  await Promise.all(entered);
});

const ROOMY = { ...LIMITS, batchRowsMax: 256, batchBytesMax: 10_000, waitingRowsMax: 500 };
const enterMany = (room: ReturnType<typeof createWaitingRoom>, count: number) => {
  for (let index = 0; index < count; index++) void room.enter(event(`${index}`)).catch(() => {});
};

test("lets those that arrive during a commit share the next one, though a lane is free", async () => {
  vi.useFakeTimers(); // time stands still: nobody gives up waiting for company
  onTestFinished(() => void vi.useRealTimers());
  const room = createWaitingRoom(ROOMY);
  enterMany(room, 5);
  const underWay = await room.take();
  const next = room.take();
  enterMany(room, 3);
  await vi.advanceTimersByTimeAsync(1); // a lane that were woken would take them now
  for (const waiting of underWay) waiting.resolve(stored);
  enterMany(room, 1);
  expect(await next).toHaveLength(4);
});

test.each([
  ["as many as are being committed, where those are few,", 3, 3],
  ["the last few for whom that holds", 15, 15],
  ["a full company, where they are more,", 16, 64],
  ["no more than a full company", 100, 64],
])("gives %s to a second lane at once", async (_, underWay, company) => {
  vi.useFakeTimers(); // time stands still: who waited for a timer would wait for ever
  onTestFinished(() => void vi.useRealTimers());
  const room = createWaitingRoom(ROOMY);
  enterMany(room, underWay);
  await room.take();
  let taken = 0;
  const next = room.take().then((batch) => (taken = batch.length));
  enterMany(room, company - 1);
  await vi.advanceTimersByTimeAsync(1);
  expect(taken).toBe(0);
  enterMany(room, 1);
  await next;
  expect(taken).toBe(company);
});

test("does not wait long for a commit that hangs", async () => {
  const room = createWaitingRoom(ROOMY);
  enterMany(room, 1);
  await room.take();
  enterMany(room, 2);
  expect(await room.take()).toHaveLength(2);
});

test("leaves nobody behind who had no place in the first of two batches", async () => {
  const room = createWaitingRoom(LIMITS);
  const lanes = [room.take(), room.take()];
  enterMany(room, 5);
  const sizes = (await Promise.all(lanes)).map((batch) => batch.length);
  expect(new Set(sizes)).toEqual(new Set([2, 3]));
});

test("where they come one at a time, the lane that was last at work has the next one, too", async () => {
  const room = createWaitingRoom(LIMITS);
  const worked: string[] = [];
  async function lane(name: string): Promise<void> {
    for (let batch = await room.take(); batch.length > 0; batch = await room.take()) {
      worked.push(name);
      for (const waiting of batch) waiting.resolve(stored);
    }
  }
  const lanes = [lane("a"), lane("b")];
  for (const id of ["1", "2", "3"]) {
    await room.enter(event(id));
    await new Promise(setImmediate); // both lanes sleep again
  }
  room.close();
  await Promise.all(lanes);
  expect(new Set(worked).size).toBe(1);
});

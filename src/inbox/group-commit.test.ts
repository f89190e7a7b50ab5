import { expect, test } from "vitest";
import type { NewEvent } from "../storage/events.ts";
import { createGroupCommit, type GroupCommitOptions, type LaneConnection } from "./group-commit.ts";

const event = (eventId: string) => ({ id: `id of ${eventId}`, eventId, body: Buffer.alloc(1) }) as NewEvent;

/** A store whose commits the test ends by hand or lets fail. */
function fakeStore(answer: (ids: string[], call: number) => Promise<unknown> | undefined) {
  const batches: string[][] = [];
  let connections = 0;
  const connect = (): Promise<LaneConnection> => {
    connections += 1;
    return Promise.resolve({
      async store(events) {
        const ids = events.map((each) => each.eventId);
        batches.push(ids);
        await answer(ids, batches.length);
        return { databaseMs: 0, events: events.map(({ id }) => ({ id, duplicate: false })) };
      },
      onLost() {},
      destroy() {},
      end: () => Promise.resolve(),
    });
  };
  return { batches, connect, connections: () => connections };
}

function start(connect: GroupCommitOptions["connect"], changes: Partial<GroupCommitOptions> = {}) {
  return createGroupCommit({
    connect,
    lanes: 1,
    deadlineMs: 2000,
    batchRowsMax: 100,
    batchBytesMax: 1000,
    waitingRowsMax: 1000,
    ...changes,
  });
}

const sqlError = (code: string) => Object.assign(new Error(`failed with ${code}`), { code });

test("lets events that arrive during a commit share the next one", async () => {
  let release = () => {};
  const held = new Promise<void>((resolve) => (release = resolve));
  const store = fakeStore((_, call) => (call === 1 ? held : undefined));
  const inbox = start(store.connect);
  const first = inbox.store(event("a"));
  await new Promise((resolve) => setImmediate(resolve));
  const others = ["b", "c", "d"].map((id) => inbox.store(event(id)));
  release();
  await Promise.all([first, ...others]);
  expect(store.batches).toEqual([["a"], ["b", "c", "d"]]);
  await inbox.stop();
});

test("halves what the database refuses together until only the guilty one is refused", async () => {
  const store = fakeStore((ids) => (ids.includes("guilty") ? Promise.reject(sqlError("22021")) : undefined));
  const inbox = start(store.connect);
  const held = inbox.store(event("first"));
  const answers = Promise.allSettled(["a", "guilty", "b"].map((id) => inbox.store(event(id))));
  await held;
  expect((await answers).map((answer) => answer.status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(store.connections()).toBe(1);
  await inbox.stop();
});

test("opens a new connection and stores the same ids again when the commit's outcome is unknown", async () => {
  const store = fakeStore((_, call) =>
    call === 1 ? Promise.reject(new Error("Connection terminated")) : undefined,
  );
  const inbox = start(store.connect);
  expect(await inbox.store(event("a"))).toEqual({ id: "id of a", duplicate: false });
  expect(store.batches).toEqual([["a"], ["a"]]);
  expect(store.connections()).toBe(2);
  await inbox.stop();
});

test("tries again what waits for a lock", async () => {
  const store = fakeStore((_, call) => (call < 3 ? Promise.reject(sqlError("55P03")) : undefined));
  const inbox = start(store.connect);
  await inbox.store(event("a"));
  expect(store.batches).toHaveLength(3);
  await inbox.stop();
});

test("answers by the deadline when nobody can connect, and ends when it is stopped meanwhile", async () => {
  const inbox = start(() => Promise.reject(new Error("ECONNREFUSED")), { deadlineMs: 200 });
  await expect(inbox.store(event("a"))).rejects.toMatchObject({ code: "store_unavailable" });
  await inbox.stop();
});

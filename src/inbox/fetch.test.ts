import { expect, test, vi } from "vitest";
import type { ReadBody } from "./delivery.ts";
import { createFetchReceiver } from "./fetch.ts";

/** A receiver that reads the body with these limits and tells what it got. */
function reading({ bytesMax = 1000, room = Infinity } = {}) {
  const read: ReadBody[] = [];
  const receive = createFetchReceiver({
    source: "stripe",
    async receive(delivery) {
      let left = room;
      read.push(await delivery.readBody({ bytesMax, admit: (bytes) => (left -= bytes) >= 0 }));
      return { status: 204, headers: {}, body: "" };
    },
  });
  return { receive, read };
}

/** A request whose body comes in pieces and would go on for ever. */
function endless(cancel: () => void): Request {
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(Buffer.from("0123456789")),
    cancel,
  });
  return new Request("http://127.0.0.1/", { method: "POST", body, duplex: "half" });
}

test("reads the raw bytes, in however many pieces they come", async () => {
  const { receive, read } = reading();
  const pieces = [Buffer.from([0, 255]), Buffer.from("日本語")];
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of pieces) controller.enqueue(piece);
      controller.close();
    },
  });
  const request = new Request("http://127.0.0.1/", { method: "POST", body, duplex: "half" });
  const answer = await receive(request);
  expect(read).toEqual([Buffer.concat(pieces)]);
  expect(answer.headers.get("connection")).toBeNull();
  await receive(new Request("http://127.0.0.1/", { method: "POST" }));
  expect(read[1]).toEqual(Buffer.alloc(0));
});

test.each([
  ["is too large", { bytesMax: 25 }, "too large"],
  ["finds no room", { room: 25 }, "no room"],
])("lets go of a body that %s, and of its connection", async (_, limits, said) => {
  const { receive, read } = reading(limits);
  const cancelled = vi.fn();
  const answer = await receive(endless(cancelled));
  expect(read).toEqual([said]);
  expect(cancelled).toHaveBeenCalledOnce();
  expect(answer.headers.get("connection")).toBe("close");
});

test("says that somebody has read the body before", async () => {
  const { receive, read } = reading();
  const request = new Request("http://127.0.0.1/", { method: "POST", body: "{}" });
  await request.text();
  await receive(request);
  expect(read).toEqual(["read before"]);
});

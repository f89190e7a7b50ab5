// The receiver on plain node:http, with nothing around it.
import { connect } from "node:net";
import { expect, test } from "vitest";
import { sampleEvent } from "../../src/testing/sample-events.ts";
import { createTestUkemi, listen } from "./in-process.ts";
import { post, storedBodies } from "./receives.ts";
import { until } from "../support/until.ts";

const body = sampleEvent("payment_intent.succeeded", { id: "evt_1" });

test("takes the sender's address from the connection, or from a proxy that is trusted", async () => {
  for (const [trustedProxies, address] of [
    [[], "127.0.0.1"],
    [["127.0.0.1"], "203.0.113.7"],
  ] as const) {
    const { ukemi, pool } = await createTestUkemi({ trustedProxies });
    const url = await listen(ukemi.nodeReceiver("stripe"));
    await post(url, body, { secret: "whsec_wrong", headers: { "x-forwarded-for": "203.0.113.7" } });
    const kept = () => pool.query("select address from ukemi.rejections");
    await until(async () => (await kept()).rows.length > 0, "the rejection to be kept");
    expect((await kept()).rows).toEqual([{ address }]);
  }
});

test("answers 503 while the database is away, and 500 where the application's own function throws", async () => {
  const away = await createTestUkemi({
    database: "postgres://nobody@127.0.0.1:1/none",
    commitDeadlineMs: 500,
  });
  const refused = await post(await listen(away.ukemi.nodeReceiver("stripe")), body);
  expect(refused.status).toBe(503);
  expect(refused.headers.has("retry-after")).toBe(true);

  const { ukemi, lines, pool } = await createTestUkemi();
  const address = () => {
    throw new Error("no address today");
  };
  const failed = await post(await listen(ukemi.nodeReceiver("stripe", { address })), body);
  expect(failed.status).toBe(500);
  expect(await failed.json()).toMatchObject({ code: "internal" });
  expect(lines("error")).toContainEqual(expect.objectContaining({ error: "no address today" }));
  expect(await storedBodies(pool)).toEqual({});
});

test("lets go of a caller that leaves in the middle of its body, without calling it a fault", async () => {
  const { ukemi, lines } = await createTestUkemi();
  const receive = ukemi.nodeReceiver("stripe");
  let settled = false;
  const url = await listen((request, response) => receive(request, response).then(() => (settled = true)));
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  socket.write("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\nhalf", () => socket.destroy());
  await until(() => settled, "the receiver to let go");
  expect(lines("error")).toEqual([]);
});

test("says at once that a source does not exist", async () => {
  const { ukemi } = await createTestUkemi();
  expect(() => ukemi.nodeReceiver("strpe")).toThrow('There is no source named "strpe".');
});

// A body parser that came first: the answer is quick and the log says what to do, or the bytes are taken over whole.
import { getRequestListener } from "@hono/node-server";
import express from "express";
import { fastify } from "fastify";
import { Hono } from "hono";
import { expect, onTestFinished, test } from "vitest";
import { sampleEvent } from "../../src/testing/sample-events.ts";
import { createTestUkemi, listen } from "./in-process.ts";
import { post, storedBodies } from "./receives.ts";

const body = sampleEvent("payment_intent.succeeded", { id: "evt_1" });

test("refuses what express.json() has read, and the log says how to mount the receiver", async () => {
  const { ukemi, lines, pool } = await createTestUkemi();
  const app = express();
  app.use(express.json());
  app.all("/webhooks/stripe", ukemi.nodeReceiver("stripe"));
  const answer = await post(await listen(app), body);
  expect(answer.status).toBe(400);
  expect(await answer.json()).toMatchObject({ code: "invalid_webhook" });
  expect(lines("error")).toContainEqual(
    expect.objectContaining({ source: "stripe", diagnosis: expect.stringContaining("before body parsers") }),
  );
  expect(await storedBodies(pool)).toEqual({});
});

test("refuses what Fastify's own JSON parser has read, and the log says how to mount the receiver", async () => {
  const { ukemi, lines, pool } = await createTestUkemi();
  const receive = ukemi.nodeReceiver("stripe");
  const app = fastify();
  app.all("/webhooks/stripe", async (request, reply) => {
    reply.hijack();
    await receive(request.raw, reply.raw);
  });
  onTestFinished(() => app.close());
  const answer = await post(await app.listen({ host: "127.0.0.1", port: 0 }), body);
  expect(answer.status).toBe(400);
  expect(lines("error")).toContainEqual(
    expect.objectContaining({
      reason: "body_read_before",
      diagnosis: expect.stringContaining("before body parsers"),
    }),
  );
  expect(await storedBodies(pool)).toEqual({});
});

test("takes over the bytes that express.raw() has read, within the limit of its own", async () => {
  const { ukemi, pool } = await createTestUkemi();
  const app = express();
  app.use(express.raw({ type: "*/*", limit: "4mb" }));
  app.all("/webhooks/stripe", ukemi.nodeReceiver("stripe"));
  const url = await listen(app);
  expect((await post(url, body)).status).toBe(204);
  expect((await storedBodies(pool)).evt_1!.equals(Buffer.from(body))).toBe(true);
  expect((await post(url, Buffer.alloc(2 * 1024 * 1024, "a"))).status).toBe(413);
});

test("refuses a Request whose body was used, and tells the operator why", async () => {
  const { ukemi, pool, lines } = await createTestUkemi();
  const receive = ukemi.receiver("stripe");
  const app = new Hono();
  app.use(async (context, next) => {
    await context.req.json();
    await next();
  });
  app.all("/webhooks/stripe", (context) => receive(context.req.raw));
  const answer = await post(await listen(getRequestListener(app.fetch)), body);
  expect(answer.status).toBe(400);
  expect(lines("error")).toContainEqual(expect.objectContaining({ reason: "body_read_before" }));
  expect(await storedBodies(pool)).toEqual({});
});

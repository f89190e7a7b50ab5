// What the receiver promises, whichever framework stands around it: one list of tests for all of them.
import { expect, test } from "vitest";
import type { Pool } from "../../src/storage/postgres.ts";
import { sampleEvent } from "../../src/testing/sample-events.ts";
import { signStripe } from "../../src/testing/sign.ts";
import { createDatabase } from "../support/database.ts";
import { SECRET } from "../support/server.ts";
import type { RunningExample } from "./example.ts";
import { until } from "../support/until.ts";

export interface Framework {
  /** Starts the example on the database; it ends with the test. */
  start(database: string): Promise<RunningExample>;
  /** The sender's address, as the example finds it when a proxy on this machine wrote 203.0.113.7. */
  readonly address: string;
  /** False where the framework itself answers other methods. */
  readonly answersEveryMethod: boolean;
}

/** Posts a body with the signature of the given secret. */
export function post(
  url: string,
  body: string | Buffer,
  options: { secret?: string; headers?: Record<string, string> } = {},
): Promise<Response> {
  return fetch(`${url}/webhooks/stripe`, {
    method: "POST",
    headers: {
      "content-type": "application/json; charset=utf-8",
      ...signStripe(body, options.secret ?? SECRET),
      ...options.headers,
    },
    body: new Uint8Array(Buffer.from(body)),
    signal: AbortSignal.timeout(15_000),
  });
}

/** The bodies in the store by the sender's id. */
export async function storedBodies(pool: Pool): Promise<Record<string, Buffer>> {
  const { rows } = await pool.query<{ event_id: string; body: Buffer }>(`
    select e.event_id, b.body
    from ukemi.events e
    join ukemi.event_bodies b on b.event = e.id and b.received_at = e.received_at`);
  return Object.fromEntries(rows.map((row) => [row.event_id, row.body]));
}

/** Declares the tests. */
export function testReceiver(framework: Framework): void {
  test("stores a signed event byte for byte, and says so when it comes again", async () => {
    const { url, pool } = await createDatabase();
    const app = await framework.start(url);
    const bodies = {
      evt_plain: sampleEvent("payment_intent.succeeded", { id: "evt_plain" }),
      evt_japanese: sampleEvent("payment_intent.succeeded", {
        id: "evt_japanese",
        metadata: { 備考: "領収書の宛名は「髙橋 𠮷野」です 🧾".repeat(2000) }, // larger than one chunk of a socket
      }),
    };
    for (const [id, body] of Object.entries(bodies)) {
      const first = await post(app.url, body, { headers: { "x-request-id": `first-${id}` } });
      expect({ status: first.status, text: await first.text() }).toEqual({ status: 204, text: "" });
      expect(Object.fromEntries(first.headers)).toMatchObject({
        "x-request-id": `first-${id}`,
        "x-event-id": id,
        "x-message-id": expect.stringMatching(/^[0-9a-f-]{36}$/),
      });
      expect(first.headers.has("x-duplicate")).toBe(false);

      const again = await post(app.url, body);
      expect(again.status).toBe(204);
      expect(again.headers.get("x-duplicate")).toBe("true");
      expect(again.headers.get("x-message-id")).toBe(first.headers.get("x-message-id"));
    }
    const stored = await storedBodies(pool);
    expect(Object.keys(stored).toSorted()).toEqual(Object.keys(bodies).toSorted());
    for (const [id, body] of Object.entries(bodies)) {
      expect(stored[id]!.equals(Buffer.from(body)), id).toBe(true);
    }
  });

  test("refuses a forged event without saying why, and keeps it aside with the sender's address", async () => {
    const { url, pool } = await createDatabase();
    const app = await framework.start(url);
    const body = sampleEvent("payment_intent.succeeded", { id: "evt_forged" });
    const answer = await post(app.url, body, {
      secret: "whsec_of_somebody_else",
      headers: { "x-forwarded-for": "203.0.113.7" },
    });
    expect(answer.status).toBe(400);
    expect(answer.headers.get("content-type")).toBe("application/problem+json");
    const problem = (await answer.json()) as Record<string, unknown>;
    expect(problem).toMatchObject({
      status: 400,
      code: "invalid_webhook",
      request_id: answer.headers.get("x-request-id"),
    });
    expect(JSON.stringify(problem)).not.toMatch(/wrong_secret|no secret|timestamp/i);

    const kept = () => pool.query("select reason, address, body_bytes from ukemi.rejections");
    await until(async () => (await kept()).rows.length > 0, "the rejection to be kept");
    expect((await kept()).rows).toEqual([
      { reason: "wrong_secret", address: framework.address, body_bytes: Buffer.byteLength(body) },
    ]);
    expect(await storedBodies(pool)).toEqual({});
  });

  test("refuses a body over the limit, said or not, and every method but POST", async () => {
    const { url, pool } = await createDatabase();
    const app = await framework.start(url);
    const large = Buffer.alloc(2 * 1024 * 1024, "a");
    expect((await post(app.url, large)).status).toBe(413);
    expect((await postInChunks(app.url, large)).status).toBe(413);

    const got = await fetch(`${app.url}/webhooks/stripe`);
    expect(got.status).toBe(405);
    if (framework.answersEveryMethod) {
      expect(got.headers.get("allow")).toBe("POST");
      expect(await got.json()).toMatchObject({ code: "method_not_allowed" });
    }
    const body = sampleEvent("payment_intent.succeeded", { id: "evt_next" });
    const next = await post(app.url, body);
    expect(next.status).toBe(204);
    expect(Object.keys(await storedBodies(pool))).toEqual(["evt_next"]);
  });
}

/** Without a Content-Length: the limit shows only while reading. */
function postInChunks(url: string, body: Buffer): Promise<Response> {
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      for (let at = 0; at < body.length; at += 65_536) controller.enqueue(body.subarray(at, at + 65_536));
      controller.close();
    },
  });
  return fetch(`${url}/webhooks/stripe`, {
    method: "POST",
    headers: { "content-type": "application/json", ...signStripe(body, SECRET) },
    body: stream,
    duplex: "half",
    signal: AbortSignal.timeout(15_000),
  });
}

// Sends signed events the way Stripe does, and keeps the log that judges the server.
import { sampleEvent } from "../../src/testing/sample-events.ts";
import { signStripe } from "../../src/testing/sign.ts";
import { SECRET } from "./server.ts";

/** What the client was told. */
export interface Told {
  readonly eventId: string;
  /** 0 where there was no answer: the connection was refused or cut. */
  readonly status: number;
  readonly duplicate: boolean;
  readonly messageId: string | null;
}

/** Posts one correctly signed event. */
export async function deliver(
  url: string,
  eventId: string,
  options: { type?: string; secret?: string; timeoutMs?: number } = {},
): Promise<Told> {
  const body = sampleEvent(options.type ?? "payment_intent.succeeded", { id: eventId });
  try {
    const response = await fetch(`${url}/webhooks/stripe`, {
      method: "POST",
      headers: { "content-type": "application/json", ...signStripe(body, options.secret ?? SECRET) },
      body,
      signal: AbortSignal.timeout(options.timeoutMs ?? 10_000),
    });
    await response.arrayBuffer();
    return {
      eventId,
      status: response.status,
      duplicate: response.headers.get("x-duplicate") === "true",
      messageId: response.headers.get("x-message-id"),
    };
  } catch {
    return { eventId, status: 0, duplicate: false, messageId: null };
  }
}

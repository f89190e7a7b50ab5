// Sends signed Stripe events into a Ukemi of the test's own process, without a server.
import { sampleEvent, type SampleEventOptions } from "../../src/testing/sample-events.ts";
import { signStripe } from "../../src/testing/sign.ts";
import { SECRET } from "./server.ts";
import type { TestUkemi } from "./work.ts";

/** What the sender was told. */
export interface Posted {
  readonly status: number;
  readonly duplicate: boolean;
}

/** Posts one event; a wrong secret is refused and lands in the quarantine. */
export async function post(
  { ukemi }: Pick<TestUkemi, "ukemi">,
  options: SampleEventOptions & {
    readonly type?: string;
    readonly headers?: Readonly<Record<string, string>>;
    readonly secret?: string;
    /** How far the database's clock is moved; a process learns of it some time later, and signs of either are fine. */
    readonly shiftSeconds?: number;
  },
): Promise<Posted> {
  const now = Math.floor(Date.now() / 1000);
  const first = await postAt(now + (options.shiftSeconds ?? 0));
  return first.status === 400 && options.shiftSeconds !== undefined ? postAt(now) : first;

  async function postAt(timestamp: number): Promise<Posted> {
    const body = sampleEvent(options.type ?? "payment_intent.succeeded", { livemode: true, ...options });
    const response = await ukemi.receiver("stripe")(
      new Request("http://localhost/webhooks/stripe", {
        method: "POST",
        headers: { ...options.headers, ...signStripe(body, options.secret ?? SECRET, { timestamp }) },
        body,
      }),
    );
    return { status: response.status, duplicate: response.headers.has("x-duplicate") };
  }
}

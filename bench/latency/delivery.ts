// A signed delivery of the latency contest.
import { createHmac } from "node:crypto";
import { eventOf } from "../drain/job.ts";

/** The secret that deliveries are signed with. */
export const SECRET = "whsec_bench_0123456789abcdef0123456789abcdef";

/** What is sent. */
export interface Delivery {
  readonly headers: { readonly "content-type": string; readonly "stripe-signature": string };
  readonly body: string;
}

export function deliveryOf(number: number): Delivery {
  const body = JSON.stringify(eventOf(number));
  const seconds = Math.floor(Date.now() / 1000);
  const signature = createHmac("sha256", SECRET).update(`${seconds}.${body}`).digest("hex");
  const headers = { "content-type": "application/json", "stripe-signature": `t=${seconds},v1=${signature}` };
  return { headers, body };
}

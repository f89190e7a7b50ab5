import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { framesOf } from "./stack.ts";

const OURS = fileURLToPath(new URL("../work/execute.ts", import.meta.url));

test("keeps the application's frames, and leaves out those of Ukemi, pg and Node", () => {
  const stack = `TypeError: no such customer
    at charge (/app/src/charge.ts:3:9)
    at /app/node_modules/pg-pool/index.js:45:11
    at process.processTicksAndRejections (node:internal/process/task_queues:105:5)
    at async Client.query (/app/node_modules/pg/lib/client.js:1:1)
    at async Stripe.request (/app/node_modules/stripe/index.js:1:1)
    at async run (file:///app/node_modules/ukemi/dist/work/execute.js:20:3)
    at async run (file://${OURS}:20:3)`;
  expect(framesOf(stack)).toEqual([
    "at charge (/app/src/charge.ts:3:9)",
    "at async Stripe.request (/app/node_modules/stripe/index.js:1:1)",
  ]);
});

test("keeps every frame where there are no others", () => {
  const frame = "at process.processTicksAndRejections (node:internal/process/task_queues:105:5)";
  expect(framesOf(`Error: x\n    ${frame}`)).toEqual([frame]);
  expect(framesOf("")).toEqual([]);
});

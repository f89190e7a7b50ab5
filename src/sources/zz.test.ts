import { readFileSync } from "node:fs";
import { test } from "vitest";
import { stripe } from "./stripe.ts";
import { signStripe } from "../testing/sign.ts";
test("fx", () => {
  const s = stripe({ secrets: ["whsec_x"] });
  const body = readFileSync(`/work/shared/stripe-fixtures/events/invoice.paid.json`).subarray(0, -1);
  const r = { headers: signStripe(body, "whsec_x"), body };
  for (let k = 0; k < 3; k++) {
  let t = performance.now(); for (let i = 0; i < 20000; i++) s.verify(r, Date.now()); console.log("verify/s", 20000e3 / (performance.now() - t));
  t = performance.now(); for (let i = 0; i < 20000; i++) s.identify(r); console.log("identify/s", 20000e3 / (performance.now() - t));
  t = performance.now(); for (let i = 0; i < 20000; i++) JSON.parse(body.toString()); console.log("parse/s", 20000e3 / (performance.now() - t));
  const bad = { headers: signStripe(body, "whsec_y"), body };
  t = performance.now(); for (let i = 0; i < 5000; i++) s.verify(bad, Date.now()); console.log("refuse/s", 5000e3 / (performance.now() - t));
  for (const n of [1, 31, 400]) {
  const wide = Buffer.from("[".repeat(n) + "[" + (n === 1 ? '"xxxxxxxxx",'.repeat(5000) : "1,".repeat(n>99?100:3000)) + "1]" + "]".repeat(n));
  const worst = { headers: signStripe(wide, "whsec_y"), body: wide };
  t = performance.now(); for (let i = 0; i < 50; i++) s.verify(worst, Date.now()); console.log("worst refuse ms", n, wide.length, (performance.now() - t) / 50);
  }}
  const arr = Buffer.from(`{"id":"e","object":"event","type":"a","livemode":true,"data":{"object":[${"1,".repeat(3e6)}1]}}`);
  let t = performance.now(); s.identify({ headers: {}, body: arr }); console.log("3M list ms", performance.now() - t);
  t = performance.now(); JSON.parse(arr.toString()); console.log("its parse ms", performance.now() - t);
}, 60000);

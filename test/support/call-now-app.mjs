// A process that makes one call whose answer it waits for: tests kill it in the middle.
import { createUkemi } from "../../dist/index.js";

const { DATABASE_URL, PEER_URL } = process.env;

const ukemi = createUkemi({ database: DATABASE_URL, sources: {} });
await ukemi.effects.callNow("checkout:1", async ({ key, signal }) => {
  const response = await fetch(PEER_URL, { method: "POST", headers: { "idempotency-key": key }, signal });
  return response.json();
});
await ukemi.stop();

// A process that dies while somebody waits for its call: whoever asks next gets the one result there is.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { createDatabase } from "../support/database.ts";
import { startPeer } from "../support/http-peer.ts";
import { cleanEnv } from "../support/server.ts";
import { makeUkemi } from "../support/work.ts";

const APP = fileURLToPath(new URL("../support/call-now-app.mjs", import.meta.url));

test.each([
  ["effect.begun", 0],
  ["effect.called", 1],
])(
  "a crash at %s: the next request calls with the same key, and the peer makes one thing",
  async (point, heard) => {
    const sessions = new Map<string, string>();
    const peer = await startPeer((response, request) => {
      const key = String(request.headers["idempotency-key"]);
      if (!sessions.has(key)) sessions.set(key, `cs_${sessions.size + 1}`);
      response.end(JSON.stringify({ id: sessions.get(key) }));
    });
    onTestFinished(() => peer.stop());
    const { url, pool } = await createDatabase();
    const child = spawn(process.execPath, [APP], {
      env: { ...cleanEnv(), DATABASE_URL: url, PEER_URL: peer.url, UKEMI_CRASH_AT: point },
      stdio: "ignore",
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    expect(await once(child, "close")).toEqual([null, "SIGKILL"]);
    expect(peer.seen).toHaveLength(heard);

    const { callNow } = makeUkemi(url).ukemi.effects;
    const call = async ({ key }: { readonly key: string }) =>
      (await fetch(peer.url, { method: "POST", headers: { "idempotency-key": key } })).json();
    // while its lease lasts nobody knows that it is gone
    await expect(callNow("checkout:1", call, { timeoutMs: 1 })).rejects.toMatchObject({
      code: "effect_in_progress",
    });
    await pool.query("update ukemi.clock set shift = '1 minute'");
    const results = await Promise.all([callNow("checkout:1", call), callNow("checkout:1", call)]);
    expect(results).toEqual([{ id: "cs_1" }, { id: "cs_1" }]);
    expect(peer.seen).toHaveLength(heard + 1);
    expect(new Set(peer.seen.map(({ key }) => key)).size).toBe(1);
    const { rows } = await pool.query("select result, repeats from ukemi.effect_attempts order by number");
    expect(rows).toEqual([
      { result: "uncertain", repeats: false },
      { result: "done", repeats: true },
    ]);
  },
);

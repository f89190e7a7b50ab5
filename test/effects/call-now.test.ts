// Calls whose answer somebody waits for: one key, one call in effect, one result for everybody who asks.
import { expect, test } from "vitest";
import { terminal } from "../../src/work/outcome.ts";
import { createDatabase } from "../support/database.ts";
import { held } from "../support/held.ts";
import { proxyDatabase } from "../support/proxied.ts";
import { makeUkemi } from "../support/work.ts";

async function startWorld() {
  const { url, pool } = await createDatabase();
  const { ukemi } = makeUkemi(url);
  const { callNow } = ukemi.effects;
  return { pool, callNow };
}

test("a second request with the same key gets the stored result, and makes no call", async () => {
  const { callNow, pool } = await startWorld();
  const keys: string[] = [];
  const call = ({ key }: { key: string }) => {
    keys.push(key);
    return Promise.resolve({ url: `https://pay.example/${keys.length}` });
  };
  const first = await callNow("checkout:1", call);
  const second = await callNow("checkout:1", call);
  expect([first, second]).toEqual([{ url: "https://pay.example/1" }, { url: "https://pay.example/1" }]);
  expect(keys).toHaveLength(1);
  expect((await pool.query("select state, attempt from ukemi.effects")).rows).toEqual([
    { state: "done", attempt: 1 },
  ]);
});

test("many at once make one call, and all get its result", async () => {
  const { callNow } = await startWorld();
  let calls = 0;
  const results = await Promise.all(
    Array.from({ length: 10 }, () =>
      callNow("k", async () => {
        calls += 1;
        await new Promise((resolve) => setTimeout(resolve, 100));
        return calls;
      }),
    ),
  );
  expect(calls).toBe(1);
  expect(results).toEqual(results.map(() => 1));
});

test("after a failure the next request calls again, with the same key", async () => {
  const { callNow, pool } = await startWorld();
  const keys: string[] = [];
  const failing = callNow("k", ({ key }) => {
    keys.push(key);
    return Promise.reject(new Error("connection lost for jane@example.com"));
  });
  await expect(failing).rejects.toThrow("connection lost");
  expect((await pool.query("select state, reason from ukemi.effects")).rows).toEqual([
    { state: "uncertain", reason: "connection lost for [address]" },
  ]);
  const result = await callNow("k", ({ key }) => {
    keys.push(key);
    return Promise.resolve("ok");
  });
  expect(result).toBe("ok");
  expect(new Set(keys).size).toBe(1);
  expect(keys).toHaveLength(2);
});

test("one that failed for good is told so, and not made again", async () => {
  const { callNow } = await startWorld();
  let calls = 0;
  const call = () => {
    calls += 1;
    return Promise.reject(terminal("no such price"));
  };
  await expect(callNow("k", call)).rejects.toThrow("no such price");
  await expect(callNow("k", call)).rejects.toMatchObject({ code: "effect_failed" });
  expect(calls).toBe(1);
});

test("a caller that died is found when its time is over: called again with the same key, while the peer knows it", async () => {
  const { callNow, pool } = await startWorld();
  // the process is not gone, but nothing more is heard of it
  void callNow("k", () => new Promise<never>(() => {}), { timeoutMs: 30_000 }).catch(() => {});
  await expect
    .poll(async () => (await pool.query("select state from ukemi.effects")).rows)
    .toEqual([{ state: "sending" }]);
  await expect(callNow("k", () => Promise.resolve(1), { timeoutMs: 1 })).rejects.toMatchObject({
    code: "effect_in_progress",
  });
  await pool.query("update ukemi.clock set shift = '1 minute'");
  expect(await callNow("k", () => Promise.resolve(1))).toBe(1);
  const { rows } = await pool.query(
    "select number, result, repeats from ukemi.effect_attempts order by number",
  );
  expect(rows).toEqual([
    { number: 1, result: "uncertain", repeats: false },
    { number: 2, result: "done", repeats: true },
  ]);
});

test("when the peer does not know the key any more, a person must decide", async () => {
  const { callNow, pool } = await startWorld();
  await expect(callNow("k", () => Promise.reject(new Error("lost")))).rejects.toThrow("lost");
  await pool.query("update ukemi.clock set shift = '2 days'");
  await expect(callNow("k", () => Promise.resolve(1))).rejects.toMatchObject({ code: "effect_uncertain" });
  expect((await pool.query("select state from ukemi.effects")).rows).toEqual([{ state: "held" }]);
});

test("one tenant's key is not another's", async () => {
  const { callNow } = await startWorld();
  const results = [
    await callNow("k", () => Promise.resolve("a"), { tenant: "a" }),
    await callNow("k", () => Promise.resolve("b"), { tenant: "b" }),
  ];
  expect(results).toEqual(["a", "b"]);
});

test("a call that does not listen is given up when its time is over; what it says later is kept", async () => {
  const { callNow, pool } = await startWorld();
  const answer = held<string>();
  let told: AbortSignal | undefined;
  const call = callNow(
    "k",
    ({ signal }) => {
      told = signal;
      return answer.promise;
    },
    { timeoutMs: 50 },
  );
  await expect(call).rejects.toMatchObject({ name: "TimeoutError" });
  expect(told!.aborted).toBe(true);
  const state = async () => (await pool.query("select state from ukemi.effects")).rows;
  expect(await state()).toEqual([{ state: "uncertain" }]);
  answer.resolve("late");
  await expect.poll(state).toEqual([{ state: "done" }]);
  expect(await callNow("k", () => Promise.reject(new Error("not called")))).toBe("late");
});

test("what it says later counts for nothing where another call was made since", async () => {
  const { callNow, pool } = await startWorld();
  const answer = held<string>();
  await expect(callNow("k", () => answer.promise, { timeoutMs: 50 })).rejects.toThrow("given up");
  expect(await callNow("k", () => Promise.resolve("second"))).toBe("second");
  answer.resolve("late");
  await answer.promise;
  expect(await callNow("k", () => Promise.reject(new Error("not called")))).toBe("second");
  expect((await pool.query("select attempt from ukemi.effects")).rows).toEqual([{ attempt: 2 }]);
});

test("a result that was not stored, because the database was away, is asked for again with the same key", async () => {
  const { url, pool } = await createDatabase();
  const through = await proxyDatabase(url);
  const { callNow } = makeUkemi(through.url).ukemi.effects;
  const keys: string[] = [];
  const lost = callNow("k", async ({ key }) => {
    keys.push(key);
    await through.proxy.set("refuse");
    return "first";
  });
  await expect(lost).rejects.toThrow();
  await through.proxy.set("pass");
  await pool.query("update ukemi.clock set shift = '1 minute'");
  const again = await callNow("k", ({ key }) => {
    keys.push(key);
    return Promise.resolve("first");
  });
  expect(again).toBe("first");
  expect(keys).toEqual([keys[0], keys[0]]);
});

test.each([
  ["a tenant that is none", { tenant: "" }],
  ["no time", { timeoutMs: 0 }],
  ["a validity that is none", { keyValidMs: Number.NaN }],
])("%s is refused before anything is written", async (_, options) => {
  const { callNow, pool } = await startWorld();
  await expect(callNow("k", () => Promise.resolve(1), options)).rejects.toMatchObject({
    code: "invalid_option",
  });
  expect((await pool.query("select from ukemi.effects")).rowCount).toBe(0);
});

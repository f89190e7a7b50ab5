// What several processes share, and what one does that finds itself too late or without its database.
import { expect, onTestFinished, test } from "vitest";
import type { MailTransport } from "../../src/effects/email/transport.ts";
import type { Pool } from "../../src/storage/postgres.ts";
import { createDatabase } from "../support/database.ts";
import { startPeer, type PeerAnswer } from "../support/http-peer.ts";
import { RECEIPT, writeTemplates } from "../support/mail-world.ts";
import { proxyDatabase } from "../support/proxied.ts";
import { until } from "../support/until.ts";
import { makeUkemi, untilDrained } from "../support/work.ts";

const ok: PeerAnswer = (response) => void response.end();

async function startWorld(answer: PeerAnswer = ok) {
  const peer = await startPeer(answer);
  onTestFinished(() => peer.stop());
  return { ...(await createDatabase()), peer };
}

const readEffects = async (pool: Pool) =>
  (await pool.query<{ state: string; attempt: number }>("select state, attempt from ukemi.effects")).rows;

test("two workers with pools of their own keep to one rate and one concurrency, by the peer's own account", async () => {
  const [perSecond, concurrency, calls] = [20, 3, 50];
  const starts: number[] = [];
  let [under, most] = [0, 0];
  const { url, pool, peer } = await startWorld((response) => {
    starts.push(performance.now());
    most = Math.max(most, (under += 1));
    // long enough for others to come
    setTimeout(() => {
      under -= 1;
      response.end();
    }, 60);
  });
  const http = { allow: [peer.url], destinations: { [peer.url]: { perSecond, concurrency } } };
  const workers = [makeUkemi(url, { http }), makeUkemi(url, { http })];
  for (let n = 0; n < calls; n += 1)
    await workers[0]!.ukemi.effects.http(null, { url: peer.url, dedupe: `${n}`, idempotent: true });
  await Promise.all(workers.map(({ ukemi }) => ukemi.work()));
  await untilDrained(pool);
  const busiest = Math.max(
    ...starts.map((from) => starts.filter((at) => at >= from && at < from + 1000).length),
  );
  expect(peer.seen).toHaveLength(calls);
  expect(busiest).toBeLessThanOrEqual(perSecond);
  expect(most).toBeLessThanOrEqual(concurrency);
  const { rows } = await pool.query("select distinct worker from ukemi.effect_attempts");
  expect(rows.length).toBe(2);
});

test("a process that was stopped until its lease was over makes no call", async () => {
  const { url, pool, peer } = await startWorld();
  const leaseMs = 1000;
  const { ukemi } = makeUkemi(url, {
    leaseMs,
    http: { allow: [peer.url], destinations: { [peer.url]: { gapMs: 700 } } },
  });
  for (const dedupe of ["1", "2"])
    await ukemi.effects.http(null, { url: peer.url, dedupe, body: "x", onUncertain: "hold" });
  await ukemi.work();
  await peer.saw(1);
  const isBegun = async () =>
    (await pool.query("select from ukemi.effects where state = 'sending'")).rowCount === 1 &&
    peer.seen.length === 1;
  await until(isBegun, "the second to wait for its turn");
  // as SIGSTOP does it: nothing of this process runs, not even a timer, and its turn and its lease go by
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, leaseMs * 2);
  await untilDrained(pool);
  const effects = await readEffects(pool);
  expect(peer.seen).toHaveLength(2);
  expect(effects.map(({ state }) => state)).toEqual(["done", "done"]);
  const { rows } = await pool.query(
    "select result, error_class from ukemi.effect_attempts where result <> 'done'",
  );
  expect(rows).toEqual([{ result: "again", error_class: "Stopped" }]);
});

test("where the database is away between call and settlement, the answer is kept until it is back", async () => {
  const { url, pool } = await createDatabase();
  const { url: through, proxy } = await proxyDatabase(url);
  let sent = 0;
  const transport: MailTransport = {
    name: "one",
    async send() {
      sent += 1;
      await proxy.set("refuse");
      return { is: "done", receipt: { response: "250 OK" } };
    },
    close: () => Promise.resolve(),
  };
  const mailTemplates = await writeTemplates();
  const { ukemi } = makeUkemi(through, { email: { transport }, mailFrom: "shop@example.com", mailTemplates });
  await ukemi.work();
  const mail = { to: "jane@example.net", data: RECEIPT, dedupe: "1", onUncertain: "hold" } as const;
  await ukemi.effects.email(null, "receipt", mail);
  await until(() => sent === 1 && proxy.connections() === 0, "every connection to be cut");
  expect(await readEffects(pool)).toEqual([{ state: "sending", attempt: 1 }]);
  await proxy.set("pass");
  // whoever looks first may find that its process is gone: what that one knows has the last word
  await until(async () => (await readEffects(pool))[0]!.state === "done", "the answer to be kept");
  await untilDrained(pool);
  expect(await readEffects(pool)).toEqual([{ state: "done", attempt: 1 }]);
  expect(sent).toBe(1);
});

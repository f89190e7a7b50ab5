// Where effects could be lost, repeated or stuck: found by trying to break the ledger, kept so that it stays mended.
import { expect, onTestFinished, test } from "vitest";
import type { MailTransport } from "../../src/effects/email/transport.ts";
import type { Pool } from "../../src/storage/postgres.ts";
import { createDatabase } from "../support/database.ts";
import { startPeer, type PeerAnswer } from "../support/http-peer.ts";
import { RECEIPT, startMailWorld } from "../support/mail-world.ts";
import { until } from "../support/until.ts";
import { makeUkemi, untilDrained } from "../support/work.ts";
import type { HttpOptions } from "../../src/effects/http/performer.ts";

const MAIL = { to: "jane@example.net", data: RECEIPT, dedupe: "1" };

async function startWorld(answer: PeerAnswer, http: HttpOptions = {}) {
  const peer = await startPeer(answer);
  onTestFinished(() => peer.stop());
  const database = await createDatabase();
  const made = makeUkemi(database.url, { http: { allow: [peer.url], tries: 3, ...http } });
  return { ...database, ...made, peer };
}

const statesIn = async (pool: Pool) => {
  const { rows } = await pool.query<{ state: string }>(
    "select state from ukemi.effects order by planned_at, id",
  );
  return rows.map(({ state }) => state);
};

test("half of a character, which the database would not take, is refused where it is intended", async () => {
  const { ukemi, pool } = await startMailWorld();
  await expect(
    ukemi.effects.email(null, "receipt", { ...MAIL, details: { office: "\ud83d" } }),
  ).rejects.toThrow("data and details must be JSON");
  expect(await statesIn(pool)).toEqual([]);
});

test("a mail that was taken is done, whatever its transport gives for it", async () => {
  let sent = 0;
  const transport: MailTransport = {
    name: "odd",
    send: () => {
      sent += 1;
      return Promise.resolve({ is: "done", receipt: { big: 1n, cut: "\ud83d" } });
    },
    close: () => Promise.resolve(),
  };
  const { ukemi, pool } = await startMailWorld({}, { email: { transport } });
  await ukemi.work();
  await ukemi.effects.email(null, "receipt", MAIL);
  await untilDrained(pool);
  expect(await statesIn(pool)).toEqual(["done"]);
  expect(sent).toBe(1);
});

test("one that may have been heard is not repeated when the peer has forgotten its key", async () => {
  const { ukemi, pool, peer } = await startWorld((response, request, call) =>
    call === 1 ? request.socket.destroy() : response.end(),
  );
  await ukemi.work();
  await ukemi.effects.http(null, { url: peer.url, dedupe: "k", idempotent: true });
  await until(async () => (await statesIn(pool))[0] === "uncertain", "the doubt");
  await pool.query("update ukemi.clock set shift = '30 hours'");
  await untilDrained(pool);
  expect(await statesIn(pool)).toEqual(["held"]);
  expect(peer.seen).toHaveLength(1);
  const { rows } = await pool.query<{ id: string }>("select id from ukemi.effects");
  await ukemi.operate.effects.resolve(rows[0]!.id, "again", { actor: "test", reason: "asked them" });
  await untilDrained(pool);
  expect(await statesIn(pool)).toEqual(["done"]);
});

test("one whose answer was lost and whose other tries came to nothing is held, not a dead letter", async () => {
  const { ukemi, pool, peer } = await startWorld((response, request, call) =>
    call === 1 ? request.socket.destroy() : response.writeHead(503).end(),
  );
  await ukemi.work();
  await ukemi.effects.http(null, { url: peer.url, dedupe: "k", idempotent: true });
  const jobs = await untilDrained(pool);
  expect(peer.seen).toHaveLength(3);
  expect(await statesIn(pool)).toEqual(["held"]);
  expect(jobs.map(({ state }) => state)).toEqual(["done"]);
});

test.each([
  ["the next day, when the peer has forgotten its key, is held", "2 days", "held", 2],
  ["at once, while the peer knows its key, is done", "0", "done", 3],
])("one that may have been heard and was refused, replayed %s", async (_, shift, state, calls) => {
  const { ukemi, pool, peer } = await startWorld((response, request, call) => {
    if (call === 1) request.socket.destroy();
    else response.writeHead(call === 2 ? 422 : 200).end();
  });
  await ukemi.work();
  await ukemi.effects.http(null, { url: peer.url, dedupe: "k", idempotent: true });
  await untilDrained(pool);
  expect(await statesIn(pool)).toEqual(["failed"]);
  await pool.query("update ukemi.clock set shift = $1::interval", [shift]);
  await ukemi.operate.dead.replay({ all: true }, { actor: "test", reason: "they mended it" });
  await untilDrained(pool);
  expect(await statesIn(pool)).toEqual([state]);
  expect(peer.seen).toHaveLength(calls);
});

test("one that may have been heard and was planned again by an older version is neither repeated nor cancelled", async () => {
  const { ukemi, pool, peer } = await startWorld((response) => response.end());
  const { id } = await ukemi.effects.http(null, { url: peer.url, dedupe: "k", idempotent: true });
  await pool.query("update ukemi.effects set attempt = 1, uncertainties = 1");
  await pool.query(
    "insert into ukemi.effect_attempts (effect, number, started_at, result) values ($1, 1, ukemi.now() - interval '2 days', 'uncertain')",
    [id],
  );
  const cancelling = ukemi.operate.effects.cancel(id, { actor: "test", reason: "void" });
  await expect(cancelling).rejects.toThrow("nobody knows whether it happened");
  await ukemi.work();
  await untilDrained(pool);
  expect(await statesIn(pool)).toEqual(["held"]);
  expect(peer.seen).toEqual([]);
});

test("with one call at a time every tenant has its turn, and nobody waits for ever", async () => {
  const { ukemi, pool, peer } = await startWorld((response) => response.end(), { concurrency: 1 });
  for (let n = 0; n < 5; n += 1) {
    for (const tenant of ["a", "b"])
      await ukemi.effects.http(null, { url: peer.url, dedupe: `${n}`, tenant });
  }
  await ukemi.work();
  await untilDrained(pool);
  expect(peer.seen).toHaveLength(10);
});

test("a token that an effect brought itself closes the destination for nobody else", async () => {
  const { ukemi, pool, peer } = await startWorld((response, request) => {
    response.statusCode = request.headers.authorization === "Bearer stale" ? 401 : 200;
    response.end();
  });
  await ukemi.work();
  await ukemi.effects.http(null, { url: peer.url, dedupe: "1", headers: { authorization: "Bearer stale" } });
  await ukemi.effects.http(null, { url: peer.url, dedupe: "2" });
  await untilDrained(pool);
  expect(await statesIn(pool)).toEqual(["failed", "done"]);
});

test("what should come after one that was cancelled, or is another tenant's, does not wait for ever", async () => {
  const { ukemi, pool } = await startMailWorld();
  const off = await ukemi.effects.email(null, "receipt", { ...MAIL, switchedOff: true });
  await ukemi.effects.email(null, "receipt", { ...MAIL, dedupe: "2", after: off });
  expect(await statesIn(pool)).toEqual(["cancelled", "cancelled"]);
  await expect(
    ukemi.effects.email(null, "receipt", { ...MAIL, dedupe: "3", after: off, tenant: "other" }),
  ).rejects.toMatchObject({ code: "effect_conflict" });
});

test("a mail that may have been sent is held, not suppressed, when its address is listed", async () => {
  let isFirst = true;
  const { ukemi, pool } = await startMailWorld({
    onStep(step) {
      if (step.at !== "end" || !isFirst) return undefined;
      isFirst = false;
      return { drop: true, keep: true };
    },
  });
  await ukemi.work();
  await ukemi.effects.email(null, "receipt", MAIL);
  await until(async () => (await statesIn(pool))[0] === "uncertain", "the doubt");
  await pool.query(
    "insert into ukemi.mail_suppressions (address, reason) values ('jane@example.net', 'bounce')",
  );
  await untilDrained(pool);
  expect(await statesIn(pool)).toEqual(["held"]);
});

test("one that died of its time has all of it again when it is replayed", async () => {
  let isSlow = true;
  const { ukemi, pool, inbox } = await startMailWorld(
    { onStep: ({ at }) => (isSlow && at === "rcpt" ? { code: 451, text: "later" } : undefined) },
    { mailTimeLimitMs: 1000 },
  );
  await ukemi.work();
  await ukemi.effects.email(null, "receipt", MAIL);
  const [job] = await untilDrained(pool);
  expect(job!.death).toBe("exhausted");
  isSlow = false;
  await ukemi.operate.dead.replay({ ids: [Number(job!.id)] }, { actor: "test", reason: "they are back" });
  await untilDrained(pool);
  expect(await statesIn(pool)).toEqual(["done"]);
  expect(inbox.mails).toHaveLength(1);
});

test("a call that waits for its turn when the worker stops was not made, and goes out afterwards", async () => {
  const { url, pool, ukemi, peer } = await startWorld((response) => response.end(), {});
  await ukemi.stop();
  const slow = makeUkemi(url, {
    drainTimeoutMs: 0,
    http: { allow: [peer.url], destinations: { [peer.url]: { gapMs: 1500 } } },
  });
  await slow.ukemi.work();
  for (const dedupe of ["1", "2"]) await slow.ukemi.effects.http(null, { url: peer.url, dedupe, body: "x" });
  await peer.saw(1);
  await until(async () => (await statesIn(pool)).includes("sending"), "one to wait for its turn");
  await slow.ukemi.stop();
  expect(await statesIn(pool)).not.toContain("sending");
  expect(await statesIn(pool)).not.toContain("held");
  const next = makeUkemi(url, { http: { allow: [peer.url] } });
  await next.ukemi.work();
  await untilDrained(pool);
  expect(await statesIn(pool)).toEqual(["done", "done"]);
  expect(peer.seen).toHaveLength(2);
});

test("a pause of ten years is one of a day, and one that is over already is none", async () => {
  const { ukemi, pool, peer } = await startWorld((response, request) => {
    const asked = request.url === "/long" ? String(10 * 365 * 86_400) : "Mon, 02 Nov 2026 09:00:00 GMT";
    response.writeHead(503, { "retry-after": asked, date: "Tue, 03 Nov 2026 09:00:00 GMT" });
    response.end();
  });
  const pauses = async () =>
    (
      await pool.query<{ hours: number }>(
        "select extract(epoch from paused_until - ukemi.now())::float8 / 3600 as hours from ukemi.destinations where paused_until is not null",
      )
    ).rows;
  await ukemi.work();
  await ukemi.effects.http(null, { url: `${peer.url}/past`, dedupe: "1" });
  await untilDrained(pool);
  expect(peer.seen).toHaveLength(3);
  expect(await pauses()).toEqual([]);
  await ukemi.effects.http(null, { url: `${peer.url}/long`, dedupe: "2" });
  await until(async () => (await pauses()).length === 1, "the pause");
  const [{ hours }] = (await pauses()) as [{ hours: number }];
  expect(hours).toBeGreaterThan(23);
  expect(hours).toBeLessThanOrEqual(24);
});

test("what waits for a mail that is suppressed when its turn comes is cancelled with it, and audited", async () => {
  const { ukemi, pool, inbox } = await startMailWorld();
  const first = await ukemi.effects.email(null, "receipt", MAIL);
  const second = await ukemi.effects.email(null, "receipt", {
    ...MAIL,
    dedupe: "2",
    to: "b@example.net",
    after: first,
  });
  await ukemi.effects.email(null, "receipt", { ...MAIL, dedupe: "3", to: "c@example.net", after: second });
  await pool.query(
    "insert into ukemi.mail_suppressions (address, reason) values ('jane@example.net', 'complaint')",
  );
  await ukemi.work();
  await untilDrained(pool);
  expect(await statesIn(pool)).toEqual(["suppressed", "cancelled", "cancelled"]);
  expect(inbox.mails).toEqual([]);
  const { rows } = await pool.query("select action from ukemi.audit_log order by id");
  expect(rows).toEqual([
    { action: "email.suppressed" },
    { action: "email.cancelled" },
    { action: "email.cancelled" },
  ]);
});

test("what waits for one that failed goes on waiting, and begins when that is replayed and done", async () => {
  let isBroken = true;
  const { ukemi, pool, peer } = await startWorld((response) => {
    response.statusCode = isBroken ? 400 : 200;
    response.end();
  });
  await ukemi.work();
  const first = await ukemi.effects.http(null, { url: `${peer.url}/1`, dedupe: "1" });
  await ukemi.effects.http(null, { url: `${peer.url}/2`, dedupe: "2", after: first });
  const [job] = await untilDrained(pool);
  expect(await statesIn(pool)).toEqual(["failed", "planned"]);
  const second = (await ukemi.operate.effects.list()).items.find(({ after }) => after === first.id);
  expect(second!.waits_for).toBe(`effect ${first.id}, which is failed`);
  isBroken = false;
  await ukemi.operate.dead.replay({ ids: [Number(job!.id)] }, { actor: "test", reason: "they are back" });
  await until(async () => (await statesIn(pool)).every((state) => state === "done"), "both to be done");
  expect(peer.seen.map(({ path }) => path)).toEqual(["/1", "/1", "/2"]);
});

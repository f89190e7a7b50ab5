// What effects hold, sealed at rest: nobody reads it in the tables, it is carried out as it was, and no key loses nothing.
import { randomBytes } from "node:crypto";
import { expect, onTestFinished, test } from "vitest";
import type { Alert } from "../../src/observe/alerts.ts";
import type { Pool } from "../../src/storage/postgres.ts";
import type { UkemiOptions } from "../../src/ukemi.ts";
import { tablesWith } from "../support/canary.ts";
import { MANDATE } from "../support/dead.ts";
import { startPeer, type PeerAnswer } from "../support/http-peer.ts";
import { answerWith } from "../support/ledger.ts";
import { RECEIPT, startMailWorld } from "../support/mail-world.ts";
import type { SmtpInboxOptions } from "../support/smtp-inbox.ts";
import { until } from "../support/until.ts";
import { makeUkemi, readJobs, untilDrained } from "../support/work.ts";

const masterKey = (name: string) => `${name}:${randomBytes(32).toString("base64")}`;

const ADDRESS = "canary-hanako@example.net";
const NAME = "canary-name-in-the-mail";
const SENT = "canary-body-of-the-call";
const ANSWERED = "canary-answer-of-the-peer";
const RESULT = "canary-result-of-the-call";
const CANARIES = [ADDRESS, NAME, SENT, ANSWERED, RESULT];

const MAIL = { to: "Canary-Hanako@example.net", data: { ...RECEIPT, name: NAME }, dedupe: "receipt:1" };

const refusing: PeerAnswer = (response, { url }) =>
  url === "/refuses"
    ? answerWith(response, 422, { type: "about:blank", title: ANSWERED })
    : answerWith(response, 200, { said: ANSWERED });

async function startWorld(options: Partial<UkemiOptions> = {}, inboxOptions: SmtpInboxOptions = {}) {
  const peer = await startPeer(refusing);
  onTestFinished(() => peer.stop());
  const http = { allow: [peer.url] };
  const world = await startMailWorld(inboxOptions, { http, ...options });
  const { settings } = world.ukemi;
  const { smtpUrl, mailFrom, mailTemplates } = settings;
  /** Another process on the same store, with these keys. */
  const another = (bodyKeys: readonly string[], more: Partial<UkemiOptions> = {}) =>
    makeUkemi(world.url, {
      ...(smtpUrl !== undefined && { smtpUrl }),
      ...(mailFrom !== undefined && { mailFrom }),
      mailTemplates,
      mailGapMs: 0,
      http,
      bodyKeys,
      ...more,
    });
  return { ...world, peer, another };
}

type World = Awaited<ReturnType<typeof startWorld>>;

/** One of each kind, carried out; one call is refused with a problem document. */
async function actAll({ ukemi, peer, pool }: World): Promise<Record<"mail" | "call", string>> {
  const mail = await ukemi.effects.email(null, "receipt", MAIL);
  const call = await ukemi.effects.http(null, {
    url: `${peer.url}/ship`,
    body: { note: SENT },
    dedupe: "ship",
  });
  await ukemi.effects.http(null, { url: `${peer.url}/refuses`, body: { note: SENT }, dedupe: "refused" });
  await ukemi.effects.callNow("checkout:1", () => Promise.resolve({ url: RESULT }));
  await untilDrained(pool);
  return { mail: mail.id, call: call.id };
}

const plan = ({ ukemi }: Pick<World, "ukemi">, changes: Partial<typeof MAIL> = {}) =>
  ukemi.effects.email(null, "receipt", { ...MAIL, ...changes });

const listTo = async ({ ukemi }: Pick<World, "ukemi">, to = ADDRESS) =>
  (await ukemi.operate.effects.list({ to })).items;

const countRows = async (pool: Pool, table: string) =>
  (await pool.query(`select from ukemi.${table}`)).rowCount;

test("what effects hold lies sealed, is sent as it was, and is shown to whoever has the key", async () => {
  const world = await startWorld({ bodyKeys: [masterKey("a")] });
  const { ukemi, pool, peer, inbox } = world;
  await ukemi.work();
  const { mail, call } = await actAll(world);
  for (const canary of CANARIES) expect(await tablesWith(pool, canary), canary).toEqual([]);
  expect(inbox.mails[0]!.to).toEqual([MAIL.to]);
  expect(inbox.mails[0]!.raw).toContain(NAME);
  expect(peer.seen.map(({ body }) => body)).toEqual([`{"note":"${SENT}"}`, `{"note":"${SENT}"}`]);
  // the result is there for whoever asks again
  const again = await ukemi.effects.callNow("checkout:1", () => Promise.reject(new Error("a second call")));
  expect(again).toEqual({ url: RESULT });
  const [listed] = await listTo(world, " CANARY-hanako@example.NET");
  expect(listed).toMatchObject({
    id: mail,
    target: ADDRESS,
    template: "receipt",
    accepted_as: expect.stringContaining("250") as unknown,
    content: "kept",
  });
  expect(await ukemi.operate.effects.show(call)).toMatchObject({
    target: `POST ${peer.url}/ship`,
    receipt: { status: 200, body: expect.stringContaining(ANSWERED) as unknown },
  });
  const failed = (await ukemi.operate.effects.list({ state: "failed" })).items[0]!;
  const { attempts } = (await ukemi.operate.effects.show(failed.id))!;
  expect(JSON.stringify(attempts)).toContain(ANSWERED);
  const { would_run: run } = await ukemi.operate.dead.previewEffects({ all: true });
  expect(run.items).toMatchObject([{ id: failed.id, target: `POST ${peer.url}/refuses` }]);
});

test("the same words are found where nothing is sealed: the search can fail", async () => {
  const world = await startWorld();
  await world.ukemi.work();
  await actAll(world);
  for (const canary of CANARIES) expect(await tablesWith(world.pool, canary), canary).toContain("effects");
  expect(await tablesWith(world.pool, ANSWERED)).toContain("effect_attempts");
});

test("a key stands for its recipient, whether that lies sealed or not", async () => {
  const a = masterKey("a");
  const world = await startWorld();
  const before = await plan(world, { dedupe: "before" });
  const sealing = world.another([a]);
  const during = await plan(sealing, { dedupe: "during" });
  const off = world.another(["plain", a]);
  const after = await plan(off, { dedupe: "after" });
  for (const place of [sealing, off]) {
    for (const [dedupe, { id }] of Object.entries({ before, during, after })) {
      expect(await plan(place, { dedupe })).toEqual({ id, suppressed: true });
      await expect(plan(place, { dedupe, to: "somebody@example.net" })).rejects.toMatchObject({
        code: "effect_conflict",
      });
    }
    expect(new Set((await listTo(place)).map(({ target }) => target))).toEqual(new Set([ADDRESS]));
  }
  // who was started before there were keys can neither suppress nor refuse it, and says so
  await expect(plan(world, { dedupe: "during" })).rejects.toMatchObject({ code: "body_sealed" });
  await expect(listTo(world)).rejects.toMatchObject({ code: "body_sealed" });
});

test("after a change of the master key mails are found by their address, and keys by their recipient", async () => {
  const [old, young] = [masterKey("old"), masterKey("young")];
  const world = await startWorld({ bodyKeys: [old] });
  const first = await plan(world);
  const both = world.another([young, old]);
  await both.ukemi.operate.bodies.rewrap(MANDATE);
  // a month later there is another data key, and digests are still those of the first
  await world.pool.query("update ukemi.clock set shift = '32 days'");
  const next = world.another([young]);
  const second = await plan(next, { dedupe: "receipt:2" });
  expect((await listTo(next)).map(({ id, target }) => [id, target])).toEqual([
    [second.id, ADDRESS],
    [first.id, ADDRESS],
  ]);
  expect(await plan(next)).toEqual({ id: first.id, suppressed: true });
  await expect(plan(next, { to: "somebody@example.net" })).rejects.toMatchObject({ code: "effect_conflict" });
  await next.ukemi.work();
  await untilDrained(world.pool);
  expect(world.inbox.mails).toHaveLength(2);
});

test("an effect whose key is missing waits without a try, is told of once, and is done by whoever has the key", async () => {
  const [a, b] = [masterKey("a"), masterKey("b")];
  const alerts: Alert[] = [];
  const world = await startWorld({ bodyKeys: [a], onAlert: (alert) => void alerts.push(alert) });
  await world.ukemi.work();
  await world.pool.query("update ukemi.clock set shift = '32 days'");
  const rich = world.another([b, a]);
  for (const dedupe of ["one", "two"]) await plan(rich, { dedupe });
  const { pool } = world;
  await until(
    async () => (await pool.query("select from ukemi.jobs where returns > 0")).rowCount === 2,
    "both to be given back",
  );
  expect(await pool.query("select state, attempt from ukemi.effects").then(({ rows }) => rows)).toEqual([
    { state: "planned", attempt: 0 },
    { state: "planned", attempt: 0 },
  ]);
  expect(await countRows(pool, "effect_attempts")).toBe(0);
  expect((await readJobs(pool)).map(({ attempt, death }) => [attempt, death])).toEqual([
    [0, null],
    [0, null],
  ]);
  expect(alerts).toMatchObject([
    { kind: "body_sealed", message: expect.stringContaining('bodyKeys has no key named "b"') as unknown },
  ]);
  // what cannot be opened is listed as that
  const { items } = await world.ukemi.operate.effects.list();
  expect(items).toMatchObject([
    { target: "(sealed)", content: "sealed", template: null },
    { target: "(sealed)", content: "sealed", template: null },
  ]);
  expect(await world.ukemi.operate.effects.show(items[0]!.id)).toMatchObject({ content: "sealed" });
  await world.ukemi.stop();
  await rich.ukemi.work();
  await pool.query("update ukemi.jobs set run_at = ukemi.now() where state = 'scheduled'");
  await untilDrained(pool);
  expect(world.inbox.mails).toHaveLength(2);
});

test("an intent that was changed, or changed places, ends dead before its call; restored, it is sent", async () => {
  const world = await startWorld({ bodyKeys: [masterKey("a")] });
  const { ukemi, pool, inbox } = world;
  for (const dedupe of ["flipped", "swapped", "target", "fine"]) await plan(world, { dedupe });
  await pool.query("create table backup as select id, intent, target_sealed from ukemi.effects");
  const of = (key: string) => `(select id from ukemi.effects where dedupe_key = '${key}')`;
  await pool.query(
    `update ukemi.effects set intent = overlay(intent placing 'AAAA' from 40) where dedupe_key = 'flipped';
     update ukemi.effects set intent = (select intent from backup where id = ${of("fine")}) where dedupe_key = 'swapped';
     update ukemi.effects set target = 'hmac:another' where dedupe_key = 'target'`,
  );
  await ukemi.work();
  const jobs = await untilDrained(pool);
  expect(jobs.map(({ state }) => state)).toEqual(["dead", "dead", "dead", "done"]);
  for (const job of jobs.slice(0, 3)) {
    expect(job).toMatchObject({ death: "terminal", error_class: "UkemiError body_altered" });
  }
  expect(inbox.mails).toHaveLength(1);
  expect(await countRows(pool, "effect_attempts")).toBe(1);
  // one bad row does not hide the others
  const listed = (await ukemi.operate.effects.list()).items.map(({ dedupe, target, content }) => [
    dedupe,
    target,
    content,
  ]);
  expect(listed.toSorted(([one], [other]) => one!.localeCompare(other!))).toEqual([
    ["fine", ADDRESS, "kept"],
    ["flipped", ADDRESS, "altered"],
    ["swapped", ADDRESS, "altered"],
    ["target", "(altered)", "altered"],
  ]);
  const { would_run: run } = await ukemi.operate.dead.previewEffects({ all: true });
  expect(run.items.map(({ target }) => target).toSorted()).toEqual(["(altered)", ADDRESS, ADDRESS]);
  await pool.query(
    `update ukemi.effects e set intent = b.intent,
       target = (select target from ukemi.effects where dedupe_key = 'fine')
     from backup b where b.id = e.id`,
  );
  expect(await ukemi.operate.dead.replay({ all: true }, MANDATE)).toMatchObject({ changed: 3 });
  await untilDrained(pool);
  expect(inbox.mails).toHaveLength(4);
});

test("an address that was refused lies sealed on the list, and is not written to whichever way it lies there", async () => {
  const a = masterKey("a");
  const refuses: SmtpInboxOptions = {
    onStep: ({ at, who }) =>
      at === "rcpt" && who?.toLowerCase() === ADDRESS ? { code: 550, text: "5.1.1 user unknown" } : undefined,
  };
  const world = await startWorld({ bodyKeys: [a] }, refuses);
  const { ukemi, pool } = world;
  const { suppressions } = ukemi.operate;
  await ukemi.work();
  await plan(world);
  await untilDrained(pool);
  expect(await tablesWith(pool, ADDRESS)).toEqual([]);
  expect((await suppressions.list()).items).toMatchObject([{ address: ADDRESS, reason: "refused" }]);
  const [refused] = (await suppressions.list({ address: MAIL.to })).items;
  expect(refused).toMatchObject({ address: ADDRESS });
  await plan(world, { dedupe: "again" });
  await untilDrained(pool);
  expect((await ukemi.operate.effects.list({ state: "suppressed" })).items).toHaveLength(1);
  // put there by hand, it is the same entry
  expect(await suppressions.add({ address: ADDRESS }, MANDATE)).toMatchObject({ changed: false });
  expect(await suppressions.remove({ address: ADDRESS }, MANDATE)).toMatchObject({ changed: true });
  // from before there were keys
  await pool.query("insert into ukemi.mail_suppressions (address, reason) values ($1, 'bounce')", [ADDRESS]);
  await plan(world, { dedupe: "and again" });
  await untilDrained(pool);
  expect((await ukemi.operate.effects.list({ state: "suppressed" })).items).toHaveLength(2);
  expect(await suppressions.add({ address: ADDRESS }, MANDATE)).toMatchObject({ changed: false });
});

test("a process from before the keys writes to nobody whom another has listed as a digest", async () => {
  const world = await startWorld();
  await plan(world);
  const rich = world.another([masterKey("a")]);
  await rich.ukemi.operate.suppressions.add({ address: ADDRESS }, MANDATE);
  expect(await tablesWith(world.pool, ADDRESS)).toEqual(["effects"]);
  await world.ukemi.work();
  const isBack = "select from ukemi.jobs where returns > 0";
  await until(async () => (await world.pool.query(isBack)).rowCount === 1, "it to be given back");
  await world.ukemi.stop();
  await rich.ukemi.work();
  await world.pool.query("update ukemi.jobs set run_at = ukemi.now() where state = 'scheduled'");
  await untilDrained(world.pool);
  expect((await rich.ukemi.operate.effects.list({ state: "suppressed" })).items).toHaveLength(1);
  expect(world.inbox.mails).toEqual([]);
});

test("what holds nothing needs no seal, and the sealing has an end", async () => {
  const world = await startWorld();
  await world.ukemi.effects.callNow("empty", () => Promise.resolve({}));
  const { bodies } = world.another([masterKey("a")]).ukemi.operate;
  await bodies.seal(MANDATE);
  expect(await bodies.previewSeal()).toEqual({ plain: 0, effects: 0, addresses: 0 });
});

test("what was written before the keys is sealed by the same command as bodies, and stays what it was", async () => {
  const world = await startWorld();
  const { pool } = world;
  await world.ukemi.work();
  const { mail, call } = await actAll(world);
  await pool.query("insert into ukemi.mail_suppressions (address, reason) values ($1, 'bounce')", [
    "canary-listed@example.net",
  ]);
  const shown = await Promise.all([mail, call].map((id) => world.ukemi.operate.effects.show(id)));
  await world.ukemi.stop();
  const place = world.another([masterKey("a")]);
  const { bodies, effects, suppressions } = place.ukemi.operate;
  expect(await bodies.previewSeal()).toEqual({ plain: 0, effects: 4, addresses: 1 });
  // one that is in somebody's hands is left, and nobody waits for it
  const holder = await pool.connect();
  await holder.query("begin");
  await holder.query("select from ukemi.effects where id = $1 for update", [mail]);
  expect(await bodies.seal(MANDATE)).toEqual({ sealed: 0, effects: 3, addresses: 1, stopped: false });
  await holder.query("rollback");
  holder.release();
  expect(await bodies.seal(MANDATE)).toEqual({ sealed: 0, effects: 1, addresses: 0, stopped: false });
  expect(await bodies.previewSeal()).toEqual({ plain: 0, effects: 0, addresses: 0 });
  // the words of errors from before stay as they are, as those of handlers' errors do
  const sealed = [...CANARIES.filter((canary) => canary !== ANSWERED), "canary-listed"];
  for (const canary of sealed) expect(await tablesWith(pool, canary), canary).toEqual([]);
  expect(await Promise.all([mail, call].map((id) => effects.show(id)))).toEqual(shown);
  expect((await suppressions.list()).items).toMatchObject([{ address: "canary-listed@example.net" }]);
  expect(await place.ukemi.effects.callNow("checkout:1", () => Promise.reject(new Error("no")))).toEqual({
    url: RESULT,
  });
  expect(await plan(place)).toEqual({ id: mail, suppressed: true });
});

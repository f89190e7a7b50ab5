// Mail by the ledger: sent once, by its template, and accounted for whatever the server does.
import { expect, test } from "vitest";
import type { Pool } from "../../src/storage/postgres.ts";
import type { InboxAct, InboxPlace } from "../support/smtp-inbox.ts";
import { RECEIPT, startMailWorld } from "../support/mail-world.ts";
import { until } from "../support/until.ts";
import { untilDrained } from "../support/work.ts";

const MAIL = { to: "jane@example.net", data: RECEIPT, dedupe: "receipt:1" };

async function readEffects(pool: Pool) {
  const { rows } = await pool.query<{ id: string; state: string; attempt: number; reason: string | null }>(
    "select id, state, attempt, reason, uncertainties, feedback from ukemi.effects order by id",
  );
  return rows;
}

test("a mail is sent once with a Message-ID and a header of its effect, and audited", async () => {
  const { ukemi, pool, inbox } = await startMailWorld();
  await ukemi.work();
  const details = { office: 12, threshold: 30 };
  const { id } = await ukemi.effects.email(null, "receipt", { ...MAIL, details });
  await untilDrained(pool);
  expect(inbox.mails).toHaveLength(1);
  const [mail] = inbox.mails;
  expect(mail).toMatchObject({ from: "shop@example.com", to: ["jane@example.net"] });
  expect(mail!.headers).toMatchObject({
    "message-id": `<${id}@example.com>`,
    "x-ukemi-effect": id,
    subject: "Receipt 7",
  });
  expect(await readEffects(pool)).toMatchObject([{ id, state: "done", attempt: 1 }]);
  const { rows } = await pool.query("select action, target, details from ukemi.audit_log");
  expect(rows).toEqual([
    {
      action: "email.done",
      target: id,
      details: { dedupe: "receipt:1", attempt: 1, template: "receipt", to: "j***@e***.net", ...details },
    },
  ]);
});

test("the language is the recipient's, where there is one, and yen have no decimals", async () => {
  const { ukemi, pool, inbox } = await startMailWorld();
  await ukemi.work();
  await ukemi.effects.email(null, "receipt", { ...MAIL, locale: "ja-JP" });
  await untilDrained(pool);
  const { headers, raw } = inbox.mails[0]!;
  expect(headers.subject).toMatch(/^=\?UTF-8\?/);
  const shown = Buffer.from(/\r\n\r\n([\s\S]+)$/.exec(raw)![1]!, "base64").toString();
  expect(shown).toContain("1,234");
  expect(shown).not.toContain("1,234.00");
});

test.each([
  ["an unknown template", "receit", MAIL, /no mail template/],
  ["a missing variable", "receipt", { ...MAIL, data: { number: 7, name: "Taro" } }, /amount/],
  ["no address", "receipt", { ...MAIL, to: "jane" }, /one plain mailbox/],
  ["two addresses", "receipt", { ...MAIL, to: "a@example.com,b@example.com" }, /one plain mailbox/],
  ["a line break", "receipt", { ...MAIL, to: "a@example.com\r\nBcc: b@example.com" }, /one plain mailbox/],
  ["no dedupe key", "receipt", { ...MAIL, dedupe: "" }, /dedupe is needed/],
])("%s is refused where it is intended, and nothing is planned", async (_, template, mail, message) => {
  const { ukemi, pool } = await startMailWorld();
  await expect(ukemi.effects.email(null, template, mail)).rejects.toThrow(message);
  expect(await readEffects(pool)).toEqual([]);
});

test("the same key for another recipient is an error; the same one in other letters is not, and is found by either", async () => {
  const { ukemi, pool } = await startMailWorld();
  const first = await ukemi.effects.email(null, "receipt", MAIL);
  await expect(
    ukemi.effects.email(null, "receipt", { ...MAIL, to: "john@example.net" }),
  ).rejects.toMatchObject({ code: "effect_conflict" });
  const again = await ukemi.effects.email(null, "receipt", { ...MAIL, to: "Jane@Example.NET" });
  expect(again).toEqual({ id: first.id, suppressed: true });
  for (const to of ["jane@example.net", " JANE@example.net "])
    expect((await ukemi.operate.effects.list({ to })).items).toHaveLength(2);
  expect(await readEffects(pool)).toHaveLength(2);
});

test("one that the person switched off is recorded, and not sent", async () => {
  const { ukemi, pool, inbox } = await startMailWorld();
  await ukemi.work();
  await ukemi.effects.email(null, "receipt", { ...MAIL, switchedOff: true });
  expect(await readEffects(pool)).toMatchObject([
    { state: "cancelled", reason: "switched off by the recipient" },
  ]);
  // and it stays so: the key is used
  expect(await ukemi.effects.email(null, "receipt", MAIL)).toMatchObject({ suppressed: true });
  await untilDrained(pool);
  expect(inbox.mails).toEqual([]);
});

/** The table of MISSION C9: what the server does the first time, and what becomes of the mail. */
const TABLE: readonly (readonly [string, InboxPlace, InboxAct, { state: string; mails: number }])[] = [
  ["421 at connect", "connect", { code: 421, text: "too many connections" }, { state: "done", mails: 1 }],
  ["the line is cut at connect", "connect", { drop: true }, { state: "done", mails: 1 }],
  ["451 at MAIL", "mail", { code: 451, text: "try later" }, { state: "done", mails: 1 }],
  ["450 at RCPT", "rcpt", { code: 450, text: "mailbox busy" }, { state: "done", mails: 1 }],
  ["the line is cut in the middle", "middle", { drop: true }, { state: "done", mails: 1 }],
  ["451 after DATA", "end", { code: 451, text: "local error" }, { state: "done", mails: 1 }],
  ["550 at RCPT", "rcpt", { code: 550, text: "5.1.1 user unknown" }, { state: "failed", mails: 0 }],
  ["553 at RCPT", "rcpt", { code: 553, text: "5.1.3 bad address" }, { state: "failed", mails: 0 }],
  ["552 after DATA", "end", { code: 552, text: "too large" }, { state: "failed", mails: 0 }],
  ["554 after DATA", "end", { code: 554, text: "rejected" }, { state: "failed", mails: 0 }],
];

test.each(TABLE)("what becomes of a mail: %s", async (_, at, act, { state, mails }) => {
  let isFirst = true;
  const { ukemi, pool, inbox } = await startMailWorld({
    onStep(step) {
      if (step.at !== at || !isFirst) return undefined;
      isFirst = false;
      return act;
    },
  });
  await ukemi.work();
  await ukemi.effects.email(null, "receipt", MAIL);
  const jobs = await untilDrained(pool);
  expect(await readEffects(pool)).toMatchObject([{ state }]);
  expect(inbox.mails).toHaveLength(mails);
  expect(jobs[0]!.state).toBe(state === "done" ? "done" : "dead");
});

test("three tries in all: then it is failed, with what the server said", async () => {
  const { ukemi, pool, inbox } = await startMailWorld({
    onStep: ({ at }) => (at === "rcpt" ? { code: 451, text: "4.7.1 greylisted" } : undefined),
  });
  await ukemi.work();
  await ukemi.effects.email(null, "receipt", MAIL);
  const [job] = await untilDrained(pool);
  expect(job).toMatchObject({ state: "dead", death: "exhausted", error_class: "SMTP 451" });
  expect(inbox.steps.filter(({ at }) => at === "rcpt")).toHaveLength(3);
  const { rows } = await pool.query<{ ms: number }>(
    `select (extract(epoch from started_at - lag(ended_at) over (order by number)) * 1000)::float8 as ms
     from ukemi.effect_attempts order by number`,
  );
  const waits = rows.slice(1).map(({ ms }) => ms);
  expect(waits[0]).toBeGreaterThanOrEqual(1990);
  expect(waits[1]).toBeGreaterThanOrEqual(3990);
});

test.each(["retry", "hold"] as const)(
  "a mail whose answer was lost is uncertain; the policy %s decides",
  async (onUncertain) => {
    let isFirst = true;
    const { ukemi, pool, inbox, lines } = await startMailWorld({
      onStep(step) {
        if (step.at !== "end" || !isFirst) return undefined;
        isFirst = false;
        return { drop: true, keep: true };
      },
    });
    await ukemi.work();
    const { id } = await ukemi.effects.email(null, "receipt", { ...MAIL, onUncertain });
    await untilDrained(pool);
    const isRepeated = onUncertain === "retry";
    expect(await readEffects(pool)).toMatchObject([
      { state: isRepeated ? "done" : "held", uncertainties: 1 },
    ]);
    // both were received: they can be told to be the same mail
    expect(inbox.mails.map(({ headers }) => headers["message-id"])).toEqual(
      Array.from({ length: isRepeated ? 2 : 1 }, () => `<${id}@example.com>`),
    );
    expect(lines().some(({ alert }) => alert === "effect_held")).toBe(!isRepeated);
  },
);

test("a refused password closes the door and alerts; mails wait without burning tries, and go when it is mended", async () => {
  let isLocked = true;
  const world = await startMailWorld({
    onStep: ({ at }) =>
      at === "mail" && isLocked ? { code: 530, text: "authentication required" } : undefined,
  });
  const { ukemi, pool, inbox, lines } = world;
  await ukemi.work();
  for (const n of [1, 2, 3]) {
    await ukemi.effects.email(null, "receipt", { ...MAIL, to: `p${n}@example.net`, dedupe: `${n}` });
  }
  await until(() => lines().some(({ alert }) => alert === "destination_closed"), "the alert");
  await until(async () => (await readEffects(pool)).every(({ state }) => state === "planned"), "all to wait");
  isLocked = false;
  await pool.query("update ukemi.clock set shift = '1 hour'");
  const jobs = await untilDrained(pool);
  expect(jobs.map(({ state, attempt }) => [state, attempt])).toEqual([
    ["done", 1],
    ["done", 1],
    ["done", 1],
  ]);
  expect(inbox.mails).toHaveLength(3);
});

test("the provider's daily quota pauses the sender, and nobody is lost", async () => {
  let isFull = true;
  const { ukemi, pool, inbox, lines } = await startMailWorld({
    onStep: ({ at }) =>
      at === "mail" && isFull
        ? { code: 454, text: "Throttling failure: Daily message quota exceeded" }
        : undefined,
  });
  await ukemi.work();
  for (const n of [1, 2, 3]) {
    await ukemi.effects.email(null, "receipt", { ...MAIL, to: `p${n}@example.net`, dedupe: `${n}` });
  }
  await until(() => lines().some(({ alert }) => alert === "destination_paused"), "the alert");
  await until(
    async () => (await pool.query("select from ukemi.jobs where state = 'scheduled'")).rowCount === 3,
    "all to wait",
  );
  isFull = false;
  await pool.query("update ukemi.clock set shift = '11 minutes'");
  await untilDrained(pool);
  expect(inbox.mails).toHaveLength(3);
});

test("our own limit of a day holds in any 24 hours", async () => {
  const { ukemi, pool, inbox } = await startMailWorld({}, { mailPerDay: 2 });
  await ukemi.work();
  for (const n of [1, 2, 3]) {
    await ukemi.effects.email(null, "receipt", { ...MAIL, to: `p${n}@example.net`, dedupe: `${n}` });
  }
  await until(
    async () => (await pool.query("select from ukemi.jobs where state = 'scheduled'")).rowCount === 1,
    "one to wait",
  );
  await until(() => inbox.mails.length === 2, "two mails");
  await pool.query("update ukemi.clock set shift = '26 hours'");
  await untilDrained(pool);
  expect(inbox.mails).toHaveLength(3);
});

test("an address that was refused is not written to again by this tenant, but by another", async () => {
  const { ukemi, pool, inbox } = await startMailWorld({
    onStep: ({ at }) =>
      at === "rcpt" && inbox.steps.length < 5 ? { code: 550, text: "5.1.1 user unknown" } : undefined,
  });
  await ukemi.work();
  await ukemi.effects.email(null, "receipt", { ...MAIL, tenant: "a" });
  await untilDrained(pool);
  await ukemi.effects.email(null, "receipt", { ...MAIL, dedupe: "2", to: "Jane@Example.net", tenant: "a" });
  await ukemi.effects.email(null, "receipt", { ...MAIL, dedupe: "2", tenant: "b" });
  await untilDrained(pool);
  expect((await readEffects(pool)).map(({ state }) => state)).toEqual(["failed", "suppressed", "done"]);
  expect(inbox.mails).toHaveLength(1);
});

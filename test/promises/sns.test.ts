// SNS from end to end: a bounce is stored once, a subscription is confirmed, and without AWS there is no 2xx.
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { readSesNotice, sns, type SesNotice, type SnsFetch } from "../../src/index.ts";
import { createDatabase } from "../support/database.ts";
import { startTestServer } from "../support/in-process.ts";
import {
  confirmationOf,
  createAws,
  createSigner,
  REGION_HOST,
  sesBounce,
  signSns,
  TOPIC,
} from "../support/sns.ts";
import { until } from "../support/until.ts";
import { untilDrained } from "../support/work.ts";

const signer = createSigner();

/** A server with the source `mail` before a made-up AWS, which can be made to fail. */
async function openMail() {
  const { url, pool } = await createDatabase();
  const aws = createAws(signer);
  const outage = { status: 0 };
  const fetch: SnsFetch = (asked, init) =>
    outage.status === 0 ? aws.fetch(asked, init) : Promise.resolve(new Response("", outage));
  const server = await startTestServer({
    database: url,
    sources: { mail: sns({ topics: [TOPIC], fetch }) },
    refusedPerMinute: 3,
  });
  const post = async (message: object) => {
    const response = await globalThis.fetch(`${server.url}/webhooks/mail`, {
      method: "POST",
      headers: { "content-type": "text/plain; charset=UTF-8", "x-amz-sns-message-type": "Notification" },
      body: JSON.stringify(message),
    });
    return {
      status: response.status,
      duplicate: response.headers.get("x-duplicate"),
      said: await response.text(),
    };
  };
  const events = async () =>
    (
      await pool.query<{
        id: string;
        event_id: string;
        type: string;
        source: string;
        livemode: boolean;
        at: Date;
      }>(
        "select id, event_id, type, source, livemode, occurred_at as at from ukemi.events order by received_at",
      )
    ).rows;
  return { server, pool, post, events, outage, asked: aws.asked };
}

test("stores a bounce once, with its refs, and gives it to a handler; no address reaches the log", async () => {
  const { server, pool, post, events } = await openMail();
  const notices: (SesNotice | undefined)[] = [];
  server.ukemi.on("mail", "ses.bounce", ({ event }) => void notices.push(readSesNotice(event)));
  await server.ukemi.work();
  const effect = randomUUID();
  const message = signSns(signer, { MessageId: "m-1", Message: JSON.stringify(sesBounce(effect)) });

  const told = await Promise.all(Array.from({ length: 20 }, () => post(message)));
  expect(new Set(told.map(({ status }) => status))).toEqual(new Set([204]));
  expect(told.filter(({ duplicate }) => duplicate === null)).toHaveLength(1);
  const [event, ...more] = await events();
  expect(more).toEqual([]);
  expect(event).toMatchObject({
    event_id: "m-1",
    type: "ses.bounce",
    source: "mail",
    livemode: true,
    at: new Date("2026-11-01T10:00:00.123Z"),
  });
  const { rows: refs } = await pool.query("select * from ukemi.refs_of($1)", [event!.id]);
  expect(JSON.stringify(refs)).toContain(effect);
  expect(JSON.stringify(refs)).toContain("EXAMPLE7c191be45");

  await untilDrained(pool);
  expect(notices).toEqual([
    expect.objectContaining({ kind: "bounce", permanent: true, effect, recipients: ["gone@example.com"] }),
  ]);
  expect(JSON.stringify(server.lines())).not.toContain("example.com");
});

test.each([
  ["a bounce that stays", "Permanent", "bounced", 1],
  ["a bounce that may pass", "Transient", "delayed", 0],
])(
  "%s lands on the mail, and the suppression list of its tenant",
  async (_, bounceType, feedback, listed) => {
    const { server, pool, post } = await openMail();
    await server.ukemi.work();
    const effect = randomUUID();
    await pool.query(
      `insert into ukemi.effects (
       id, kind, tenant, dedupe_key, state, target, intent, destination, on_uncertain, max_attempts, planned_at, ended_at
     )
     values ($1, 'email', 'acme', 'k', 'done', 'gone@example.com', '{}', 'ses', 'retry', 3, ukemi.now(), ukemi.now())`,
      [effect],
    );
    const notice = sesBounce(effect);
    const said = JSON.stringify(notice).replaceAll("Permanent", bounceType);
    const message = signSns(signer, { MessageId: "m-9", Message: said });
    await Promise.all([post(message), post(message)]);
    await untilDrained(pool);
    const { rows } = await pool.query("select feedback, state from ukemi.effects");
    expect(rows).toEqual([{ feedback, state: "done" }]);
    const { rows: suppressed } = await pool.query(
      "select tenant, address, reason from ukemi.mail_suppressions",
    );
    expect(suppressed).toEqual(
      Array.from({ length: listed }, () => ({
        tenant: "acme",
        address: "gone@example.com",
        reason: "bounce",
      })),
    );
  },
);

test("a bounce of a mail that nobody knows, or of what is no mail, changes nothing and kills no job", async () => {
  const { server, pool, post } = await openMail();
  await server.ukemi.work();
  const [call, unknown] = [randomUUID(), randomUUID()];
  await pool.query(
    `insert into ukemi.effects (
       id, kind, dedupe_key, state, target, intent, destination, on_uncertain, max_attempts, planned_at, ended_at
     )
     values ($1, 'http', 'k', 'done', 'gone@example.com', '{}', 'x', 'hold', 3, ukemi.now(), ukemi.now())`,
    [call],
  );
  for (const [n, effect] of [call, unknown, unknown].entries()) {
    const message = signSns(signer, { MessageId: `m-${n}`, Message: JSON.stringify(sesBounce(effect)) });
    expect((await post(message)).status).toBe(204);
  }
  const jobs = await untilDrained(pool);
  expect(jobs.map(({ state }) => state)).toEqual(["done", "done", "done"]);
  expect((await pool.query("select feedback from ukemi.effects")).rows).toEqual([{ feedback: null }]);
  expect((await pool.query("select from ukemi.mail_suppressions")).rowCount).toBe(0);
});

test("confirms a subscription after it is stored, and once more where AWS failed the first time", async () => {
  const { server, post, events, outage, asked } = await openMail();
  await post(signSns(signer)); // so that the certificate is there
  const message = signSns(signer, { ...confirmationOf("secret-token"), MessageId: "m-2" });

  outage.status = 500;
  const first = await post(message);
  expect(first.status).toBe(503);
  expect(asked).toEqual([signer.url]);
  expect((await events()).map(({ type }) => type)).toEqual([
    "sns.notification",
    "sns.subscription_confirmation",
  ]);

  outage.status = 0;
  expect(await post(message)).toMatchObject({ status: 204, duplicate: "true" });
  expect(await events()).toHaveLength(2);
  expect(asked).toEqual([
    signer.url,
    expect.stringContaining(`https://${REGION_HOST}/?Action=ConfirmSubscription`),
  ]);

  expect(server.lines()).toContainEqual(
    expect.objectContaining({
      reason: "sender_unreachable",
      diagnosis: `${REGION_HOST} answered 500 to the confirmation`,
    }),
  );
  expect(JSON.stringify([first.said, server.lines()])).not.toContain("secret-token");
});

test("answers 503 while the certificate cannot be had, keeps nothing, and takes the message when it is sent again", async () => {
  const { server, pool, post, events, outage } = await openMail();
  const message = signSns(signer, { MessageId: "m-3" });
  outage.status = 503;
  expect(await post(message)).toMatchObject({
    status: 503,
    said: expect.stringContaining("sender_unreachable"),
  });
  expect(await events()).toEqual([]);
  outage.status = 0;
  expect(await post(message)).toMatchObject({ status: 204, duplicate: null });
  expect(await events()).toHaveLength(1);
  expect((await pool.query("select from ukemi.rejections")).rowCount).toBe(0);
  expect(server.lines()).toContainEqual(
    expect.objectContaining({ diagnosis: `${REGION_HOST} answered 503`, result: "error" }),
  );
});

test("refuses forgeries with 400, fetches nothing for an address that sent too many, and says nothing of the body", async () => {
  const { server, pool, post, events, asked } = await openMail();
  const Message = JSON.stringify(sesBounce(randomUUID()));
  const foreign = signSns(signer, { ...confirmationOf(), TopicArn: `${TOPIC}2`, Message });
  expect((await post(foreign)).status).toBe(400);
  expect(asked).toEqual([]);
  expect((await post({ ...signSns(signer, { Message }), Subject: "altered@example.com" })).status).toBe(400);
  expect((await post({ ...signSns(signer, { Message }), MessageId: "altered" })).status).toBe(400);
  expect(asked).toEqual([signer.url]);

  const unknown = { ...signer, url: signer.url.replace("0a1b", "unknown") };
  expect((await post(signSns(unknown))).status).toBe(429);
  expect(asked).toEqual([signer.url]);
  expect((await post(signSns(signer, { Message }))).status).toBe(204); // an honest one is still taken
  expect(await events()).toHaveLength(1);

  const kept = () =>
    pool.query<{ reason: string; diagnosis: string }>(
      "select reason, diagnosis from ukemi.rejections order by id",
    );
  await until(async () => (await kept()).rowCount === 3, "the rejections are kept");
  const { rows } = await kept();
  expect(rows.map(({ reason }) => reason)).toEqual(["wrong_sender", "wrong_signature", "wrong_signature"]);
  expect(JSON.stringify([rows, server.lines()])).not.toContain("example.com");
});

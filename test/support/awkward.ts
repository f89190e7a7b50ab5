// A store whose content is hard to show: long names, wide characters, and text that would command a terminal.
import { createOperate } from "../../src/operate/operate.ts";
import { makeDead, register } from "./dead.ts";
import type { TestDatabase } from "./database.ts";
import { storeElsewhere } from "./work.ts";

/** Clears the screen, changes colours and the title, rings, and hides what follows. */
export const COMMANDS = "\u001B[2J\u001B[31m\u001B]0;owned\u0007\u0008\u009B8m\r\n\tbad\u202E";
/** What is to be read of it at any width. */
export const READABLE = "決済できません";

const LONG_HANDLER =
  "stripe/payment_intent.succeeded/写す-ledger-into-the-warehouse-of-the-finance-department";
const LONG_EVENT = `evt_${"3PqRsTuVwXyZ".repeat(6)}_last`;
const MANDATE = {
  actor: "cli:山田太郎 of the night shift",
  reason: `返金の前に ${COMMANDS} looked at 🧾 twice`,
};

/** Ids to show one thing of each kind. */
export interface AwkwardStore {
  readonly event: string;
  readonly job: string;
  readonly rejection: string;
  readonly operation: string;
}

/** Fills it: at least two rows of everything that can be listed. */
export async function fillAwkwardly(database: TestDatabase): Promise<AwkwardStore> {
  const { url, pool } = database;
  await register(pool, { name: LONG_HANDLER, pattern: "payment_intent.*" });
  await register(pool, {
    name: "stripe/charge.failed",
    pattern: "charge.failed",
    queue: "請求書-and-a-long-name-of-a-queue",
  });
  const refs = [
    { kind: "payment_intent", id: `pi_${"9".repeat(40)}` },
    { kind: "customer", id: "cus_日本" },
  ];
  const body = Buffer.from(
    JSON.stringify({
      id: LONG_EVENT,
      note: `支払い ${COMMANDS} ${"very long words ".repeat(20)}${"x".repeat(300)}`,
      emoji: "🏦✅",
    }),
  );
  await makeDead(database, [LONG_EVENT], {
    tenant: "株式会社テスト — organiser 🏦 with a long name",
    refs,
    body,
    errorClass: "StripeInvalidRequestError",
  });
  await makeDead(database, ["evt_2", "evt_3"], { errorClass: "TypeError", tenant: "acme" });
  await makeDead(database, ["evt_4"], { type: "charge.failed", errorClass: "E" });
  await pool.query("update ukemi.jobs set error_message = $1", [
    `${READABLE} 🏦 ${COMMANDS} ${"the card was declined ".repeat(10)}`,
  ]);
  await pool.query(
    "update ukemi.event_outcomes set error_message = $1, billing_id = 'bill_請求', office_id = 'office_1'",
    [`${READABLE} ${COMMANDS}`],
  );
  await pool.query("update ukemi.attempts set error_message = $1, error_stack = $2", [
    `${READABLE} ${COMMANDS}`,
    `Error: no\n    at charge (/app/${"deep/".repeat(30)}charge.ts:3:9)${COMMANDS}\n    at 決済 (/app/x.ts:1:1)`,
  ]);
  await storeElsewhere(url, ["evt_5", "evt_6"], { tenant: "acme" });
  await storeElsewhere(url, ["evt_7"], {
    type: "customer.subscription.trial_will_end.with.a.long.name",
    source: "stripe-of-the-other-account",
  });
  await fillRest(database);
  const operate = createOperate({ open: () => Promise.resolve(pool) });
  await operate.tokens.make(
    {
      name: `夜間バッチ ${COMMANDS} for the warehouse`,
      scope: "read",
      tenants: ["株式会社テスト", "acme", "初台"],
    },
    MANDATE,
  );
  const { rows: jobs } = await pool.query<{ id: string }>(
    "select j.id from ukemi.jobs j join ukemi.events e on e.id = j.event where e.event_id = $1",
    [LONG_EVENT],
  );
  const { rows: rejections } = await pool.query<{ id: string }>(
    "select id from ukemi.rejections order by id limit 1",
  );
  const { rows: operations } = await pool.query<{ id: string }>("select id from ukemi.operations");
  return { event: LONG_EVENT, job: jobs[0]!.id, rejection: rejections[0]!.id, operation: operations[0]!.id };
}

/** What no door makes without the time that it takes. */
async function fillRest({ pool }: TestDatabase): Promise<void> {
  await pool.query(
    `insert into ukemi.rejections (source, reason, diagnosis, address, request_id, headers, body_bytes, body_sample)
     values ('stripe', 'signature', $1, '2001:0db8:85a3:0000:0000:8a2e:0370:7334', 'request_1', $2, 1234, $3),
       ('stripe', 'too_large', 'larger than 1 MB', null, 'request_2', '{}', 9999999, '')`,
    [
      `署名が違います ${COMMANDS} ${"the secret of another endpoint, ".repeat(6)}`,
      JSON.stringify({ "user-agent": `Bot ${COMMANDS}`, "stripe-signature": "t=1,v1=".padEnd(200, "a") }),
      Buffer.from(`{"本文": "${COMMANDS}${"z".repeat(300)}"}`),
    ],
  );
  await pool.query(
    // not heard of for an hour: how long the tests take does not change who lives
    `insert into ukemi.workers (id, host, pid, version, handlers, queues, has_session, lease_ms, seen_at)
     values (gen_random_uuid(), 'ip-10-0-12-200.ap-northeast-1.compute.internal', 4194304, '0.1.0', $1, '{default,請求書-and-a-long-name-of-a-queue}', false, 30000, ukemi.now() - interval '1 hour'),
       (gen_random_uuid(), 'web-1', 7, '0.1.0', '{stripe/charge.failed}', '{default}', false, 30000, ukemi.now() - interval '1 hour')`,
    [[LONG_HANDLER, "stripe/charge.failed"]],
  );
  await pool.query(
    "insert into ukemi.queues (name, paused, reason) values ('default', true, $1) on conflict (name) do update set paused = true, reason = $1",
    [`台帳を復元中 ${COMMANDS} until the ledger is back, which takes the whole night`],
  );
  await pool.query(
    `insert into ukemi.event_hours (source, type, hour, received, success, failed, skipped, unrouted, last_received_at)
     select 'stripe', type, date_trunc('hour', ukemi.now()) - n * interval '1 hour', 1000 * n, 900 * n, 10 * n, 0, 0, ukemi.now() - n * interval '1 hour'
     from generate_series(1, 3) n, unnest('{payment_intent.succeeded,customer.subscription.trial_will_end.with.a.long.name}'::text[]) as type`,
  );
  await pool.query(
    `insert into ukemi.anomalies (hour, source, type, kind, received, expected_low, expected_high, ended_at)
     values (date_trunc('hour', ukemi.now()), 'stripe', 'payment_intent.succeeded', 'silent', 0, 900, 1100, null),
       (date_trunc('hour', ukemi.now()), 'stripe-of-the-other-account', 'customer.subscription.trial_will_end.with.a.long.name', 'high', 123456, 900, 1100, ukemi.now())`,
  );
  await pool.query(
    `with made as (
       insert into ukemi.operations (id, name, kind, reason, actor, selection, state, rate_per_second, canary, failure_limit,
         stage, stage_left, stop_reason, total, waiting, dead, done, created_at, started_at, running_since, progressed_at, stopped_at, next_at, paced_at)
       select gen_random_uuid(), $1, 'replay', $2, 'token:夜間バッチ', '{"filter": {"error_class": "TypeError", "since": "2026-11-15T00:00:00Z"}}',
         'stopped', 5, true, 0.1, 'ten', 8, $3, 4, 2, 1, 1, now, now, now, now, now, now, now
       from ukemi.now() as now
       returning id
     )
     insert into ukemi.operation_items (operation, position, job, state, error_class, message, changed_at)
     select made.id, row_number() over (order by j.id), j.id, case row_number() over (order by j.id) when 1 then 'dead' when 2 then 'done' else 'waiting' end,
       'TypeError', $3, ukemi.now()
     from made, ukemi.jobs j where j.state = 'dead'`,
    [
      `十一月の再処理 ${COMMANDS} after the fix of the ledger`,
      `直した ${COMMANDS}`,
      `${READABLE} 1 of 2 died again ${COMMANDS}, which is more than the limit allows`,
    ],
  );
  await pool.query(
    "insert into ukemi.data_keys (id, wrapped, wrapped_by) values ('key_2026_11', 'x', 'master-of-the-year-2026'), ('key_2026_10', 'y', '主鍵')",
  );
  await pool.query(
    `insert into ukemi.audit_log (actor, role, action, target, tenant, details)
     values ($1, 'operator', 'job.replayed', '1', 'acme', jsonb_build_object('reason', $2::text)), ('cli:jane', 'operator', 'queue.paused', 'default', null, '{"reason": "x"}')`,
    [MANDATE.actor, MANDATE.reason],
  );
  // old enough to go
  await pool.query(
    `insert into ukemi.workers (id, host, pid, version, handlers, queues, has_session, lease_ms, started_at, seen_at, ended_at, end_reason)
     values (gen_random_uuid(), 'web-0', 1, '0.0.1', '{}', '{}', false, 30000, '2025-01-01', '2025-01-02', '2025-01-02', 'stopped')`,
  );
}

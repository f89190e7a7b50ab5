// What Prometheus is told of the ledger: what waits, what needs a person, which destinations take nothing, how calls ended.
import { expect, onTestFinished, test } from "vitest";
import { readLedger } from "../../src/storage/effect-backlog.ts";
import type { Pool } from "../../src/storage/postgres.ts";
import { createDatabase } from "../support/database.ts";
import { MANDATE } from "../support/dead.ts";
import { startPeer, type PeerAnswer } from "../support/http-peer.ts";
import { RECEIPT, startMailWorld } from "../support/mail-world.ts";
import { until } from "../support/until.ts";

const TOKEN = "Bearer canarytoken88";
const ADDRESS = "canary.jane@example.net";

/** `/later` is told so once, `/lost` gets no answer, `/closed` refuses whoever asks. */
function answerBy(): PeerAnswer {
  const told = new Set<string>();
  return (response, request) => {
    const path = request.url ?? "";
    if (path === "/lost") return request.socket.destroy();
    const status = { "/closed": 401, "/refused": 404, "/later": told.has(path) ? 200 : 503 }[path] ?? 200;
    told.add(path);
    response.writeHead(status).end();
  };
}

async function startWorld() {
  const [named, unnamed] = [await startPeer(answerBy()), await startPeer(answerBy())];
  onTestFinished(async () => void (await Promise.all([named.stop(), unnamed.stop()])));
  const world = await startMailWorld(
    {},
    {
      http: {
        allow: [named.url, unnamed.url],
        tries: 3,
        destinations: { [named.url]: { headers: { authorization: TOKEN } } },
      },
    },
  );
  const { ukemi } = world;
  const http = (url: string, more = {}) => ukemi.effects.http(null, { url, body: "x", dedupe: url, ...more });
  const mail = () => ukemi.effects.email(null, "receipt", { to: ADDRESS, data: RECEIPT, dedupe: "1" });
  const text = () => ukemi.metrics.registry.metrics();
  /** Gauges are read from the database every few seconds. */
  const shows = (...lines: readonly string[]) =>
    until(
      async () => {
        const now = (await text()).split("\n");
        return lines.every((line) => now.includes(line));
      },
      `the metrics to show ${lines.join(", ")}`,
      30_000,
    );
  return { ...world, named, unnamed, http, mail, text, shows };
}

const effects = (kind: string, destination: string, state: string) =>
  `ukemi_effects{kind="${kind}",destination="${destination}",state="${state}"}`;
const calls = (kind: string, outcome: string) =>
  `ukemi_effect_calls_total{kind="${kind}",outcome="${outcome}"}`;

test("shows what waits while nobody works, by destinations of the settings and all others together", async () => {
  const { named, unnamed, http, mail, text, shows } = await startWorld();
  await mail();
  const first = await http(`${named.url}/a`);
  await http(`${named.url}/b`);
  await http(`${named.url}/c`, { after: first }); // waits for the other, not for us
  await http(`${unnamed.url}/secret-path`);
  await shows(
    `${effects("email", "smtp", "waiting")} 1`,
    `${effects("http", named.url, "waiting")} 2`,
    `${effects("http", "other", "waiting")} 1`,
    `${effects("http", "other", "held")} 0`,
    `${effects("call", "call", "uncertain")} 0`,
    `ukemi_effects_oldest_waiting_seconds{kind="call",destination="call"} 0`,
    `ukemi_destinations_paused{destination="smtp"} 0`,
    `ukemi_destinations_open{destination="${named.url}"} 0`,
  );
  const all = await text();
  const oldest = /ukemi_effects_oldest_waiting_seconds\{kind="http",destination="other"\} (\S+)/.exec(all);
  expect(Number(oldest![1])).toBeGreaterThan(0);
  for (const hidden of [unnamed.url, "secret-path", ADDRESS, "canary"]) expect(all).not.toContain(hidden);
});

test("counts calls by how they ended, and shows what needs a person and which destinations take nothing", async () => {
  const { ukemi, pool, named, unnamed, http, mail, text, shows } = await startWorld();
  await mail();
  // as a process leaves it that died in the middle of the call
  await pool.query("update ukemi.effects set state = 'sending', attempt = 1");
  for (const path of ["/ok", "/later", "/refused", "/lost"]) await http(`${unnamed.url}${path}`);
  await http(`${named.url}/closed`);
  await ukemi.work();
  await ukemi.effects.callNow("now", () => Promise.resolve(1));
  await expect(ukemi.effects.callNow("lost", () => Promise.reject(new Error("lost")))).rejects.toThrow(
    "lost",
  );
  await shows(
    `${calls("email", "uncertain")} 1`,
    `${calls("email", "done")} 1`,
    `${calls("http", "done")} 2`,
    `${calls("http", "again")} 1`,
    `${calls("http", "failed")} 1`,
    `${calls("http", "uncertain")} 1`,
    `${calls("http", "blocked")} 1`,
    `${calls("call", "done")} 1`,
    `${calls("call", "uncertain")} 1`,
  );
  await ukemi.operate.destinations.pause(unnamed.url, 10, MANDATE);
  await shows(
    `${effects("http", "other", "held")} 1`,
    `${effects("http", "other", "waiting")} 0`,
    `${effects("http", named.url, "waiting")} 1`,
    `${effects("email", "smtp", "waiting")} 0`,
    `${effects("call", "call", "uncertain")} 1`,
    `ukemi_destinations_open{destination="${named.url}"} 1`,
    `ukemi_destinations_paused{destination="${named.url}"} 0`,
    `ukemi_destinations_paused{destination="other"} 1`,
  );
  const all = await text();
  for (const hidden of [unnamed.url, ADDRESS, "canary"]) expect(all).not.toContain(hidden);
});

/** Rows as they lie there, without anybody who works on them. */
async function fill(pool: Pool, state: string, rows: number, job: number | null = null): Promise<void> {
  await pool.query(
    `insert into ukemi.effects (id, kind, dedupe_key, state, target, intent, destination, on_uncertain, max_attempts, job,
       planned_at, ended_at)
     select gen_random_uuid(), 'http', $1 || n || coalesce($3::text, ''), $1, 't', '{}', 'https://p' || n || '.example.com',
       'hold', 1, $3::bigint, ukemi.now() - interval '1 minute', case when $1 in ('done', 'failed') then ukemi.now() end
     from generate_series(1, $2::int) as n`,
    [state, rows, job],
  );
}

test("reads nothing of what has ended, and takes a call that nobody makes any more for uncertain", async () => {
  const { pool } = await createDatabase();
  await fill(pool, "done", 20_000);
  await fill(pool, "failed", 3);
  await fill(pool, "held", 4);
  await fill(pool, "uncertain", 2);
  await fill(pool, "sending", 1, 99);
  await fill(pool, "planned", 5);
  await fill(pool, "planned", 6, 98);
  await pool.query("analyze ukemi.effects");
  const plans: string[] = [];
  const explaining = {
    query: async (text: string, values: unknown[]) => {
      const { rows } = await pool.query<{ "QUERY PLAN": string }>(`explain ${text}`, values);
      plans.push(rows.map((row) => row["QUERY PLAN"]).join("\n"));
      return pool.query(text, values);
    },
  } as unknown as Pool;
  const known = [{ kind: "http", destination: "https://p1.example.com" }] as const;
  const { effects: told } = await readLedger(explaining, known);
  const counts = told.map(({ destination, waiting, uncertain, held }) => [
    destination,
    waiting,
    uncertain,
    held,
  ]);
  expect(counts).toEqual([
    ["https://p1.example.com", 1, 2, 1],
    ["other", 5, 1, 3],
  ]);
  expect(told[0]!.oldest_waiting_seconds).toBeGreaterThanOrEqual(60);
  expect(plans[0]).toContain("effects_open");
  expect(plans[0]).not.toMatch(/Seq Scan on effects/);
});

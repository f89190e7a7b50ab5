// A thousand mails to a server that fails one step in five for a while: C11's figures, and every mail accounted for.
import { expect, test } from "vitest";
import { RECEIPT, startMailWorld } from "../support/mail-world.ts";
import type { InboxAct, InboxPlace } from "../support/smtp-inbox.ts";
import { untilDrained } from "../support/work.ts";

const MAILS = 1000;
const PLACES: readonly InboxPlace[] = ["connect", "mail", "rcpt", "data", "middle", "end"];
const PER_SECOND = 50;

test("of a thousand mails with a fifth of transient failures, 98 % are sent and no rate is exceeded", async () => {
  const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 1e9));
  console.log(`SEED=${seed}`);
  let state = seed;
  const random = () => (state = (state * 1_103_515_245 + 12_345) % 2_147_483_648) / 2_147_483_648;
  const acts: readonly InboxAct[] = [
    { code: 421, text: "too busy" },
    { code: 451, text: "local error" },
    { drop: true },
  ];
  const starts: number[] = [];
  const failing = new Map<number, InboxPlace | undefined>();
  // each session decides at its beginning whether, and where, it fails: a fifth of all mails meets a failure
  const world = await startMailWorld(
    {
      onStep({ at, connection }) {
        if (at === "mail") starts.push(performance.now());
        if (at === "mail" || at === "connect") {
          failing.set(connection, random() < 0.2 ? PLACES[Math.floor(random() * PLACES.length)] : undefined);
        }
        if (failing.get(connection) !== at) return undefined;
        failing.delete(connection);
        return acts[Math.floor(random() * acts.length)];
      },
    },
    { mailPerSecond: PER_SECOND, mailGapMs: 0 },
  );
  const { ukemi, pool, inbox } = world;
  const planned = await Promise.all(
    Array.from({ length: MAILS }, (_, n) =>
      ukemi.effects.email(null, "receipt", { to: `p${n}@example.net`, data: RECEIPT, dedupe: `${n}` }),
    ),
  );
  await ukemi.work();
  await untilDrained(pool, 110_000);

  const { rows } = await pool.query<{ id: string; state: string; attempt: number; uncertainties: number }>(
    "select id, state, attempt, uncertainties from ukemi.effects",
  );
  const done = rows.filter(({ state }) => state === "done");
  const stumbled = rows.filter(({ attempt }) => attempt > 1);
  const recovered = stumbled.filter(({ state }) => state === "done");
  const busiest = Math.max(
    ...starts.map((from) => starts.filter((at) => at >= from && at < from + 1000).length),
  );
  console.log(
    `${done.length} of ${MAILS} sent, ${stumbled.length} failed at first, ${recovered.length} of them recovered; at most ${busiest} in a second`,
  );
  expect(rows).toHaveLength(MAILS);
  expect(new Set(rows.map(({ id }) => id))).toEqual(new Set(planned.map(({ id }) => id)));
  expect(done.length / MAILS).toBeGreaterThanOrEqual(0.98);
  expect(stumbled.length).toBeGreaterThan(50);
  expect(recovered.length / stumbled.length).toBeGreaterThanOrEqual(0.7);
  expect(busiest).toBeLessThanOrEqual(PER_SECOND);
  for (const { id, state, uncertainties } of rows) {
    const seen = inbox.mails.filter(({ headers }) => headers["x-ukemi-effect"] === id).length;
    if (state === "done") expect(seen).toBeGreaterThanOrEqual(1);
    expect(seen).toBeLessThanOrEqual(1 + uncertainties);
  }
});

// Processes that die while they carry out effects: judged by what the peers saw, each intended act happens once in effect.
import { expect, test } from "vitest";
import { CRASH_POINTS } from "../../src/crash-point.ts";
import type { Pool } from "../../src/storage/postgres.ts";
import { startEffectWorld, type EffectWorld } from "../support/effect-world.ts";
import { storeElsewhere, untilDrained } from "../support/work.ts";

const EVENTS = 6;
const ids = Array.from({ length: EVENTS }, (_, n) => `evt_${n}`);

interface EffectRow {
  readonly id: string;
  readonly kind: string;
  readonly dedupe_key: string;
  readonly state: string;
  readonly uncertainties: number;
}

async function readEffects(pool: Pool): Promise<EffectRow[]> {
  const { rows } = await pool.query<EffectRow>("select * from ukemi.effects order by id");
  return rows;
}

/** Everything intended is there once; what was repeated is marked, and only where nobody could know better. */
async function expectOnceInEffect({ pool, inbox, peer, meter }: EffectWorld): Promise<void> {
  const effects = await readEffects(pool);
  expect(effects).toHaveLength(4 * EVENTS);
  const doubted = effects.filter(({ uncertainties }) => uncertainties > 0);
  console.log(
    `${inbox.mails.length} mails, ${peer.seen.length} calls, ${meter.calls.length} calls to the meter; ${doubted.length} effects were uncertain`,
  );
  for (const { id, kind, dedupe_key: key, state, uncertainties } of effects) {
    const seen =
      kind === "email"
        ? inbox.mails.filter(({ headers }) => headers["x-ukemi-effect"] === id).length
        : kind === "http"
          ? peer.seen.filter(({ key: sent }) => sent === id).length
          : [...meter.records.values()].filter((record) => record.source_event_id === key).length;
    const what = `${kind} ${key}, ${state}, seen ${seen} times, uncertain ${uncertainties} times`;
    if (key.startsWith("blind")) {
      expect(["done", "held"], what).toContain(state);
      expect(seen, what).toBeLessThanOrEqual(1);
      expect(state === "held", what).toBe(uncertainties > 0);
      if (state === "done") expect(seen, what).toBe(1);
      continue;
    }
    expect(state, what).toBe("done");
    expect(seen, what).toBeGreaterThanOrEqual(1);
    if (kind === "usage") expect(seen, what).toBe(1);
    else expect(seen, what).toBeLessThanOrEqual(1 + uncertainties);
  }
  expect(peer.seen.filter(({ path }) => path === "/keyed").every(({ key }) => key !== undefined)).toBe(true);
  const sum = [...meter.records.values()].reduce((all, record) => all + Number(record.amount), 0);
  expect(sum, "what was used").toBe(3 * EVENTS);
}

const PASSES = CRASH_POINTS.filter((point) => point.startsWith("effect.")).flatMap((point) =>
  [1, 3, 9].map((pass) => ({ point, pass })),
);

test.each(PASSES)(
  "a crash at $point, pass $pass: each act happens once in effect",
  async ({ point, pass }) => {
    const world = await startEffectWorld();
    await storeElsewhere(world.url, ids);
    const dying = world.start({ UKEMI_CRASH_AT: `${point}:${pass}` });
    await dying.ended;
    expect(dying.child.signalCode, dying.output()).toBe("SIGKILL");
    const next = world.start();
    await untilDrained(world.pool, 120_000);
    await expectOnceInEffect(world);
    await next.stop();
  },
);

test("processes that are killed again and again, and one that stays", async () => {
  const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 1e9));
  console.log(`SEED=${seed}`);
  let state = seed;
  const random = () => (state = (state * 1_103_515_245 + 12_345) % 2_147_483_648) / 2_147_483_648;
  const points = CRASH_POINTS.filter((point) => point.startsWith("effect."));
  const world = await startEffectWorld();
  await storeElsewhere(world.url, ids);
  for (let round = 0; round < 3; round += 1) {
    const at = `${points[Math.floor(random() * points.length)]}:${1 + Math.floor(random() * 4)}`;
    const dying = world.start({ UKEMI_CRASH_AT: at });
    const drained = untilDrained(world.pool, 120_000);
    await Promise.race([dying.ended, drained]);
    dying.child.kill("SIGKILL");
    await dying.ended;
    void drained.catch(() => {});
  }
  world.start();
  await untilDrained(world.pool, 120_000);
  await expectOnceInEffect(world);
});

test("a stop in the middle of calls loses nothing, repeats nothing unmarked, and burns no try", async () => {
  const world = await startEffectWorld();
  await storeElsewhere(world.url, ids);
  const first = world.start();
  await world.inbox.reached("mail");
  await first.stop();
  world.start();
  await untilDrained(world.pool, 120_000);
  await expectOnceInEffect(world);
});

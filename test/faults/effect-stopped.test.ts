// A process that is stopped between the commit of its attempt and its first byte, and goes on when its lease is gone: judged by
// what the peers saw, it sends nothing any more, and nothing is lost.
import { expect, test } from "vitest";
import { RECEIPT } from "../support/mail-world.ts";
import { startEffectWorld, type EffectWorld } from "../support/effect-world.ts";
import { until } from "../support/until.ts";
import { untilDrained } from "../support/work.ts";

/** What is intended, and what becomes of it where nobody knows whether the first call was heard. */
const ACTS = {
  "a mail that may be repeated": {
    found: "done",
    plan: ({ ukemi }: EffectWorld) => ukemi.effects.email(null, "receipt", MAIL),
  },
  "a mail that may not": {
    found: "held",
    plan: ({ ukemi }: EffectWorld) => ukemi.effects.email(null, "receipt", { ...MAIL, onUncertain: "hold" }),
  },
  "a call whose key the peer knows again": {
    found: "done",
    plan: ({ ukemi, peer }: EffectWorld) =>
      ukemi.effects.http(null, { url: `${peer.url}/keyed`, dedupe: "1", idempotent: true }),
  },
  "a call whose key it does not know": {
    found: "held",
    plan: ({ ukemi, peer }: EffectWorld) =>
      ukemi.effects.http(null, { url: `${peer.url}/blind`, dedupe: "1" }),
  },
} as const;

const MAIL = { to: "jane@example.net", data: RECEIPT, dedupe: "1" };

/** Right behind the commit; right before the first byte, and for calls also before there is a connection for it. */
const CASES = (Object.keys(ACTS) as (keyof typeof ACTS)[]).flatMap((act) =>
  ["effect.begun", "effect.before_call", ...(act.startsWith("a call") ? ["effect.before_call:2"] : [])].map(
    (at) => ({ act, at }),
  ),
);

/** How often the peers saw it, by their own logs. */
const seenBy = ({ inbox, peer }: EffectWorld, id: string) =>
  inbox.mails.filter(({ headers }) => headers["x-ukemi-effect"] === id).length +
  peer.seen.filter(({ key }) => key === id).length;

/** How often the peers heard the first word of it. */
const begunAt = ({ inbox, peer }: EffectWorld) =>
  inbox.steps.filter(({ at }) => at === "mail").length + peer.seen.length;

async function readEffect({ pool }: EffectWorld) {
  const { rows } = await pool.query<{ state: string; attempt: number; uncertainties: number }>(
    "select state, attempt, uncertainties from ukemi.effects",
  );
  return rows[0]!;
}

test.each(CASES)("$act, stopped at $at past its lease, is sent once", async ({ act, at }) => {
  const world = await startEffectWorld({ app: { leaseMs: 1500 } });
  const { plan, found } = ACTS[act];
  const { id } = await plan(world);
  const sleeping = world.start({ UKEMI_PAUSE_AT: at });
  await sleeping.says("paused at ");
  expect(await readEffect(world)).toEqual({ state: "sending", attempt: 1, uncertainties: 0 });
  const living = world.start();
  await until(async () => (await readEffect(world)).state === found, "the other process to find it");
  expect(seenBy(world, id)).toBe(found === "done" ? 1 : 0);

  sleeping.child.kill("SIGCONT");
  await sleeping.says('"outcome":"lost"');
  await untilDrained(world.pool);
  await until(async () => (await readEffect(world)).state === "done", "nothing to be lost", 20_000);
  await Promise.all([sleeping.stop(), living.stop()]);
  expect(seenBy(world, id), "by the peers' own logs").toBe(1);
  expect(begunAt(world), "not even begun a second time").toBe(1);
  // what they saw was the second call; that the first was not made is known where nobody had to go on without knowing
  const uncertainties = found === "done" ? 1 : 0;
  expect(await readEffect(world)).toEqual({ state: "done", attempt: 2, uncertainties });
  const [job] = await untilDrained(world.pool);
  expect(job).toMatchObject({ state: "done", recoveries: 1 });
});

// A worker behind a transaction pooler has no session that the database could see die: its lease alone tells.
import { expect, test } from "vitest";
import { createDatabase } from "../support/database.ts";
import { poolerProgram, startPooler } from "../support/pgbouncer.ts";
import { until } from "../support/until.ts";
import { storeElsewhere, untilDrained } from "../support/work.ts";
import {
  createWorkplace,
  eventIds,
  expectAllDone,
  expectWrittenOnce,
  recoveriesOf,
} from "../support/worker-process.ts";

test.skipIf(poolerProgram === undefined)(
  "runs the jobs of a worker killed behind pgbouncer elsewhere when its lease has lapsed, exactly once",
  async () => {
    const place = await createWorkplace(await createDatabase());
    const { url, pool } = place;
    const env = { DATABASE_URL: await startPooler(url) };
    // the pooler has two connections to the server: one handler writes, the others wait for their turn
    const ukemi = { leaseMs: 3000, handlerConnectionsMax: 1 };
    const held = eventIds(5, () => "_held");
    await storeElsewhere(url, held); // before it starts: nobody tells it of them
    const dying = await place.start({ ukemi, env, gate: true });
    const noted = (wanted: string) => place.notes().filter(({ what }) => what === wanted).length;
    await until(() => noted("begin") === 5 && noted("wrote") === 1, "its handlers to stand where they die");
    await dying.kill("SIGKILL");
    const killed = await pool.query<{ id: string; has_session: boolean }>(
      "select id, has_session from ukemi.workers",
    );
    expect(killed.rows.map((row) => row.has_session)).toEqual([false]);
    const leases = await pool.query<{ until: string }>(
      "select max(lease_until)::text as until from ukemi.jobs where state = 'running'",
    );

    const living = await place.start({ ukemi, env });
    const jobs = await untilDrained(pool, 60_000);
    expect(recoveriesOf(jobs)).toBe("1: 5");
    await expectAllDone(pool, held);
    await expectWrittenOnce(place, held);
    const writers = await pool.query("select distinct pid from written");
    expect(writers.rows).toEqual([{ pid: living.pid }]);

    const crashes = await pool.query(
      `select worker, count(*)::int as jobs, bool_and(ended_at >= $1::timestamptz) as lapsed
       from ukemi.attempts
       where outcome = 'crashed'
       group by worker`,
      [leases.rows[0]!.until],
    );
    expect(crashes.rows).toEqual([{ worker: killed.rows[0]!.id, jobs: 5, lapsed: true }]);
    const reason = async () =>
      (
        await pool.query<{ end_reason: string | null }>(
          "select end_reason from ukemi.workers where id = $1",
          [killed.rows[0]!.id],
        )
      ).rows[0]!.end_reason;
    await until(async () => (await reason()) !== null, "the dead worker's row to end");
    expect(await reason()).toBe("lost");
    expect(await living.kill("SIGTERM")).toBe(0);
  },
);

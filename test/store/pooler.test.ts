// Behind a transaction pooler: no session settings that leak, no named statements that clash, the same durability.
import { expect, test } from "vitest";
import { runCli } from "../support/cli.ts";
import { createDatabase } from "../support/database.ts";
import { deliver } from "../support/deliver.ts";
import { startTestServer } from "../support/in-process.ts";
import { watchDurability } from "../support/store.ts";
import { poolerProgram, startPooler } from "../support/pgbouncer.ts";

// `npm test` fetches pgbouncer from Debian and says so when it cannot; continuous integration then fails
test.skipIf(poolerProgram === undefined)(
  "receives, migrates and diagnoses through pgbouncer in transaction mode",
  async () => {
    const { url, pool, name } = await createDatabase({ empty: true });
    await pool.query(`alter database ${name} set synchronous_commit = off`);
    const through = await startPooler(url);
    const server = await startTestServer({ database: through, migrate: true, lanes: 4 });
    const seen = await watchDurability(pool);
    const told = await Promise.all(
      Array.from({ length: 300 }, (_, index) => deliver(server.url, `evt_${index % 200}`)),
    );
    expect(told.every((answer) => answer.status === 204)).toBe(true);
    expect(told.filter((answer) => !answer.duplicate)).toHaveLength(200);
    expect(await seen()).toEqual([{ setting: "on", commits: 200 }]);
    const warned = await runCli(["doctor"], { DATABASE_URL: through });
    expect(warned.stdout).toMatch(/warn +pooler .*transaction pooler[^]*UKEMI_DIRECT_URL/);
    const told2 = await runCli(["doctor"], { DATABASE_URL: through, UKEMI_DIRECT_URL: url });
    expect(told2.stdout).toMatch(/ok +pooler/);
  },
);

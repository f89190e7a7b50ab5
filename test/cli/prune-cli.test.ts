// `ukemi prune`: by the limits that the application has, wherever they stand; a guess would lose data.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { runCli } from "../support/cli.ts";
import { createDatabase } from "../support/database.ts";
import { readAudit } from "../support/dead.ts";
import { storeDirectly } from "../support/store.ts";

async function start(config: string) {
  const { url, pool } = await createDatabase();
  const cwd = await mkdtemp(join(tmpdir(), "ukemi-prune-"));
  onTestFinished(() => rm(cwd, { recursive: true }));
  await writeFile(join(cwd, "ukemi.config.mjs"), config);
  const prune = (...flags: string[]) => runCli(["prune", ...flags], { DATABASE_URL: url }, { cwd });
  return { url, pool, prune };
}

test("keeps what the configuration file says, also where the database is given by the environment", async () => {
  const { url, pool, prune } = await start("export default { sources: {}, bodyDays: 0, jobDays: 400 };");
  await storeDirectly(url, ["evt_1"]);
  await pool.query("update ukemi.clock set shift = interval '200 days'");
  const preview = JSON.parse((await prune("--dry-run", "--json")).stdout) as { preview: object };
  expect(preview.preview).toMatchObject({ body_days: 0, job_days: 400, months: [] });
  expect(await prune("--reason", "x", "--yes")).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("Nothing is old enough to go."),
  });
  expect((await pool.query("select from ukemi.event_bodies")).rowCount).toBe(1);
  // a flag wins over the file
  expect((await prune("--dry-run", "--body-days", "90")).stdout).toContain("bodies 90 days");
});

test("does not guess where the file is broken", async () => {
  const { prune } = await start("export default { sources: {}, bodyDays: 'ninety' };");
  const { code, stderr } = await prune("--dry-run");
  expect(stderr).toContain("bodyDays");
  expect(code).toBe(2);
});

test("shows what would go, lets it go, and is audited", async () => {
  const { url, pool, prune } = await start("export default { sources: {} };");
  await storeDirectly(url, ["evt_1", "evt_2"]);
  await pool.query("update ukemi.clock set shift = interval '200 days'");
  const dry = await prune("--dry-run");
  expect(dry.stdout).toMatch(/^month +bodies +must stay +MB\n\d{4}-\d\d +(?:about )?2 +0 /m);
  expect((await pool.query("select from ukemi.event_bodies")).rowCount).toBe(2);
  expect(await prune("--reason", "nobody said yes")).toMatchObject({ code: 1, stdout: "" });
  expect((await pool.query("select from ukemi.event_bodies")).rowCount).toBe(2);
  const done = await prune("--reason", "a small disk", "--yes");
  expect(done).toMatchObject({ code: 0, stdout: expect.stringContaining("Pruned 2 bodies (") });
  expect((await pool.query("select from ukemi.event_bodies")).rowCount).toBe(0);
  expect((await pool.query("select from ukemi.events")).rowCount).toBe(2);
  expect(await readAudit(pool)).toEqual(
    expect.arrayContaining([
      expect.objectContaining({
        action: "retention.pruned",
        actor: expect.stringMatching(/^cli:/),
        role: "operator",
        details: expect.objectContaining({ reason: "a small disk" }),
      }),
    ]),
  );
});

// `ukemi bodies`: what an erasure, a sealing and a re-wrap would do is said before, with where it would be done.
import { expect, test } from "vitest";
import { runCli } from "../support/cli.ts";
import { createDatabase } from "../support/database.ts";
import { makeDead, readAudit, register } from "../support/dead.ts";
import { storeDirectly } from "../support/store.ts";

const master = (name: string, byte: number) => `${name}:${Buffer.alloc(32, byte).toString("base64")}`;

async function start() {
  const store = await createDatabase();
  const bodies = (args: readonly string[], env: Record<string, string> = {}) =>
    runCli(["bodies", ...args], { DATABASE_URL: store.url, ...env });
  return { ...store, bodies };
}

test("says that an erasure would be refused and how it would not, and can be asked for again", async () => {
  const store = await start();
  const { pool, bodies, name } = store;
  await register(pool);
  await makeDead(store, ["evt_1"], { refs: [{ kind: "customer", id: "cus_123456" }] });
  const erase = ["erase", "--ref", "cus_123456"];
  const dry = await bodies([...erase, "--dry-run"]);
  expect(dry).toMatchObject({ code: 0, stderr: "" });
  expect(dry.stdout).toContain(`On the database ${name} at `);
  expect(dry.stdout).toContain("1 event, 1 of them with a body, would be erased.");
  expect(dry.stdout).toContain("It would be refused: let them end, or add --include-unfinished.");
  // as a socket is often named: without a host, and the password is not shown
  const socket = store.url.replace("@localhost/", "@/");
  expect(socket).not.toBe(store.url);
  const named = await bodies([...erase, "--dry-run"], { DATABASE_URL: socket });
  expect(named).toEqual(dry);
  expect(named.output).not.toContain(new URL(store.url).password);
  const refused = await bodies([...erase, "--reason", "asked for", "--yes"]);
  expect(refused).toMatchObject({ code: 1, stdout: "" });
  expect(refused.stderr).toContain("still need what would be erased");
  const all = [...erase, "--include-unfinished"];
  expect((await bodies([...all, "--dry-run"])).stdout).not.toContain("refused:");
  expect(await bodies([...all, "--reason", "asked for", "--yes"])).toMatchObject({
    code: 0,
    stdout: "Erased 1 bodies of 1 events.\n",
  });
  // an error has taken something from the body once more
  await pool.query("update ukemi.jobs set error_message = 'no card for jane@example.com'");
  const again = await bodies([...all, "--reason", "asked for", "--yes"]);
  expect(again).toMatchObject({ code: 0, stdout: "Erased 0 bodies of 0 events.\n" });
  expect(again.stderr).toContain("all were erased before");
  expect((await pool.query("select error_message from ukemi.jobs")).rows).toEqual([
    { error_message: "erased" },
  ]);
  expect((await readAudit(pool)).filter(({ action }) => action === "bodies.erased")).toHaveLength(2);
}, 120_000);

test("counts what a sealing and a re-wrap would do, and says that they ask no server", async () => {
  const { url, pool, bodies } = await start();
  await storeDirectly(url, ["evt_1", "evt_2"]);
  const env = { UKEMI_BODY_KEYS: master("a", 7), UKEMI_URL: "http://127.0.0.1:9" };
  const dry = await bodies(["seal", "--dry-run"], env);
  expect(dry).toMatchObject({ code: 0, stdout: expect.stringContaining("2 bodies, 0 effects") });
  expect(dry.stderr).toContain("UKEMI_URL is not used");
  expect((await pool.query("select from ukemi.event_bodies where key_id is not null")).rowCount).toBe(0);
  expect(await bodies(["seal", "--reason", "x", "--yes"], env)).toMatchObject({
    code: 0,
    stdout: "Sealed 2 bodies, 0 effects and 0 addresses that get no mail.\n",
  });
  const sealed = await bodies(["seal", "--dry-run"], env);
  expect(sealed.stdout).toContain("Everything is sealed already.");

  const both = { UKEMI_BODY_KEYS: `${master("b", 8)},${master("a", 7)}` };
  const rewrap = await bodies(["rewrap", "--dry-run"], both);
  expect(rewrap.stdout).toContain("1 of 1 data keys would be wrapped anew, under b.");
  expect(rewrap.stderr).toBe("");
  const wrong = await bodies(["rewrap", "--dry-run"], { UKEMI_BODY_KEYS: master("b", 8) });
  expect(wrong).toMatchObject({ code: 1, stderr: expect.stringContaining('no key named "a"') });
  expect((await bodies(["rewrap", "--reason", "x", "--yes"], both)).code).toBe(0);
  expect((await bodies(["rewrap", "--dry-run"], both)).stdout).toContain("b opens all 1 data keys already.");
}, 120_000);

// The schema: made by numbered files, the same everywhere, by an owner without special rights, from many processes at once.
import { readFile, writeFile } from "node:fs/promises";
import { expect, test } from "vitest";
import {
  migrate,
  readMigrations,
  readSchema,
  requireSchema,
  type Migration,
} from "../../src/storage/migrate.ts";
import { migrateStore, openStore } from "../../src/storage/open.ts";
import { openPool } from "../../src/storage/postgres.ts";
import { DEFAULTS } from "../../src/options.ts";
import { asAdmin, createDatabase } from "../support/database.ts";
import { dumpSchema } from "../support/schema-dump.ts";
import { until } from "../support/until.ts";
import { withUser } from "../support/url.ts";

const SCHEMA = new URL("../schema.sql", import.meta.url);

/** A migration of a version that does not exist yet. */
function future(version: number, compatibleWith: number): Migration {
  const sql = `create table ukemi.future_${version} (id integer)`;
  return { version, name: `future_${version}`, sql, checksum: `checksum ${version}`, compatibleWith };
}

test("gives the schema that is checked in", async () => {
  const { url, pool } = await createDatabase({ empty: true }); // the template has checks that only tests need
  await migrateStore(url);
  const dump = await dumpSchema(pool);
  if (process.env.UPDATE_SCHEMA) await writeFile(SCHEMA, dump);
  expect(dump, "run UPDATE_SCHEMA=1 npx vitest run test/store/migrations").toBe(
    await readFile(SCHEMA, "utf8"),
  );
});

test("applies each migration once when eight processes start together", async () => {
  const { url, pool } = await createDatabase({ empty: true });
  const applied: number[] = [];
  const pools = Array.from({ length: 8 }, () => openPool(url, { max: 1 }));
  const known = await readMigrations();
  await Promise.all(
    pools.map((each) => migrate(each, known, (migration) => applied.push(migration.version))),
  );
  await Promise.all(pools.map((each) => each.end()));
  expect(applied).toEqual(known.map((migration) => migration.version));
  expect((await readSchema(pool)).version).toBe(known.at(-1)!.version);
});

test("needs nothing but an owner who may neither create roles nor databases", async () => {
  const { url, name } = await createDatabase({ empty: true });
  const role = `${name}_owner`;
  await asAdmin(async (admin) => {
    await admin.query(`create role ${role} login password 'pw' nosuperuser nocreaterole nocreatedb`);
    await admin.query(`alter database ${name} owner to ${role}`);
  });
  const ownerUrl = withUser(url, role, "pw");
  try {
    const store = await openStore({ ...DEFAULTS, database: ownerUrl, migrate: true });
    const { rows } = await store.pool.query(
      "select current_user as who, ukemi.make_body_months(12) > 0 as made",
    );
    expect(rows).toEqual([{ who: role, made: true }]);
    await store.close();
  } finally {
    await asAdmin(async (admin) => {
      await admin.query(`drop database ${name} with (force)`);
      await admin.query(`drop role ${role}`);
    });
  }
});

test("refuses to run on a database without the schema, and says how to make it", async () => {
  const { url } = await createDatabase({ empty: true });
  await expect(openStore({ ...DEFAULTS, database: url })).rejects.toMatchObject({
    code: "schema_missing",
    remedy: expect.stringContaining("ukemi migrate"),
  });
});

test("runs on a newer schema as long as that schema allows it", async () => {
  const { url, pool } = await createDatabase();
  const known = await readMigrations();
  const newest = known.at(-1)!.version;
  await migrate(pool, [...known, future(newest + 1, newest)]);
  const store = await openStore({ ...DEFAULTS, database: url });
  await store.close();
  await migrate(pool, [...known, future(newest + 1, newest), future(newest + 2, newest + 2)]);
  await expect(openStore({ ...DEFAULTS, database: url })).rejects.toMatchObject({ code: "schema_too_new" });
});

test("refuses code that is older than the schema it needs", () => {
  const known = [future(1, 1), future(2, 1)];
  const schema = { version: 1, compatibleWith: 1, applied: [] };
  expect(() => requireSchema(schema, known)).toThrow(/version 1; this version of Ukemi needs 2/);
});

test("refuses a migration file that was changed after it was applied", async () => {
  const { pool } = await createDatabase();
  const [first] = await readMigrations();
  await expect(migrate(pool, [{ ...first!, checksum: "another" }])).rejects.toMatchObject({
    code: "migration_changed",
  });
});

test("leaves nothing behind when a migration fails, and applies it when it is mended", async () => {
  const { url, pool } = await createDatabase();
  const known = await readMigrations();
  const broken = { ...future(99, 1), sql: "create table ukemi.half (id integer); select 1 / 0" };
  await expect(migrate(pool, [...known, broken])).rejects.toThrow(/division by zero/);
  const { rows } = await pool.query("select to_regclass('ukemi.half') as half");
  expect(rows).toEqual([{ half: null }]);
  await migrate(pool, [...known, future(99, 1)]);
  expect(await migrateStore(url)).toEqual({ from: 99, to: 99 });
});

test("takes over the large index of version 17 where somebody made it before, as the guide says", async () => {
  const { url, pool } = await createDatabase({ empty: true });
  const known = await readMigrations();
  await migrate(
    pool,
    known.filter(({ version }) => version <= 16),
  );
  const guide = await readFile(new URL("../../docs/guides/operating.md", import.meta.url), "utf8");
  await pool.query(/create index concurrently if not exists .*;/.exec(guide)![0]);
  await migrateStore(url);
  expect(await dumpSchema(pool)).toBe(await readFile(SCHEMA, "utf8"));
});

test("waits for a table that somebody holds locked, instead of blocking everyone behind it", async () => {
  const { pool } = await createDatabase();
  const holder = await pool.connect();
  await holder.query("begin; lock table ukemi.clock in access exclusive mode");
  const sql = "set local lock_timeout = '100ms'; alter table ukemi.clock add note text";
  const migrating = migrate(pool, [{ ...future(98, 1), sql }]);
  await until(async () => {
    const { rows } = await pool.query(
      "select from pg_locks where not granted and relation = 'ukemi.clock'::regclass",
    );
    return rows.length > 0;
  }, "the migration waits for the table");
  await holder.query("commit");
  holder.release();
  expect((await migrating).version).toBe(98);
});

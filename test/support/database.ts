// A database of its own for a test: a copy of the migrated template, dropped afterwards.
import { randomBytes } from "node:crypto";
import { inject, onTestFinished } from "vitest";
import { openPool, type Pool } from "../../src/storage/postgres.ts";
import { withDatabase } from "./url.ts";

/** A database with a pool to look into it. */
export interface TestDatabase {
  readonly url: string;
  readonly name: string;
  readonly pool: Pool;
}

/** Creates the database for the running test. */
export async function createDatabase(options: { empty?: boolean } = {}): Promise<TestDatabase> {
  const { drop, ...database } = await createSharedDatabase(options);
  onTestFinished(drop);
  return database;
}

/** Creates a database for several tests of a file, which drop it after the last of them. */
export async function createSharedDatabase(
  options: { empty?: boolean } = {},
): Promise<TestDatabase & { readonly drop: () => Promise<void> }> {
  const adminUrl = inject("adminUrl");
  const name = `ukemi_test_${randomBytes(6).toString("hex")}`;
  const template = options.empty ? "template0" : inject("template");
  await asAdmin((admin) => admin.query(`create database ${name} template ${template} encoding 'UTF8'`));
  const url = withDatabase(adminUrl, name);
  const pool = openPool(url, { max: 4, name: "test" });
  const drop = async () => {
    await pool.end();
    await asAdmin((admin) => admin.query(`drop database if exists ${name} with (force)`));
  };
  return { url, name, pool, drop };
}

/** Runs statements as the owner of the server. */
export async function asAdmin<T>(work: (admin: Pool) => Promise<T>): Promise<T> {
  const admin = openPool(inject("adminUrl"), { max: 1 });
  try {
    return await work(admin);
  } finally {
    await admin.end();
  }
}

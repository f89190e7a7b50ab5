// Once a run: builds dist, and gives the tests a PostgreSQL with a migrated database to copy.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { ensureBuilt } from "../../scripts/build.mjs";
import { memoryFolder } from "../../scripts/machine.mjs";
import { startEmbedded } from "../../src/storage/embedded/embedded.ts";
import { migrateStore } from "../../src/storage/open.ts";
import { openPool } from "../../src/storage/postgres.ts";
import { ROW_CHECKS } from "./row-checks.ts";
import { withDatabase } from "./url.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** A database whose owner may create others. */
    adminUrl: string;
    /** The database that every test's own is copied from. */
    template: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  ensureBuilt();
  const server = process.env.DATABASE_URL
    ? { url: process.env.DATABASE_URL, stop: () => Promise.resolve() }
    : await startOwn(project.name === "faults" ? tmpdir() : memoryFolder());
  const template = `ukemi_template_${process.pid}_${project.name}`;
  const admin = openPool(server.url, { max: 1 });
  await admin.query(`drop database if exists ${template}`);
  await admin.query(`create database ${template} template template0 encoding 'UTF8'`);
  await migrateStore(withDatabase(server.url, template));
  await addChecks(withDatabase(server.url, template));
  project.provide("adminUrl", server.url);
  project.provide("template", template);
  return async () => {
    await admin.query(`drop database if exists ${template} with (force)`);
    await admin.end();
    await server.stop();
  };
}

async function addChecks(url: string): Promise<void> {
  const pool = openPool(url, { max: 1 });
  await pool.query(ROW_CHECKS);
  await pool.end();
}

async function startOwn(parent: string) {
  const data = await mkdtemp(join(parent, "ukemi-tests-"));
  const server = await startEmbedded({ data });
  return {
    url: server.url,
    async stop() {
      await server.stop();
      await rm(data, { recursive: true, force: true });
    },
  };
}

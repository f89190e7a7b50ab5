// One PostgreSQL for the whole bench, with the durability that it has by itself; a database of its own for each contestant.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import type * as Embedded from "../src/storage/embedded/embedded.ts";
import type * as Open from "../src/storage/open.ts";
import { built } from "./built.ts";
import { ending } from "./endings.ts";

export interface BenchStore {
  /** Where it keeps its data. */
  readonly folder: string;
  /** Makes a database; with the schema of Ukemi where asked. Returns its URL. */
  create(name: string, options?: { readonly schema?: boolean }): Promise<string>;
  /** What the server says of itself, for the table. */
  describe(): Promise<string>;
  stop(): Promise<void>;
}

const WAL_FILE_MB = 16;
/** As many as the server may have by itself (max_wal_size). */
const WAL_FILES = 64;

export async function startBenchStore(): Promise<BenchStore> {
  const { startEmbedded } = await built<typeof Embedded>("storage/embedded/embedded.js");
  const { migrateStore } = await built<typeof Open>("storage/open.js");
  const data = await mkdtemp(join(tmpdir(), "ukemi-bench-"));
  const settings = { max_connections: "200", min_wal_size: `${WAL_FILES * WAL_FILE_MB}MB` };
  const starting = startEmbedded({ data, settings });
  const stop = ending(async () => {
    await starting.then((server) => server.stop()).catch(() => {}); // one that did not start is told of below
    await rm(data, { recursive: true, force: true });
  });
  const server = await starting.catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  await onServer(server.url, layOutWal);
  return {
    folder: data,
    async create(name, { schema = false } = {}) {
      await onServer(server.url, (client) => client.query(`create database ${name}`));
      const url = new URL(server.url);
      url.pathname = `/${name}`;
      if (schema) await migrateStore(url.href);
      return url.href;
    },
    describe: () =>
      onServer(server.url, async (client) => {
        const { rows } = await client.query<{ said: string }>(
          `select 'PostgreSQL ' || current_setting('server_version') || ', fsync ' || current_setting('fsync')
             || ', synchronous_commit ' || current_setting('synchronous_commit')
             || ', shared_buffers ' || current_setting('shared_buffers') as said`,
        );
        return rows[0]!.said;
      }),
    stop,
  };
}

/**
 * A server that has been at work for a while writes its log over files which it has kept. A fresh one makes each when it comes
 * to it, and every commit waits 30 to 60 ms for that: a contest would measure how young the server is.
 */
async function layOutWal(client: pg.Client): Promise<void> {
  for (let file = 0; file < WAL_FILES; file += 1) {
    await client.query("select pg_logical_emit_message(false, 'bench', ''), pg_switch_wal()");
  }
  await client.query("checkpoint");
}

async function onServer<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

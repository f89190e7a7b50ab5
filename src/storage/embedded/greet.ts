// First contact with a running server: is it ready, is it the one of this folder, does our database exist?
import { realpath } from "node:fs/promises";
import pg from "pg";
import { database } from "./address.ts";
import type { Address } from "./address.ts";
import { user } from "./cluster.ts";

/** What came of knocking at the address. */
export type Greeting =
  | { readonly kind: "ready"; readonly version: string }
  /** It is starting, recovering or shutting down. */
  | { readonly kind: "busy" }
  /** Nobody listens, or somebody who is not the server of this folder. */
  | { readonly kind: "nobody"; readonly reason: string };

/** Connects, checks whose server it is, and makes the database `ukemi` where it is missing. */
export async function greet(address: Address, password: string, cluster: string): Promise<Greeting> {
  try {
    return await withClient(address, password, "postgres", async (client) => {
      const { rows } = await client.query<{ version: string; folder: string; made: boolean }>(
        `select
           current_setting('server_version') as version,
           current_setting('data_directory') as folder,
           exists (select from pg_catalog.pg_database where datname = $1) as made`,
        [database],
      );
      const [answer] = rows;
      // A socket lies inside the cluster, so whoever answers there is ours, also under another mount path.
      const isOurs = address.host === cluster || (answer && (await isSame(answer.folder, cluster)));
      if (!answer || !isOurs) return { kind: "nobody", reason: "a server of another folder answers there" };
      if (!answer.made) await createDatabase(client);
      return { kind: "ready", version: answer.version.split(" ")[0] ?? answer.version };
    });
  } catch (error) {
    return refusal(error);
  }
}

async function createDatabase(client: pg.Client): Promise<void> {
  await client
    .query(`create database ${database} encoding 'UTF8' template template0`)
    .catch((error: unknown) => {
      if (codeOf(error) !== "42P04" && codeOf(error) !== "23505") throw error; // another process was quicker
    });
}

async function withClient<T>(
  { host, port }: Address,
  password: string,
  name: string,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = new pg.Client({
    host,
    port,
    user,
    password,
    database: name,
    connectionTimeoutMillis: 5_000,
  });
  client.on("error", () => undefined); // a server that goes away meanwhile fails the query, which is enough
  try {
    await client.connect();
    return await work(client);
  } finally {
    await client.end().catch(() => undefined);
  }
}

const notNow = ["57P01", "57P02", "57P03", "53300"];
const notThere = ["ECONNREFUSED", "ENOENT", "ECONNRESET", "EPIPE", "28P01", "28000"];

function refusal(error: unknown): Greeting {
  const code = codeOf(error);
  // `pg` has no code for a connection that ended while it was being made.
  const broke = error instanceof Error && /terminated|timeout expired/.test(error.message);
  if (broke || (code !== undefined && notNow.includes(code))) return { kind: "busy" };
  if (code !== undefined && notThere.includes(code)) return { kind: "nobody", reason: code };
  throw error;
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error ? String(error.code) : undefined;
}

async function isSame(one: string, other: string): Promise<boolean> {
  return (await realpath(one).catch(() => one)) === (await realpath(other).catch(() => other));
}

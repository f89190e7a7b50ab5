// A real transaction pooler in front of a test's database.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, copyFile, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { openPool } from "../../src/storage/postgres.ts";
import { freePort } from "./port.ts";
import { proxyDatabase } from "./proxied.ts";
import { debianFile } from "./tools.ts";
import { until } from "./until.ts";

/** Undefined where it could not be fetched. */
export const poolerProgram = debianFile("usr/sbin/pgbouncer");

/** Starts the pooler in transaction mode with two server connections; returns the connection string through it. */
export async function startPooler(url: string): Promise<string> {
  // over TCP: the pooler's user may not enter the folder of the database's socket
  const { url: reachable } = await proxyDatabase(url);
  const target = new URL(reachable);
  const folder = await mkdtemp(join(tmpdir(), "ukemi-pooler-"));
  const port = await freePort();
  const name = target.pathname.slice(1);
  const server = `host=${target.hostname} port=${target.port} user=${target.username} password=${target.password}`;
  await writeFile(
    join(folder, "pooler.ini"),
    `[databases]\n${name} = ${server} dbname=${name}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = ${port}\n` +
      `unix_socket_dir =\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 2\n`,
  );
  // pgbouncer refuses to run as root; whoever it runs as must be able to read it
  const program = join(folder, "pgbouncer");
  await copyFile(poolerProgram!, program);
  for (const library of ["libevent-2.1.so.7", "libcares.so.2"]) {
    await copyFile(debianFile(`LIBRARIES/${library}`)!, join(folder, library));
  }
  await chmod(folder, 0o755);
  const child = spawn(program, [join(folder, "pooler.ini")], {
    stdio: "ignore",
    env: { LD_LIBRARY_PATH: folder },
    cwd: "/",
    ...(process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}),
  });
  const ended = once(child, "close");
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await ended;
    await rm(folder, { recursive: true, force: true });
  });
  const pooled = `postgres://anyone@127.0.0.1:${port}/${name}`;
  await until(() => answers(pooled), "the pooler answers");
  return pooled;
}

async function answers(url: string): Promise<boolean> {
  const pool = openPool(url, { max: 1 });
  try {
    await pool.query("select 1");
    return true;
  } catch {
    return false;
  } finally {
    await pool.end();
  }
}

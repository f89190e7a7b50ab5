// Where the server is reached: a socket inside the cluster, or loopback where the socket's path would be too long.
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { user } from "./cluster.ts";

/** The application's database. */
export const database = "ukemi";

/** Where a client connects. */
export interface Address {
  /** The folder of the socket, or 127.0.0.1. */
  readonly host: string;
  readonly port: number;
}

const socketPort = 5432;
/** `sun_path` less its ending NUL. */
const socketBytesMax = process.platform === "linux" ? 107 : 103;

/** Where a server on this cluster shall listen: as before, if that is still free, so that URLs stay valid. */
export async function chooseAddress(cluster: string): Promise<Address> {
  if (Buffer.byteLength(socketPath(cluster, socketPort)) <= socketBytesMax)
    return { host: cluster, port: socketPort };
  // PostgreSQL keeps the arguments of its last start in this file.
  const last = await readFile(join(cluster, "postmaster.opts"), "utf8").catch(() => "");
  const port = Number(/"port=(\d+)"/.exec(last)?.[1] ?? 0);
  return { host: "127.0.0.1", port: await freePort(port).catch(() => freePort(0)) };
}

/** Where a server that already runs listens, by the port its postmaster.pid names. */
export function addressOf(cluster: string, port: number): Address {
  return existsSync(socketPath(cluster, port)) ? { host: cluster, port } : { host: "127.0.0.1", port };
}

/** The settings that make the server listen there, and nowhere else. */
export function listenSettings({ host, port }: Address): Record<string, string> {
  const onSocket = host.startsWith("/");
  return {
    port: String(port),
    listen_addresses: onSocket ? "" : host,
    // Relative to the cluster, where the server stands: no quoting of odd paths, and the folder is closed to others.
    unix_socket_directories: onSocket ? "." : "",
    unix_socket_permissions: "0700",
  };
}

/** The connection string. The host in the query wins for `pg` and libpq; "localhost" keeps it a valid URL. */
export function urlOf({ host, port }: Address, password: string): string {
  if (!host.startsWith("/")) return `postgres://${user}:${password}@${host}:${port}/${database}`;
  return `postgres://${user}:${password}@localhost/${database}?host=${encodeURIComponent(host)}&port=${port}`;
}

function socketPath(cluster: string, port: number): string {
  return join(cluster, `.s.PGSQL.${port}`);
}

/** The port if it is free; any free one for 0. */
function freePort(wanted: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.on("error", reject);
    probe.listen(wanted, "127.0.0.1", () => {
      const address = probe.address();
      const port = typeof address === "object" && address !== null ? address.port : 0;
      probe.close(() => resolve(port));
    });
  });
}

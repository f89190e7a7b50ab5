// A test's database behind a fault proxy.
import { onTestFinished } from "vitest";
import { startFaultProxy, type FaultProxy, type FaultTarget } from "../../src/testing/fault-proxy.ts";

/** Starts a proxy in front of the database; the URL leads through it. */
export async function proxyDatabase(url: string): Promise<{ url: string; proxy: FaultProxy }> {
  const proxy = await startFaultProxy(targetOf(url));
  onTestFinished(() => proxy.stop());
  const through = new URL(url);
  through.hostname = proxy.host;
  through.port = String(proxy.port);
  through.searchParams.delete("host");
  through.searchParams.delete("port");
  return { url: through.href, proxy };
}

/** Where a connection string leads: the host in its query wins, and a host that is a path is a socket's folder. */
function targetOf(url: string): FaultTarget {
  const { hostname, port, searchParams } = new URL(url);
  const host = searchParams.get("host") ?? hostname;
  const number = Number(searchParams.get("port") ?? (port || 5432));
  return host.startsWith("/") ? { path: `${host}/.s.PGSQL.${number}` } : { host, port: number };
}

// A small server for a process that only works: its health and its metrics, and nothing else.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import type { Ukemi } from "../ukemi.ts";
import { createApp } from "./app.ts";
import { close, listen, requireTokenBeyondLoopback, urlOf, type RunningServer } from "./server.ts";

const PATHS: readonly string[] = ["/healthz", "/readyz", "/metrics"];

/** Listens on the port for metrics, with the answers that a server gives at these paths; all others are not there. */
export async function startMetricsServer(ukemi: Ukemi, port: number): Promise<RunningServer> {
  const { settings } = ukemi;
  await requireTokenBeyondLoopback(ukemi);
  let stopping = false;
  const onRequest = getRequestListener(createApp(ukemi, () => stopping).fetch, {
    overrideGlobalObjects: false,
  });
  const server = createServer({ requestTimeout: settings.requestTimeoutMs }, (request, response) => {
    const [path = ""] = (request.url ?? "").split("?");
    if (!PATHS.includes(path)) return void response.writeHead(404).end();
    void onRequest(request, response);
  });
  await listen(server, settings.host, port);
  return {
    url: urlOf(settings.host, (server.address() as AddressInfo).port),
    async stop() {
      stopping = true;
      await close(server, settings.drainTimeoutMs);
    },
  };
}

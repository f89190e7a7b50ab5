// The HTTP server: limits at the door, webhooks on the fast path, the rest through the app.
import {
  createServer,
  STATUS_CODES,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { steadyMs } from "../clock.ts";
import { UkemiError, type ErrorCode } from "../errors.ts";
import { createAddressOf } from "../inbox/address.ts";
import { problem } from "../inbox/answer.ts";
import type { NodeReceiver } from "../inbox/node.ts";
import { describeFault } from "../storage/faults.ts";
import type { Ukemi } from "../ukemi.ts";
import { createApp } from "./app.ts";
import { isLoopback } from "./auth.ts";
import { createWebhookListener, WEBHOOK_PATH } from "./routes/webhooks.ts";

/** A server that listens. */
export interface RunningServer {
  /** `http://host:port`, as a person would type it. */
  readonly url: string;
  /** Takes no new requests, answers those under way, then closes. Does not stop the Ukemi behind it. */
  stop(): Promise<void>;
}

/** Listens with the given Ukemi behind it, which must have been started. */
export async function startServer(ukemi: Ukemi): Promise<RunningServer> {
  const { settings } = ukemi;
  await requireTokenBeyondLoopback(ukemi);
  let stopping = false;
  const onWebhook = createWebhookListener({
    receive: ukemi.receive,
    addressOf: createAddressOf(settings.trustedProxies),
    onFault: (error) => ukemi.logger.error({ error: describeFault(error) }, "a fault in Ukemi"),
  });
  const onRequest = getRequestListener(createApp(ukemi, () => stopping).fetch, {
    overrideGlobalObjects: false,
  });

  const server = createServer(
    {
      headersTimeout: settings.headTimeoutMs,
      requestTimeout: settings.requestTimeoutMs,
      connectionsCheckingInterval: Math.min(1000, settings.headTimeoutMs / 2),
      keepAliveTimeout: 75_000,
      maxHeaderSize: 16 * 1024,
    },
    (request, response) => {
      if (stopping) response.setHeader("connection", "close");
      if (!request.url?.startsWith("/")) request.url = pathOf(request.url);
      if (!request.url.startsWith(WEBHOOK_PATH)) return void onRequest(request, response);
      void answerWebhook(ukemi, onWebhook, request, response);
    },
  );
  server.maxConnections = settings.connectionsMax;
  server.on("clientError", refuseBrokenHttp);
  await listen(server, settings.host, settings.port);
  return {
    url: urlOf(settings.host, (server.address() as AddressInfo).port),
    async stop() {
      stopping = true;
      await close(server, settings.drainTimeoutMs);
    },
  };
}

/** Refuses to be reached from elsewhere by anyone. A token that has expired guards the door too, and keeps no webhook out. */
export async function requireTokenBeyondLoopback({ settings, operate }: Ukemi): Promise<void> {
  const { adminToken, host } = settings;
  if (adminToken !== undefined || isLoopback(host) || (await operate.tokens.any())) return;
  throw new UkemiError(
    "invalid_option",
    `A token is needed to listen on ${host}: set UKEMI_ADMIN_TOKEN, or make one with \`ukemi token create --scope admin\`.`,
  );
}

/** A proxy may ask in absolute form (`POST http://host/path`), which a server must take. */
function pathOf(url: string | undefined): string {
  try {
    const { pathname, search } = new URL(url ?? "");
    return pathname + search;
  } catch {
    return "/"; // "*", or nothing that makes sense: there is no such page
  }
}

/** A caller that went away has no answer, and is not counted. */
async function answerWebhook(
  { metrics }: Ukemi,
  onWebhook: NodeReceiver,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const startedAt = steadyMs();
  await onWebhook(request, response);
  if (!response.headersSent) return;
  metrics.request("ingest", request.method ?? "", response.statusCode, (steadyMs() - startedAt) / 1000);
}

const LISTEN_FAULTS: Readonly<Record<string, string>> = {
  EADDRINUSE: "the port is taken",
  EADDRNOTAVAIL: "this machine has no such address",
  EACCES: "this user may not use that port",
  ENOTFOUND: "there is no such host",
};

/** Listens, or throws an error that says why not. */
export function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      const why = LISTEN_FAULTS[error.code ?? ""] ?? error.code ?? error.message;
      reject(
        new UkemiError("cannot_listen", `Cannot listen on ${host}, port ${port}: ${why}.`, { cause: error }),
      );
    });
    server.listen(port, host, resolve);
  });
}

/** Idle connections are closed at once, busy ones after their answer, and all of them when the time is up. */
export function close(server: Server, drainTimeoutMs: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => server.closeAllConnections(), drainTimeoutMs);
    // a connection that was busy when the stop began is idle after its answer: node:http does not look again
    const sweeper = setInterval(() => server.closeIdleConnections(), 50);
    server.close(() => {
      clearTimeout(timer);
      clearInterval(sweeper);
      resolve();
    });
    server.closeIdleConnections();
  });
}

const CODE_OF_FAULT: Readonly<Record<string, ErrorCode>> = {
  HPE_HEADER_OVERFLOW: "headers_too_large",
  HPE_CHUNK_EXTENSIONS_OVERFLOW: "payload_too_large",
  ERR_HTTP_REQUEST_TIMEOUT: "request_timeout",
};

/** What node:http cannot parse, or gave up waiting for, has no request object: the answer is written by hand. */
function refuseBrokenHttp(error: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable || error.code === "ECONNRESET") return void socket.destroy();
  const answer = problem(CODE_OF_FAULT[error.code ?? ""] ?? "malformed_http", crypto.randomUUID());
  const headers = Object.entries({
    ...answer.headers,
    "content-length": Buffer.byteLength(answer.body),
    connection: "close",
  });
  socket.end(
    `HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status]}\r\n` +
      headers.map(([name, value]) => `${name}: ${value}\r\n`).join("") +
      `\r\n${answer.body}`,
  );
}

/** The address as a person would type it. */
export function urlOf(host: string, port: number): string {
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

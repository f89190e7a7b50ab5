// A peer on loopback that keeps its own log of what reached it: it, not the client, says what was sent.
import { createServer as createHttp, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createHttps } from "node:https";
import { createServer as createRaw, type AddressInfo, type Server, type Socket } from "node:net";

/** A request as the peer saw it. */
export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly key: string | undefined;
  readonly body: string;
}

export interface HttpPeer {
  readonly port: number;
  readonly url: string;
  readonly seen: readonly SeenRequest[];
  /** Resolves as soon as the log holds so many requests. */
  saw(count: number): Promise<void>;
  /** How many connections were made. */
  connections(): number;
  /** Closes every connection. */
  drop(): void;
  stop(): Promise<void>;
}

export type PeerAnswer = (response: ServerResponse, request: IncomingMessage, call: number) => unknown;

/** Answers after the whole request was read and logged. */
export async function startPeer(
  answer: PeerAnswer,
  tls?: { readonly cert: string; readonly key: string },
): Promise<HttpPeer> {
  const seen: SeenRequest[] = [];
  const waiting: { count: number; wake: () => void }[] = [];
  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    const { method = "", url: path = "", headers } = request;
    const key = headers["idempotency-key"]?.toString();
    seen.push({ method, path, headers, key, body: Buffer.concat(pieces).toString() });
    for (const { count, wake } of waiting) if (seen.length >= count) wake();
    answer(response, request, seen.length);
  }
  const onRequest = (request: IncomingMessage, response: ServerResponse) =>
    void serve(request, response).catch(() => request.socket.destroy());
  const server = tls === undefined ? createHttp(onRequest) : createHttps(tls, onRequest);
  const { port, connections, drop, stop } = await listen(server);
  return {
    port,
    url: `${tls === undefined ? "http://127.0.0.1" : "https://api.test"}:${port}`,
    seen,
    saw: (count) =>
      new Promise((wake) => (seen.length >= count ? wake() : void waiting.push({ count, wake }))),
    connections,
    drop,
    stop,
  };
}

/** Does what it is told with every piece of bytes that comes. */
export async function startRawPeer(onData: (piece: string, socket: Socket) => void) {
  const server = createRaw((socket) => {
    socket.on("error", () => {});
    socket.on("data", (piece) => onData(piece.toString(), socket));
  });
  const { port, connections, stop } = await listen(server);
  return { port, url: `http://127.0.0.1:${port}`, connections, stop };
}

async function listen(server: Server) {
  const sockets = new Set<Socket>();
  let connected = 0;
  server.on("connection", (socket) => {
    connected += 1;
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  const drop = () => {
    for (const socket of sockets) socket.destroy();
  };
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    connections: () => connected,
    drop,
    stop: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        drop();
      }),
  };
}

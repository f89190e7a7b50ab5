// The HTTP side of Amazon SES: answers SendEmail as it is told, and counts.
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** What the stub does with a call instead of taking the mail. */
export type SesAct =
  | { readonly status: number; readonly error?: string; readonly message?: string }
  | { readonly hang: true }
  | { readonly drop: true };

export interface SesCall {
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface SesStub {
  readonly url: string;
  readonly calls: readonly SesCall[];
  /** Resolves as soon as there have been so many. */
  called(times: number): Promise<void>;
  stop(): Promise<void>;
}

/** Starts it on loopback. `act` decides about the nth call, counted from 1; undefined takes the mail. */
export async function startSesStub(
  act: (call: number) => SesAct | undefined = () => undefined,
): Promise<SesStub> {
  const calls: SesCall[] = [];
  const waiting = new Set<() => void>();

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    calls.push({ path: request.url ?? "", body: JSON.parse(Buffer.concat(pieces).toString("utf8")) });
    for (const look of waiting) look();
    const told = act(calls.length);
    if (told === undefined) {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ MessageId: `ses-${calls.length}` }));
      return;
    }
    if ("hang" in told) return;
    if ("drop" in told) {
      request.socket.destroy();
      return;
    }
    response.writeHead(told.status, {
      "content-type": "application/json",
      ...(told.error !== undefined && { "x-amzn-errortype": told.error }),
    });
    response.end(JSON.stringify({ message: told.message ?? "" }));
  }

  const server = createServer((request, response) => void answer(request, response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    called: (times) =>
      new Promise((resolve) => {
        const look = () => {
          if (calls.length < times) return;
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        look();
      }),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

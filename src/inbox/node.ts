// The receiver for node:http and what is built on it: our own server, Express, Fastify.
import type { IncomingMessage, ServerResponse } from "node:http";
import { crashPoint, isArmed } from "../crash-point.ts";
import { problem, type Answer } from "./answer.ts";
import { CallerGone, type ReadBody, type ReadLimits } from "./delivery.ts";
import type { Receive } from "./receive.ts";
import { atEndOfTurn } from "./turn.ts";

export interface NodeReceiverOptions<R extends IncomingMessage = IncomingMessage> {
  /**
   * Tells the sender's address, for address lists and the limit on refused requests.
   * @default the peer of the connection, or what the proxies named by trustedProxies say of it
   */
  readonly address?: (request: R) => string | undefined;
}

/** Answers a request by itself: nothing else may write to the response. Never rejects. */
export type NodeReceiver<R extends IncomingMessage = IncomingMessage> = (
  request: R,
  response: ServerResponse,
) => Promise<void>;

export interface NodeReceiverParts<R extends IncomingMessage> {
  readonly receive: Receive;
  readonly source: (request: R) => string;
  readonly address: (request: R) => string | undefined;
  /** A fault that is ours. */
  readonly onFault: (error: unknown) => void;
}

/** How long a caller that was turned away may go on sending before its connection is cut. */
const LINGER_MS = 1000;

/** A listener for every answer would be one more thing to make and to call: there is one only for the test that needs it. */
const ANSWERED = isArmed("server.after_answer") ? () => crashPoint("server.after_answer") : undefined;

/** Makes `(request, response) => Promise<void>`. */
export function createNodeReceiver<R extends IncomingMessage>(parts: NodeReceiverParts<R>): NodeReceiver<R> {
  return async (request, response) => {
    try {
      const answer = await parts.receive({
        source: parts.source(request),
        method: request.method!,
        headers: request.headers,
        address: parts.address(request),
        readBody: (limits) =>
          wasRead(request) ? bytesReadBefore(request, limits) : readBody(request, limits),
      });
      crashPoint("server.before_answer");
      send(request, response, answer);
    } catch (error) {
      if (error instanceof CallerGone) return;
      parts.onFault(error);
      if (!response.headersSent) send(request, response, problem("internal", crypto.randomUUID()));
    }
  };
}

function send(request: IncomingMessage, response: ServerResponse, answer: Answer): void {
  // a 204 must not carry a length
  if (answer.status !== 204) response.setHeader("content-length", Buffer.byteLength(answer.body));
  response.writeHead(answer.status, answer.headers);
  response.end(answer.body, ANSWERED);
  if (request.complete) return;
  // The rest of the body is read and thrown away, so that the caller sees the answer instead of a reset; but not for long.
  request.resume();
  const { socket } = request;
  const timer = setTimeout(() => socket.destroy(), LINGER_MS).unref();
  request.once("end", () => clearTimeout(timer));
}

/** Whether a body parser came before us: its "end" will not come again, and waiting for it would hang. */
function wasRead(request: IncomingMessage): boolean {
  return request.readableDidRead || request.readableEnded;
}

/** Bytes are as good as a stream (express.raw() leaves them in `body`); anything else is no longer what was signed. */
function bytesReadBefore(
  request: IncomingMessage & { readonly body?: unknown },
  { bytesMax, admit }: ReadLimits,
): ReadBody {
  if (!Buffer.isBuffer(request.body)) return "read before";
  if (request.body.length > bytesMax) return "too large";
  return admit(request.body.length) ? request.body : "no room";
}

function readBody(request: IncomingMessage, { bytesMax, admit }: ReadLimits): Promise<ReadBody> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const gone = () => {
      // every request closes after its end: an error made for nobody would cost as much as the signature
      if (!request.readableEnded) reject(new CallerGone());
    };
    if (request.destroyed) return gone();
    function take(chunk: Buffer): void {
      bytes += chunk.length;
      const room = bytes <= bytesMax && admit(chunk.length);
      if (room) return void chunks.push(chunk);
      request.off("data", take);
      chunks.length = 0;
      resolve(bytes > bytesMax ? "too large" : "no room");
    }
    request.on("data", take);
    request.once("end", () =>
      atEndOfTurn(() => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks))),
    );
    request.once("error", gone);
    request.once("close", gone);
  });
}

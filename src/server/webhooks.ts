// The fast path for webhooks: node:http to receive() with nothing in between.
import type { IncomingMessage, ServerResponse } from "node:http";
import { crashPoint } from "../crash-point.ts";
import { problem, type Answer } from "../inbox/answer.ts";
import type { Receive } from "../inbox/receive.ts";
import type { AddressOf } from "./address.ts";

/** The path below which every source has its endpoint. */
export const WEBHOOK_PATH = "/webhooks/";

/** How long a caller that was turned away may go on sending before its connection is cut. */
const LINGER_MS = 1000;

/** The caller went away before its request was complete: there is nobody to answer. */
class CallerGone extends Error {
  override readonly name = "CallerGone";
}

export interface WebhookOptions {
  readonly receive: Receive;
  readonly addressOf: AddressOf;
  readonly onFault: (error: unknown) => void;
}

/** Makes the listener for requests below WEBHOOK_PATH. */
export function createWebhookListener(options: WebhookOptions) {
  return async function listen(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const answer = await options.receive({
        source: sourceOf(request.url!),
        method: request.method!,
        headers: request.headers,
        address: options.addressOf(request.socket.remoteAddress, request.headers),
        readBody: (bytesMax) => readBody(request, bytesMax),
      });
      crashPoint("server.before_answer");
      send(request, response, answer);
    } catch (error) {
      if (error instanceof CallerGone) return;
      options.onFault(error);
      if (!response.headersSent) send(request, response, problem("internal", crypto.randomUUID()));
    }
  };
}

function sourceOf(url: string): string {
  const end = url.indexOf("?");
  return url.slice(WEBHOOK_PATH.length, end === -1 ? undefined : end);
}

function send(request: IncomingMessage, response: ServerResponse, answer: Answer): void {
  response.writeHead(answer.status, { ...answer.headers, ...lengthOf(answer) });
  response.end(answer.body, () => crashPoint("server.after_answer"));
  if (request.complete) return;
  // The rest of the body is read and thrown away, so that the caller sees the answer instead of a reset; but not for long.
  request.resume();
  const { socket } = request;
  const timer = setTimeout(() => socket.destroy(), LINGER_MS).unref();
  request.once("end", () => clearTimeout(timer));
}

/** A 204 must not carry a length. */
function lengthOf(answer: Answer): Record<string, number> {
  return answer.status === 204 ? {} : { "content-length": Buffer.byteLength(answer.body) };
}

function readBody(request: IncomingMessage, bytesMax: number): Promise<Buffer | "too large"> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const gone = () => reject(new CallerGone());
    function take(chunk: Buffer): void {
      bytes += chunk.length;
      if (bytes <= bytesMax) return void chunks.push(chunk);
      request.off("data", take);
      chunks.length = 0;
      resolve("too large");
    }
    request.on("data", take);
    request.once("end", () => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)));
    request.once("error", gone);
    request.once("close", gone);
  });
}

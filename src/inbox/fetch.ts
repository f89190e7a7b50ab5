// The receiver for any framework that speaks Request and Response: Hono, Next.js, Express and Fastify by a bridge, Workers.
import type { Answer } from "./answer.ts";
import type { Delivery, Receive } from "./receive.ts";

export interface FetchReceiverOptions {
  /**
   * Tells the sender's address, for address lists and the limit on refused requests. A Request does not carry it.
   * @default unknown: no limit per address, and a source with allowedAddresses refuses everything
   */
  readonly address?: (request: Request) => string | undefined;
}

interface FetchReceiverParts {
  readonly source: string;
  readonly receive: Receive;
  /** Opens the store if it is not open. */
  readonly start: () => Promise<void>;
}

/** Makes `(request: Request) => Promise<Response>` for one source. */
export function createFetchReceiver(
  parts: FetchReceiverParts,
  options: FetchReceiverOptions = {},
): (request: Request) => Promise<Response> {
  return async (request) => {
    const delivery: Delivery = {
      source: parts.source,
      method: request.method,
      headers: Object.fromEntries(request.headers),
      address: options.address?.(request),
      async readBody(bytesMax) {
        // a store that cannot be opened is answered by receive() with 503, like one that went away
        await parts.start().catch(() => {});
        return readStream(request.body, bytesMax);
      },
    };
    return toResponse(await parts.receive(delivery));
  };
}

async function readStream(
  stream: ReadableStream<Uint8Array> | null,
  bytesMax: number,
): Promise<Buffer | "too large"> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of stream ?? []) {
    bytes += chunk.length;
    if (bytes > bytesMax) return "too large"; // leaving the loop cancels the stream
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, bytes);
}

function toResponse(answer: Answer): Response {
  return new Response(answer.body === "" ? null : answer.body, {
    status: answer.status,
    headers: answer.headers,
  });
}

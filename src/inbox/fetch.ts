// The receiver for frameworks that speak Request and Response: Hono, Next.js and others.
import type { Delivery, ReadBody, ReadLimits } from "./delivery.ts";
import type { Receive } from "./receive.ts";

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
}

/** Makes `(request: Request) => Promise<Response>` for one source. */
export function createFetchReceiver(
  parts: FetchReceiverParts,
  options: FetchReceiverOptions = {},
): (request: Request) => Promise<Response> {
  return async (request) => {
    let unread = request.body !== null;
    const delivery: Delivery = {
      source: parts.source,
      method: request.method,
      headers: Object.fromEntries(request.headers),
      address: options.address?.(request),
      async readBody(limits) {
        if (request.bodyUsed || request.body?.locked) return "read before";
        const body = await readStream(request.body, limits);
        unread = typeof body === "string";
        return body;
      },
    };
    const answer = await parts.receive(delivery);
    // the rest of an unread body would stand in the way of the next request on the same connection
    const closing = unread ? { connection: "close" } : {};
    return new Response(answer.body === "" ? null : answer.body, {
      status: answer.status,
      headers: { ...answer.headers, ...closing },
    });
  };
}

async function readStream(
  stream: ReadableStream<Uint8Array> | null,
  { bytesMax, admit }: ReadLimits,
): Promise<ReadBody> {
  if (stream === null) return Buffer.alloc(0);
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  const reader = stream.getReader(); // `for await` costs twice as much
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return Buffer.concat(chunks, bytes);
    bytes += value.length;
    const refused = bytes > bytesMax ? "too large" : admit(value.length) ? undefined : "no room";
    if (refused) {
      await reader.cancel();
      return refused;
    }
    chunks.push(value);
  }
}

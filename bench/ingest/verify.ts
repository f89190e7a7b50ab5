// What every server of the ingest contest has in common: bare node:http, the body read whole, Stripe's signature checked.
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { answerBench } from "../program.ts";

/** A delivery whose signature is right. */
export interface Verified {
  readonly body: Buffer;
  readonly headers: IncomingHttpHeaders;
  /** The whole body; what is named here is what somebody reads. */
  readonly event: {
    readonly id: string;
    readonly type: string;
    readonly created: number;
    readonly data: { readonly object: { readonly id: string; readonly customer: string } };
  };
}

const SECRET = process.env.BENCH_SECRET!;

/** Serves: each verified delivery is kept before it is answered with 204. */
export async function serve(
  keep: (verified: Verified) => Promise<void> | void,
  stop: () => Promise<void> = () => Promise.resolve(),
): Promise<void> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
      const answer = (status: number) => {
        response.writeHead(status, { "content-length": 0 });
        response.end();
      };
      if (!isGenuine(String(request.headers["stripe-signature"]), body)) return answer(400);
      const event = JSON.parse(body.toString("utf8")) as Verified["event"];
      Promise.resolve(keep({ body, headers: request.headers, event })).then(
        () => answer(204),
        (error: unknown) => {
          console.error(error);
          answer(500);
        },
      );
    });
  });
  const port = await listen(server);
  answerBench({ port: () => port }, async () => {
    server.closeAllConnections();
    await stop();
  });
}

/** True where the signature is that of the body. */
export function isGenuine(header: string, body: Buffer): boolean {
  const [, seconds, signature] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(header) ?? [];
  if (seconds === undefined || signature === undefined) return false;
  if (Math.abs(Date.now() / 1000 - Number(seconds)) > 300) return false;
  const expected = createHmac("sha256", SECRET).update(`${seconds}.`).update(body).digest();
  return timingSafeEqual(expected, Buffer.from(signature, "hex"));
}

function listen(server: Server): Promise<number> {
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port));
  });
}

// The meter: POST /v1/usage of API_Meter, one call at a time, and nothing that tries again by itself.
import { Agent, request } from "undici";
import { readRetryAfter } from "../retry-after.ts";

export interface MeterOptions {
  /** Such as https://meter.example.com; the path is ours. */
  readonly url: string;
  readonly token: string;
  readonly timeoutMs: number;
}

/** What the meter said. */
export interface MeterAnswer {
  readonly status: number;
  /** The beginning of its text, which may be anything. */
  readonly text: string;
  readonly retryAfterMs: number | undefined;
}

export interface Meter {
  /** Rejects where there was no answer. */
  post(body: string): Promise<MeterAnswer>;
  close(): Promise<void>;
}

const PATH = "/v1/usage";
/** More than this is not an answer to us. */
const ANSWER_BYTES_MAX = 64 * 1024;

/** Nothing is connected until the first call. */
export function createMeter({ url, token, timeoutMs }: MeterOptions): Meter {
  const target = new URL(PATH.slice(1), url.endsWith("/") ? url : `${url}/`).href;
  const agent = new Agent({
    connections: 1,
    connectTimeout: Math.min(timeoutMs, 10_000),
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
  });
  const headers = {
    authorization: `Bearer ${token}`,
    "content-type": "application/json",
    accept: "application/json",
  };
  return {
    async post(body) {
      const {
        statusCode,
        headers: said,
        body: answer,
      } = await request(target, {
        method: "POST",
        dispatcher: agent,
        headers,
        body,
        signal: AbortSignal.timeout(timeoutMs),
      });
      return {
        status: statusCode,
        text: await beginningOf(answer),
        retryAfterMs: readRetryAfter(one(said["retry-after"]), { date: one(said.date) }),
      };
    },
    close: () => agent.close(),
  };
}

/** Reads no more than it may, and lets go of the connection where there is more. */
async function beginningOf(answer: AsyncIterable<Buffer>): Promise<string> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of answer) {
    pieces.push(piece);
    bytes += piece.length;
    if (bytes > ANSWER_BYTES_MAX) break;
  }
  return Buffer.concat(pieces).toString("utf8", 0, ANSWER_BYTES_MAX);
}

function one(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}

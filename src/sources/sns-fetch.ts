// Asking AWS: bounded in time and size, and never led elsewhere.

/** The `fetch` that asks; `globalThis.fetch` or one like it. */
export type SnsFetch = (url: string, init: RequestInit) => Promise<Response>;

/** SNS waits 15 s for our answer, and we may have to ask twice. */
const TIMEOUT_MS = 5000;
/** A certificate has 2 KB. */
const BYTES_MAX = 64 * 1024;

/** What was answered; `text` is undefined where it is longer than anything we ask for. */
export interface Fetched {
  readonly status: number;
  readonly text: string | undefined;
}

/** Gets a page. Rejects where there is no answer; the message names the host and nothing else of the URL, which may hold a token. */
export async function getPage(fetch: SnsFetch, url: string): Promise<Fetched> {
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    // a redirect is an answer like any other, and not the one we asked for
    const response = await fetch(url, { redirect: "manual", credentials: "omit", signal });
    return { status: response.status, text: await readText(response.body) };
  } catch (error) {
    throw new Error(`${new URL(url).host} cannot be asked: ${causeOf(error)}`, { cause: error });
  }
}

async function readText(stream: ReadableStream<Uint8Array> | null): Promise<string | undefined> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of stream ?? []) {
    bytes += chunk.length;
    if (bytes > BYTES_MAX) return undefined; // leaving the loop cancels the stream
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, bytes).toString();
}

/** The code of what lies beneath `fetch failed`, or the name: a message might quote the URL. */
function causeOf(error: unknown): string {
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  if (!(cause instanceof Error)) return "unknown error";
  return "code" in cause && typeof cause.code === "string" ? cause.code : cause.name;
}

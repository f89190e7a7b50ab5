// What is kept of an answer that says it is done.
import type { Answer } from "./exchange.ts";

/** By these the peer finds the request again. */
const TRACKS = [
  "request-id",
  "x-request-id",
  "x-correlation-id",
  "x-trace-id",
  "x-amzn-requestid",
  "x-amz-request-id",
  "x-ms-request-id",
  "cf-ray",
  "idempotent-replayed",
  "original-request",
];
const TRACK_LENGTH_MAX = 200;

/** What is kept of an answer: as it came, since a handler may need what it says. */
export type HttpReceipt = {
  readonly status: number;
  /** Those by which the peer finds the request again, such as `request-id`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Its media type; absent where the body is not kept. */
  readonly contentType?: string;
  /** The text of its body, or the beginning of it; only where it is JSON or text. */
  readonly body?: string;
  /** True where the body was longer. */
  readonly bodyCut?: true;
};

/** Makes the receipt. */
export function receiptOf(answer: Answer): HttpReceipt {
  const headers = TRACKS.flatMap((name) => {
    const value = header(answer, name);
    return value === undefined ? [] : [[name, value.slice(0, TRACK_LENGTH_MAX)] as const];
  });
  return {
    status: answer.status,
    ...(headers.length === 0 ? {} : { headers: Object.fromEntries(headers) }),
    ...(isText(answer) && answer.body.length > 0
      ? { contentType: mediaTypeOf(answer), body: textOf(answer) }
      : {}),
    ...(answer.ended === "cut" ? { bodyCut: true as const } : {}),
  };
}

/** The value of a header, the first where there are more. */
export function header({ headers }: Answer, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value[0] : value;
}

/** Whether the body is JSON of any kind. */
export function isJson(answer: Answer): boolean {
  return isPlain(answer) && /^application\/(?:[\w.+-]+\+)?json$/.test(mediaTypeOf(answer));
}

function isText(answer: Answer): boolean {
  return isJson(answer) || (isPlain(answer) && mediaTypeOf(answer).startsWith("text/"));
}

/** We ask for no compression; whoever compresses nevertheless sends what we cannot read. */
function isPlain(answer: Answer): boolean {
  return /^(?:identity)?$/i.test(header(answer, "content-encoding") ?? "");
}

function mediaTypeOf(answer: Answer): string {
  const [type = ""] = (header(answer, "content-type") ?? "").split(";");
  return type.trim().toLowerCase().slice(0, 100);
}

/** The body as text. PostgreSQL keeps no NUL. */
export function textOf({ body }: Answer): string {
  // as a stream: a character that was cut in two is left out
  return new TextDecoder().decode(body, { stream: true }).replaceAll("\0", "\uFFFD");
}

// A delivery: one request that carries an event, from whichever server face it came.
import type { HeaderMap } from "../sources/source.ts";

/** What a server face hands over. */
export interface Delivery {
  /** The name of the source in the URL. */
  readonly source: string;
  readonly method: string;
  readonly headers: HeaderMap;
  /** The sender's address; undefined where the face does not know it. */
  readonly address: string | undefined;
  /** Reads the body. Rejects with CallerGone where there is nobody left to answer. */
  readBody(limits: ReadLimits): Promise<ReadBody> | ReadBody;
}

/** How much may be read. */
export interface ReadLimits {
  readonly bytesMax: number;
  /** Asked for each piece before it is kept; false means that too much is in memory already. */
  readonly admit: (bytes: number) => boolean;
}

/**
 * The body, or why there is none: "too large" or "no room" as soon as a limit is passed, without reading on; "read
 * before" where something in the application around us has read it already.
 */
export type ReadBody = Buffer | "too large" | "no room" | "read before";

/** The caller went away before its request was complete: there is nobody to answer. */
export class CallerGone extends Error {
  override readonly name = "CallerGone";
}

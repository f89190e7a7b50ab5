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
  readBody(bytesMax: number): Promise<ReadBody>;
}

/**
 * The body, or why there is none: "too large" as soon as the limit is passed, without reading on; "read before" where
 * something in the application around us has read it already.
 */
export type ReadBody = Buffer | "too large" | "read before";

/** The caller went away before its request was complete: there is nobody to answer. */
export class CallerGone extends Error {
  override readonly name = "CallerGone";
}

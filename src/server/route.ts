// A route of the admin API as data: the server mounts it, the OpenAPI document describes it, the client is made from it.
import type { Static, TObject, TSchema } from "typebox";
import type { ErrorCode } from "../errors.ts";
import type { Mandate } from "../operate/mandate.ts";
import type { Operate } from "../operate/operate.ts";
import type { Caller, Demand } from "./caller.ts";

/** What a route is given: everything was read and checked by its schemas. */
export interface Asked<Q, B> {
  /** The parts of the path in braces. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: Q;
  readonly body: B;
  readonly caller: Caller;
  /** Who acts, and why: the reason is a field of the body. */
  readonly mandate: Mandate;
}

interface Declared<Q extends TObject, B extends TObject, A extends TSchema> extends Demand {
  /** The name of the client's method. */
  readonly id: string;
  /** Reads are GET; every change is a POST with a reason. */
  readonly method: "GET" | "POST";
  /** Below /api/v1; parts in braces are parameters. */
  readonly path: `/${string}`;
  /** One sentence. */
  readonly text: string;
  readonly query?: Q;
  readonly body?: B;
  readonly answer: A;
  /**
   * How it goes with an Idempotency-Key, where it is not one commit: `reads` changes nothing and takes none; `many_commits`
   * is safe to repeat, and keeps its answer when all is done.
   */
  readonly manner?: "reads" | "many_commits";
  /** Fields of the answer that are secrets: a repeated request with the same Idempotency-Key is answered without them. */
  readonly secrets?: readonly string[];
  /** What it refuses beside what every route does. */
  readonly refuses?: readonly ErrorCode[];
  run(asked: Asked<Static<Q>, Static<B>>, operate: Operate): Promise<Static<A>>;
}

/** A declared route, whatever its types. */
export type Route = Declared<TObject, TObject, TSchema>;

/** Declares a route. Its types are checked here; the table of routes does not need them any more. */
export function route<A extends TSchema, Q extends TObject = TObject, B extends TObject = TObject>(
  declared: Declared<Q, B, A>,
): Route {
  return declared;
}

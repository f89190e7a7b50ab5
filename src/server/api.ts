// The admin API as one function from request to response: find the route, know the caller, read, run, answer.
import { createHash } from "node:crypto";
import { Type, type TObject } from "typebox";
import { UkemiError } from "../errors.ts";
import { problem, type Answer } from "../inbox/answer.ts";
import type { Mandate } from "../operate/mandate.ts";
import type { Operate } from "../operate/operate.ts";
import { inTransaction, surround } from "../operate/transaction.ts";
import { classifyFault, describeFault } from "../storage/faults.ts";
import { holdKey, keepAnswer, type KeptAnswer, type KeyedRequest } from "../storage/idempotency.ts";
import type { Tell } from "../storage/news.ts";
import type { Pool } from "../storage/postgres.ts";
import { wrong } from "../operate/mandate.ts";
import { requireAllowed, type Caller } from "./caller.ts";
import { createDocument } from "./openapi.ts";
import { readBody, readQuery } from "./parameters.ts";
import type { Asked, Route } from "./route.ts";
import { ROUTES } from "./routes/routes.ts";

/** Where the API begins. */
export const API_PATH = "/api/v1";

/** What the API works with. */
export interface ApiOptions {
  readonly operate: Operate;
  /** For requests that carry an Idempotency-Key. */
  readonly open: () => Promise<Pool>;
  readonly tell: Tell;
}

/** Answers a request of a caller who is found out only where the route needs one. Never rejects. */
export type Api = (
  request: Request,
  requestId: string,
  authenticate: () => Promise<Caller>,
) => Promise<Response>;

type Fields = Readonly<Record<string, unknown>>;

const NOTHING: TObject = Type.Object({});
const KEY_MAX = 255;
const DOCUMENT_PATH = "/openapi.json";

export function createApi(options: ApiOptions): Api {
  const table = ROUTES.map((route) => ({ route, pattern: patternOf(route.path) }));

  async function answer(
    request: Request,
    requestId: string,
    authenticate: () => Promise<Caller>,
  ): Promise<Response> {
    const url = new URL(request.url);
    const path = url.pathname.slice(API_PATH.length);
    const method = request.method === "HEAD" ? "GET" : request.method;
    if (path === DOCUMENT_PATH && method === "GET") return Response.json(createDocument(ROUTES));
    const there = findRoutes(table, path);
    const found = there.find(({ route }) => route.method === method);
    if (!found) {
      // who is not known learns nothing of what is there
      await authenticate();
      if (there.length === 0) return toResponse(problem("not_found", requestId));
      const allow = [...new Set(there.map(({ route }) => route.method))].join(", ");
      return toResponse(problem("method_not_allowed", requestId, { headers: { allow } }));
    }
    const { route, params } = found;
    const caller = await authenticate();
    requireAllowed(caller, route);
    const query = readQuery(url.searchParams, route.query ?? NOTHING);
    const body = route.method === "POST" ? await readBody(request, route.body ?? NOTHING) : {};
    const asked = { params, query, body, caller, mandate: mandateOf(caller, body) };
    const key = request.headers.get("idempotency-key");
    const changes = route.method === "POST" && body.dry_run !== true && route.manner !== "reads";
    if (key !== null && changes) {
      const run = route.manner === "many_commits" ? runInMany : runOnce;
      return run(route, asked, readKey(key), options);
    }
    const result = await route.run(asked, options.operate);
    return Buffer.isBuffer(result)
      ? new Response(new Uint8Array(result), { headers: { "content-type": "application/octet-stream" } })
      : Response.json(result);
  }

  return async (request, requestId, authenticate) => {
    try {
      return await answer(request, requestId, authenticate);
    } catch (error) {
      return toResponse(toProblem(error, requestId, options.tell));
    }
  };
}

/** Makes the change and remembers its answer in one transaction; a request that comes again is answered as the first was. */
async function runOnce(
  route: Route,
  asked: Asked<Fields, Fields>,
  key: string,
  { operate, open }: ApiOptions,
): Promise<Response> {
  const request = keyedRequest(route, asked, key);
  return surround(await open(), async (client) => {
    const kept = await holdKey(client, request);
    if (kept) return answerAgain(kept, request);
    const result = (await route.run(asked, operate)) as Fields;
    const forgotten = Object.fromEntries((route.secrets ?? []).map((name) => [name, null]));
    await keepAnswer(client, request, { status: 200, answer: JSON.stringify({ ...result, ...forgotten }) });
    return Response.json(result);
  });
}

/** For changes of many commits, which do no harm when they are made again: the answer is kept when all is done. */
async function runInMany(
  route: Route,
  asked: Asked<Fields, Fields>,
  key: string,
  { operate, open }: ApiOptions,
): Promise<Response> {
  const request = keyedRequest(route, asked, key);
  const pool = await open();
  const kept = await inTransaction(pool, (client) => holdKey(client, request));
  if (kept) return answerAgain(kept, request);
  const result = await route.run(asked, operate);
  const answer = JSON.stringify(result);
  await inTransaction(pool, (client) => keepAnswer(client, request, { status: 200, answer }));
  return Response.json(result);
}

function keyedRequest(route: Route, asked: Asked<Fields, Fields>, key: string): KeyedRequest {
  const { params, query, body, caller } = asked;
  return { caller: caller.identity, key, sha256: digest([route.id, params, query, body]) };
}

function answerAgain(kept: KeptAnswer, request: KeyedRequest): Response {
  if (!kept.sha256.equals(request.sha256)) throw new UkemiError("idempotency_key_reused");
  return new Response(kept.answer, {
    status: kept.status,
    headers: { "content-type": "application/json", "idempotency-replayed": "true" },
  });
}

const digest = (value: unknown) => createHash("sha256").update(JSON.stringify(value)).digest();

function readKey(key: string): string {
  if (/^[\u0021-\u007E]+$/.test(key) && key.length <= KEY_MAX) return key;
  throw wrong("Idempotency-Key", `must be 1 to ${KEY_MAX} printable characters without blanks`);
}

/** What is no text is refused with the rest of the mandate. */
function mandateOf({ actor }: Caller, { reason }: { readonly reason?: unknown }): Mandate {
  return { actor, reason: reason as string };
}

/** The routes of a path: a path that is written out (`/dead/groups`) wins over one with parameters (`/dead/{id}`). */
function findRoutes(table: readonly { route: Route; pattern: RegExp }[], path: string) {
  const there = table.flatMap(({ route, pattern }) => {
    const params = matchPath(pattern, path);
    return params ? [{ route, params }] : [];
  });
  const least = Math.min(...there.map(({ params }) => Object.keys(params).length));
  return there.filter(({ params }) => Object.keys(params).length === least);
}

/** `/queues/{name}/pause` as an expression with a group for each part in braces. */
function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replaceAll(/\{(\w+)\}/g, "(?<$1>[^/]+)")}/?$`);
}

/** The parts of the path, decoded; undefined where it is another path. */
function matchPath(pattern: RegExp, path: string): Record<string, string> | undefined {
  const match = pattern.exec(path);
  if (!match) return undefined;
  try {
    return Object.fromEntries(
      Object.entries(match.groups ?? {}).map(([name, part]) => [name, decodeURIComponent(part)]),
    );
  } catch {
    return undefined; // a broken escape names nothing
  }
}

/** Turns what was thrown into an answer that tells the caller what to do and nothing else. */
export function toProblem(error: unknown, requestId: string, tell: Tell): Answer {
  if (error instanceof UkemiError) return problem(error.code, requestId, { detail: error.message });
  if (classifyFault(error) !== "refused") {
    tell("warn", "a request failed", { request_id: requestId, error: describeFault(error) });
    return problem("database_away", requestId);
  }
  const stack = error instanceof Error ? error.stack : undefined;
  tell("error", "a fault in Ukemi", { request_id: requestId, error: describeFault(error), stack });
  return problem("internal", requestId);
}

export function toResponse(answer: Answer): Response {
  return new Response(answer.body, { status: answer.status, headers: answer.headers });
}

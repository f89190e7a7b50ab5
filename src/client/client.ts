// A typed client of the admin API: one method for each call, made from the OpenAPI document. Needs nothing but fetch.
import { CALLS, type Calls } from "./generated.ts";

export type * from "./generated.ts";

/** Where the server is, and who asks. */
export interface ClientOptions {
  /** Of the server, such as `https://ukemi.example.com`. */
  readonly url: string;
  /** A token of the server. Not needed on the server's own machine as long as it has none. */
  readonly token?: string | undefined;
  /** @default the global fetch */
  readonly fetch?: (request: Request) => Promise<Response>;
  /** Milliseconds after which a try is given up. @default 30000 */
  readonly timeoutMs?: number;
}

/** How one call is made. */
export interface CallOptions {
  readonly signal?: AbortSignal;
  /** A change that is asked for twice with the same key is made once. @default a new key for each call */
  readonly idempotencyKey?: string;
}

type InputOf<Id extends keyof Calls> = Calls[Id]["input"];

/** Where nothing is needed, nothing has to be given. */
type Call<Id extends keyof Calls> = (
  ...given: Partial<InputOf<Id>> extends InputOf<Id>
    ? [input?: InputOf<Id>, options?: CallOptions]
    : [input: InputOf<Id>, options?: CallOptions]
) => Promise<Calls[Id]["output"]>;

/** Every call of the API. */
export type Client = { readonly [Id in keyof Calls]: Call<Id> };

/** The server's answer to a request that it did not carry out. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  /** The HTTP status; 0 where no server answered. */
  readonly status: number;
  /** A code of the catalogue; `server_unreachable` where no server answered. */
  readonly code: string;
  readonly requestId: string | undefined;

  constructor(
    detail: string,
    { status, code, requestId, cause }: { status: number; code: string; requestId?: string; cause?: unknown },
  ) {
    super(detail, { cause });
    this.status = status;
    this.code = code;
    this.requestId = requestId;
  }
}

/** Fields of any call: those of the query and the path are words and numbers. */
type Input = Readonly<Record<string, string | number | boolean | undefined>>;

const TRIES = 3;
const PAUSE_MS = 250;
const TIMEOUT_MS = 30_000;

/** Makes a client. What could not be sent or was answered with 503 is tried again: a change carries a key, so it happens once. */
export function createClient(options: ClientOptions): Client {
  const { username, password } = new URL(options.url);
  if (username !== "" || password !== "") {
    throw new TypeError("The url of a server must not carry a name or password: a token says who asks.");
  }
  const call = async (id: keyof Calls, input: Input = {}, callOptions: CallOptions = {}) => {
    const key = callOptions.idempotencyKey ?? crypto.randomUUID();
    for (let tries = 1; ; tries++) {
      try {
        return await callOnce(id, input, { ...callOptions, idempotencyKey: key }, options);
      } catch (error) {
        const mayHelp = error instanceof ApiError && (error.status === 0 || error.status === 503);
        if (!mayHelp || tries === TRIES || callOptions.signal?.aborted) throw error;
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS * tries));
      }
    }
  };
  const calls = Object.keys(CALLS).map((id) => [
    id,
    (input?: Input, callOptions?: CallOptions) => call(id as keyof Calls, input, callOptions),
  ]);
  return Object.fromEntries(calls) as Client;
}

async function callOnce(
  id: keyof Calls,
  input: Input,
  { signal, idempotencyKey }: CallOptions,
  options: ClientOptions,
): Promise<unknown> {
  const { method, path, query } = CALLS[id];
  const rest: Record<string, Input[string]> = { ...input };
  const take = (name: string) => {
    const value = rest[name];
    delete rest[name];
    return value;
  };
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(take(name))));
  const url = new URL(`${options.url.replace(/\/+$/, "")}/api/v1${filled}`);
  for (const name of query) {
    const value = take(name);
    if (value !== undefined) url.searchParams.set(name, String(value));
  }
  const limit = AbortSignal.timeout(options.timeoutMs ?? TIMEOUT_MS);
  const isChange = method === "POST";
  const request = new Request(url, {
    method,
    headers: {
      accept: "application/json",
      ...(options.token === undefined ? {} : { authorization: `Bearer ${options.token}` }),
      ...(isChange ? { "content-type": "application/json", "idempotency-key": idempotencyKey! } : {}),
    },
    ...(isChange ? { body: JSON.stringify(rest) } : {}),
    signal: signal ? AbortSignal.any([signal, limit]) : limit,
    redirect: "manual", // a change that is sent elsewhere as a GET would look done
  });
  return readAnswer(await send(request, options), id === "getEventBody");
}

async function send(request: Request, { fetch: given, url }: ClientOptions): Promise<Response> {
  try {
    return await (given ?? fetch)(request);
  } catch (error) {
    throw new ApiError(`No server answers at ${hostOf(url)}.`, {
      status: 0,
      code: "server_unreachable",
      cause: error,
    });
  }
}

/** Without a password that the URL may carry. */
const hostOf = (url: string) => new URL(url).origin;

interface Problem {
  readonly detail: string;
  readonly code: string;
  readonly request_id: string;
}

/** An answer that breaks off or is no JSON is no answer. */
async function readWhole<T>({ status }: Response, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof SyntaxError)) {
      throw new ApiError("The server's answer broke off.", {
        status: 0,
        code: "server_unreachable",
        cause: error,
      });
    }
    throw new ApiError("The server's answer is not JSON.", { status, code: "not_ukemi", cause: error });
  }
}

async function readAnswer(response: Response, asBytes: boolean): Promise<unknown> {
  const type = response.headers.get("content-type") ?? "";
  if (response.ok && asBytes) {
    return new Uint8Array(await readWhole(response, () => response.arrayBuffer()));
  }
  if (response.ok && type.startsWith("application/json")) return readWhole(response, () => response.json());
  const problem = type.startsWith("application/problem+json")
    ? ((await readWhole(response, () => response.json())) as Problem)
    : undefined;
  throw new ApiError(problem?.detail ?? `The server answered ${response.status}, and not as Ukemi does.`, {
    status: response.status,
    code: problem?.code ?? "not_ukemi",
    ...(problem ? { requestId: problem.request_id } : {}),
  });
}

/** Every item of a list, page after page: `for await (const event of each(client.listEvents, { type }))`. */
export async function* each<I extends object, T>(
  list: (input: I) => Promise<{ readonly items: readonly T[]; readonly cursor?: string | undefined }>,
  input: I,
): AsyncGenerator<T> {
  let cursor: string | undefined;
  do {
    const page = await list({ ...input, ...(cursor === undefined ? {} : { cursor }) });
    yield* page.items;
    cursor = page.cursor;
  } while (cursor !== undefined);
}

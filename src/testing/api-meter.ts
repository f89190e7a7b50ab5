// A small API_Meter for tests and development: it upserts by `source_event_id`, and fails where it is told to.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** What the meter does with a call instead of taking it. */
export interface MeterFault {
  /** Answers with this status. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** The records are stored, and the answer, whatever it would be, is lost: the connection is cut. */
  readonly loseAnswer?: true;
  /** Cuts the connection before anything is stored. */
  readonly cut?: true;
  /** Never answers. */
  readonly hang?: true;
}

/** A call as the meter saw it. */
export interface MeterCall {
  readonly authorization: string | undefined;
  readonly tenant: string;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly ids: readonly string[];
  readonly status: number | "none";
}

export interface ApiMeter {
  readonly url: string;
  /** Everything that was asked, in order. */
  readonly calls: readonly MeterCall[];
  /** What is stored, by tenant and id. */
  readonly records: ReadonlyMap<string, Readonly<Record<string, unknown>>>;
  stop(): Promise<void>;
}

export interface ApiMeterOptions {
  /** @default any token will do */
  readonly token?: string;
  /** Decides what happens to the nth call, counted from 1; undefined takes it. A promise makes the call wait. */
  readonly fault?: (
    call: number,
    ids: readonly string[],
  ) => MeterFault | undefined | Promise<MeterFault | undefined>;
}

/** Starts it on loopback. */
export async function startApiMeter({
  token,
  fault = () => undefined,
}: ApiMeterOptions = {}): Promise<ApiMeter> {
  const calls: MeterCall[] = [];
  const records = new Map<string, Readonly<Record<string, unknown>>>();
  let called = 0;

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const text = await textOf(request);
    const { authorization } = request.headers;
    if (request.method !== "POST" || new URL(request.url!, "http://meter").pathname !== "/v1/usage") {
      return reply(response, 404, { error: "there is nothing here" });
    }
    if (token !== undefined && authorization !== `Bearer ${token}`) {
      return reply(response, 401, { error: "the token is not known" });
    }
    const batch = readBatch(text);
    if (batch === undefined) return reply(response, 400, { error: "not a batch of records" });
    called += 1;
    const ids = batch.records.map(({ source_event_id: id }) => String(id));
    const wrong = await fault(called, ids);
    const note = (status: MeterCall["status"]) =>
      void calls.push({
        authorization,
        tenant: batch.tenant_id,
        metadata: batch.export_metadata,
        ids,
        status,
      });
    if (wrong?.hang) return note("none");
    if (wrong?.cut) return (note("none"), void request.socket.destroy());
    if (wrong?.status !== undefined) {
      note(wrong.status);
      response.writeHead(wrong.status, wrong.headers).end(wrong.body ?? "");
      return;
    }
    const counted = store(batch);
    note(wrong?.loseAnswer ? "none" : 200);
    if (wrong?.loseAnswer) request.socket.destroy();
    else reply(response, 200, counted);
  }

  function store({ tenant_id: tenant, records: given }: UsageBatch): { inserted: number; updated: number } {
    const before = records.size;
    for (const record of given) records.set(`${tenant}/${String(record.source_event_id)}`, record);
    const inserted = records.size - before;
    return { inserted, updated: given.length - inserted };
  }

  const server = createServer(
    (request, response) => void answer(request, response).catch(() => request.destroy()),
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    records,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

interface UsageBatch {
  readonly tenant_id: string;
  readonly export_metadata: Readonly<Record<string, unknown>>;
  readonly records: readonly Readonly<Record<string, unknown>>[];
}

function readBatch(text: string): UsageBatch | undefined {
  try {
    const batch = JSON.parse(text) as Partial<UsageBatch>;
    const isWhole =
      typeof batch.tenant_id === "string" &&
      Array.isArray(batch.records) &&
      batch.records.length > 0 &&
      batch.records.every((record) => typeof record?.source_event_id === "string");
    return isWhole ? (batch as UsageBatch) : undefined;
  } catch {
    return undefined;
  }
}

async function textOf(request: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  return Buffer.concat(pieces).toString();
}

function reply(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

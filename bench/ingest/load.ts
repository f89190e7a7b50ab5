// The loader: many keep-alive connections, each sends a signed event and waits for its answer before it sends the next.
// Requests are made before the clock runs, and spoken over bare sockets: the loader must cost little beside the server.
import { createHmac } from "node:crypto";
import { connect, type Socket } from "node:net";
import { answerBench } from "../program.ts";

interface Prepare {
  readonly count: number;
  /** Who they are for: only it can have seen an event before. */
  readonly to: string;
  readonly path: string;
  readonly secret: string;
  /** The share of events that were stored before; signed anew, as Stripe does when it sends again. */
  readonly duplicates?: number;
}

interface Load {
  /** Of servers that take turns. */
  readonly ports: readonly number[];
  readonly connections: number;
  readonly seconds: number;
  /** Requests a second in all; left out: as many as are answered. */
  readonly rate?: number;
}

/** What a run came to; latencies in milliseconds. */
export interface Loaded {
  readonly perSecond: number;
  readonly count: number;
  /** How many of them had not been sent before. */
  readonly fresh: number;
  readonly failed: number;
  readonly average: number;
  readonly p50: number;
  readonly p99: number;
}

const BODY_BYTES = 1500;
const FIRST_ID = `${Date.now().toString(36)}${process.pid.toString(36)}`;

/** So many events of each server are remembered, to be sent again. */
const REMEMBERED = 10_000;

interface Request {
  readonly bytes: Buffer;
  /** The body, where it has not been sent before. */
  readonly fresh: string | undefined;
}

let made = 0;
let recipient = "";
let requests: Request[] = [];
const stored = new Map<string, string[]>();

/** Makes the requests of the next run; what is left of the last one is thrown away. */
function prepare({ count, to, path, secret, duplicates = 0 }: Prepare): number {
  const known = stored.get(to) ?? [];
  if (duplicates > 0 && known.length === 0) throw new Error(`nothing was sent to ${to} before`);
  recipient = to;
  requests = Array.from({ length: count }, (_, index): Request => {
    const isAgain = Math.floor((index + 1) * duplicates) > Math.floor(index * duplicates);
    const body = isAgain ? known[index % known.length]! : newBody();
    return { bytes: signedRequest(path, secret, body), fresh: isAgain ? undefined : body };
  });
  return requests.length;
}

function newBody(): string {
  made += 1;
  return bodyOf(`evt_${FIRST_ID}_${made.toString(36).padStart(8, "0")}`);
}

function signedRequest(path: string, secret: string, body: string): Buffer {
  const seconds = Math.floor(Date.now() / 1000);
  const signature = createHmac("sha256", secret).update(`${seconds}.${body}`).digest("hex");
  return Buffer.from(
    `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n` +
      `stripe-signature: t=${seconds},v1=${signature}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

/** An event as Stripe sends it, of the usual size. */
function bodyOf(id: string): string {
  const event = {
    id,
    object: "event",
    api_version: "2026-10-28.acacia",
    created: Math.floor(Date.now() / 1000),
    type: "payment_intent.succeeded",
    livemode: false,
    pending_webhooks: 1,
    request: { id: "req_bench", idempotency_key: null },
    data: {
      object: {
        id: `pi_${id.slice(4)}`,
        object: "payment_intent",
        amount: 4200,
        currency: "jpy",
        customer: "cus_bench",
        status: "succeeded",
        metadata: { reservation: `res_${id.slice(4)}` },
        description: "",
      },
    },
  };
  const bare = Buffer.byteLength(JSON.stringify(event));
  event.data.object.description = "x".repeat(Math.max(0, BODY_BYTES - bare));
  return JSON.stringify(event);
}

/** Sends what was prepared until the time is over, or nothing is left. */
async function load({ ports, connections, seconds, rate }: Load): Promise<Loaded> {
  const sockets = await Promise.all(
    Array.from({ length: connections }, (_, index) => open(ports[index % ports.length]!)),
  );
  const times: number[] = [];
  let next = 0;
  let failed = 0;
  const fresh: string[] = [];
  const beganAt = performance.now();
  const endsAt = beganAt + seconds * 1000;
  const everyMs = rate === undefined ? 0 : 1000 / rate;
  await Promise.all(
    sockets.map(async (socket) => {
      while (performance.now() < endsAt && next < requests.length) {
        const index = next++;
        // at a rate, each is due at its time, whether or not the one before has been answered
        const dueAt = everyMs === 0 ? performance.now() : beganAt + index * everyMs;
        const waitMs = dueAt - performance.now();
        if (waitMs > 0.5) await new Promise((resolve) => setTimeout(resolve, waitMs));
        const request = requests[index]!;
        const status = await exchange(socket, request.bytes);
        times.push(performance.now() - dueAt);
        if (status < 200 || status > 299) failed += 1;
        else if (request.fresh !== undefined) fresh.push(request.fresh);
      }
    }),
  );
  const took = (performance.now() - beganAt) / 1000;
  for (const socket of sockets) socket.destroy();
  if (next >= requests.length && took < seconds / 2) throw new Error("too few requests were prepared");
  const known = stored.get(recipient) ?? [];
  stored.set(recipient, [...known, ...fresh.slice(0, REMEMBERED - known.length)]);
  times.sort((a, b) => a - b);
  const at = (share: number) => times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0;
  return {
    perSecond: times.length / took,
    count: times.length,
    fresh: fresh.length,
    failed,
    average: times.reduce((sum, time) => sum + time, 0) / Math.max(1, times.length),
    p50: at(0.5),
    p99: at(0.99),
  };
}

function open(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: "127.0.0.1", noDelay: true });
    socket.once("connect", () => resolve(socket));
    socket.once("error", reject);
  });
}

/** Sends one request; resolves with the status of its answer. Every server here answers without a body, or with its length. */
function exchange(socket: Socket, request: Buffer): Promise<number> {
  return new Promise((resolve, reject) => {
    let answer = "";
    const onData = (chunk: Buffer) => {
      answer += chunk.toString("latin1");
      const end = answer.indexOf("\r\n\r\n");
      if (end < 0) return;
      const length = Number(/\r\ncontent-length: *(\d+)/i.exec(answer)?.[1] ?? 0);
      if (answer.length < end + 4 + length) return;
      socket.off("data", onData);
      socket.off("close", onClose);
      resolve(Number(answer.slice(9, 12)));
    };
    const onClose = () => reject(new Error("the server closed the connection"));
    socket.on("data", onData);
    socket.once("close", onClose);
    socket.write(request);
  });
}

answerBench({ prepare, load });

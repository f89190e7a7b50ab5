// A sender that behaves as Stripe does, and keeps the independent log by which a server is judged.
import { createHash } from "node:crypto";
import { Agent, request } from "node:http";
import { sampleEvent } from "../../src/testing/sample-events.ts";
import { signStripe } from "../../src/testing/sign.ts";
import { SECRET } from "./server.ts";

/** An event as it is sent: every try carries the same body. */
export interface Letter {
  readonly eventId: string;
  readonly body: string;
  readonly sha256: string;
}

/** What the client was told on one try. */
export interface Answered {
  readonly eventId: string;
  /** 0 where there was no answer. */
  readonly status: number;
  /** Why there was no answer, such as ECONNREFUSED; empty where there was one. */
  readonly fault: string;
  readonly duplicate: boolean;
  readonly messageId: string | undefined;
  readonly retryAfter: string | undefined;
  readonly durationMs: number;
}

export interface SendOptions {
  /** @default the server the sender was made for */
  readonly url?: string;
  /** Seconds since 1970. @default now */
  readonly timestamp?: number;
  /** @default 15000 */
  readonly timeoutMs?: number;
}

export interface Sender {
  /** Every try so far, in the order of the answers. */
  readonly log: readonly Answered[];
  /** One try, signed anew. */
  send(letter: Letter, options?: SendOptions): Promise<Answered>;
  /** Tries until it is told 2xx. After a failure it waits for `again` (a server that is back), or a moment. */
  sendUntilTold(letter: Letter, again?: () => Promise<void>): Promise<Answered>;
  /** Resolves when the log, looked at after every answer, satisfies the condition. */
  when(condition: (log: readonly Answered[]) => boolean, what: string, timeoutMs?: number): Promise<void>;
}

/** Letters with ids of their own: `evt_<prefix>_<number>`. */
export function letters(prefix: string, count: number): Letter[] {
  return Array.from({ length: count }, (_, index) => {
    const eventId = `evt_${prefix}_${index}`;
    const body = sampleEvent("payment_intent.succeeded", { id: eventId });
    return { eventId, body, sha256: createHash("sha256").update(body).digest("hex") };
  });
}

/** Makes a sender. Without keep-alive every try has a connection of its own. */
export function createSender(url: string, options: { keepAlive?: boolean } = {}): Sender {
  const agent = new Agent({ keepAlive: options.keepAlive ?? true });
  const log: Answered[] = [];
  const watchers = new Set<() => void>();

  async function send(letter: Letter, options: SendOptions = {}): Promise<Answered> {
    const answered = await post(agent, options.url ?? url, letter, options);
    log.push(answered);
    for (const watch of watchers) watch();
    return answered;
  }

  return {
    log,
    send,
    async sendUntilTold(letter, again = () => new Promise((resolve) => setTimeout(resolve, 50))) {
      for (;;) {
        const answered = await send(letter);
        if (answered.status >= 200 && answered.status < 300) return answered;
        await again();
      }
    },
    when: (condition, what, timeoutMs = 30_000) =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(() => {
          watchers.delete(watch);
          reject(new Error(`waited ${timeoutMs} ms in vain: ${what}`));
        }, timeoutMs);
        function watch(): void {
          if (!condition(log)) return;
          clearTimeout(timer);
          watchers.delete(watch);
          resolve();
        }
        watchers.add(watch);
        watch();
      }),
  };
}

function post(agent: Agent, url: string, letter: Letter, options: SendOptions): Promise<Answered> {
  const startedAt = performance.now();
  return new Promise((resolve) => {
    const answer = (told: Partial<Answered>) =>
      resolve({
        eventId: letter.eventId,
        status: 0,
        fault: "",
        duplicate: false,
        messageId: undefined,
        retryAfter: undefined,
        durationMs: performance.now() - startedAt,
        ...told,
      });
    const posted = request(`${url}/webhooks/stripe`, {
      agent,
      method: "POST",
      headers: {
        "content-type": "application/json",
        "content-length": Buffer.byteLength(letter.body),
        ...signStripe(letter.body, SECRET, {
          timestamp: options.timestamp ?? Math.floor(Date.now() / 1000),
        }),
      },
      signal: AbortSignal.timeout(options.timeoutMs ?? 15_000),
    });
    posted.on("error", (error: NodeJS.ErrnoException) => answer({ fault: error.code ?? error.message }));
    posted.on("response", (response) => {
      response.on("error", (error: NodeJS.ErrnoException) => answer({ fault: error.code ?? error.message }));
      response.on("end", () =>
        answer({
          status: response.statusCode ?? 0,
          duplicate: response.headers["x-duplicate"] === "true",
          messageId: response.headers["x-message-id"]?.toString(),
          retryAfter: response.headers["retry-after"],
        }),
      );
      response.resume();
    });
    posted.end(letter.body);
  });
}

/** Hands the letters to so many senders at once; resolves when all are dealt with. */
export async function inParallel<T>(
  items: Iterable<T>,
  concurrency: number,
  work: (item: T) => Promise<unknown>,
): Promise<void> {
  const queue = items[Symbol.iterator]();
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      for (let next = queue.next(); !next.done; next = queue.next()) await work(next.value);
    }),
  );
}

/** A signal that can be waited for. */
export function createSignal(): { readonly given: Promise<void>; give(): void } {
  let give!: () => void;
  const given = new Promise<void>((resolve) => (give = resolve));
  return { given, give };
}

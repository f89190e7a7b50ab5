// A configuration tried out in a user's test: its own handlers, on a real PostgreSQL that only this test sees.
import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { sleep } from "../clock.ts";
import type { Config } from "../config.ts";
import { UkemiError } from "../errors.ts";
import { explainFailure, importDefault } from "../cli/load.ts";
import { createUkemi, type Ukemi } from "../ukemi.ts";
import { sampleEvent, type SampleEventOptions } from "./sample-events.ts";
import { signStripe } from "./sign.ts";

/** How a configuration is tried out. */
export interface TrialOptions {
  /**
   * A PostgreSQL for tests; DATABASE_URL is never used, because it may be a real one.
   * @default an embedded one in a new folder, which is removed at the end
   */
  readonly database?: string;
}

/** What the sender was told. */
export interface TrialAnswer {
  /** 204 where the event is committed. */
  readonly status: number;
  /** True where it had been stored before. */
  readonly duplicate: boolean;
}

/** A configuration at work. */
export interface Trial {
  readonly ukemi: Ukemi;
  /** Sends a correctly signed sample of Stripe's to the first source of that kind. */
  send(type: string, options?: SampleEventOptions): Promise<TrialAnswer>;
  /** Waits until every job is done or dead. */
  settled(timeoutMs?: number): Promise<void>;
  /** Asks the database. */
  query<Row extends object>(text: string, values?: unknown[]): Promise<Row[]>;
  /** Ends everything, and removes what was made for it. */
  stop(): Promise<void>;
}

const SECRET_VARIABLE = "STRIPE_WEBHOOK_SECRET";
const POLL_MS = 20;

/** Loads a configuration file, TypeScript included, and starts it with its handlers. Its Stripe secret is made up. */
export async function startTrial(config: string | URL, options: TrialOptions = {}): Promise<Trial> {
  const secret = `whsec_${randomBytes(24).toString("hex")}`;
  process.env[SECRET_VARIABLE] = secret;
  const loaded = await load(config instanceof URL ? fileURLToPath(config) : resolve(config));
  const folder = await mkdtemp(join(tmpdir(), "ukemi-trial-"));
  const ukemi = createUkemi({
    logLevel: "error",
    ...loaded,
    pollMs: POLL_MS,
    database: options.database,
    directUrl: undefined,
    data: folder,
    migrate: true,
  });
  const stop = async () => {
    await ukemi.stop();
    await rm(folder, { recursive: true, force: true });
  };
  try {
    await loaded.handlers?.(ukemi);
    await ukemi.start();
    await ukemi.work();
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    ukemi,
    stop,
    send: (type, event) => send(ukemi, stripeOf(loaded), sampleEvent(type, event), secret),
    settled: (timeoutMs = 30_000) => settled(ukemi, timeoutMs),
    async query<Row extends object>(text: string, values: unknown[] = []) {
      return (await ukemi.store().pool.query<Row>(text, values)).rows;
    },
  };
}

async function load(file: string): Promise<Config> {
  try {
    return (await importDefault(file)) as Config;
  } catch (error) {
    throw new UkemiError("invalid_option", `${file} cannot be loaded: ${explainFailure(error, file)}`, {
      cause: error,
    });
  }
}

function stripeOf({ sources }: Config): string {
  const found = Object.entries(sources).find(([, source]) => source.kind === "stripe");
  if (found) return found[0];
  throw new UkemiError(
    "invalid_option",
    "There is no source of Stripe's to send to: sign a request of your own.",
  );
}

async function send(ukemi: Ukemi, source: string, body: string, secret: string): Promise<TrialAnswer> {
  const headers = { "content-type": "application/json", ...signStripe(body, secret) };
  const request = new Request(`http://127.0.0.1/webhooks/${source}`, { method: "POST", headers, body });
  const response = await ukemi.receiver(source)(request);
  return { status: response.status, duplicate: response.headers.get("x-duplicate") === "true" };
}

async function settled(ukemi: Ukemi, timeoutMs: number): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const queues = await ukemi.operate.queues.list();
    const left = queues.reduce(
      (sum, { ready, scheduled, waiting, running }) => sum + ready + scheduled + waiting + running,
      0,
    );
    if (left === 0) return;
    if (performance.now() > deadline) {
      throw new UkemiError("invalid_option", `${left} jobs are neither done nor dead after ${timeoutMs} ms.`);
    }
    await sleep(POLL_MS);
  }
}

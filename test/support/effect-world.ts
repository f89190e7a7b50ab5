// Peers that keep their own logs, and worker processes that carry out effects: tests kill them, stop them, or let them compete.
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { registerSubscription } from "../../src/storage/subscriptions.ts";
import { startApiMeter } from "../../src/testing/api-meter.ts";
import type { UkemiOptions } from "../../src/ukemi.ts";
import { createDatabase } from "./database.ts";
import { startPeer } from "./http-peer.ts";
import { writeTemplates } from "./mail-world.ts";
import { cleanEnv, SECRET } from "./server.ts";
import { startSmtpInbox, type SmtpInboxOptions } from "./smtp-inbox.ts";
import { until } from "./until.ts";
import { makeUkemi } from "./work.ts";

const APP = fileURLToPath(new URL("effect-app.mjs", import.meta.url));
const TYPE = "payment_intent.succeeded";

export interface EffectWorldOptions {
  readonly inbox?: SmtpInboxOptions;
  /** What the worker processes are told beside what they need. */
  readonly app?: Partial<UkemiOptions>;
}

export type EffectWorld = Awaited<ReturnType<typeof startEffectWorld>>;

/** A database, and the peers. `ukemi` plans effects, and carries out none. */
export async function startEffectWorld({ inbox: inboxOptions, app = {} }: EffectWorldOptions = {}) {
  const inbox = await startSmtpInbox(inboxOptions);
  const peer = await startPeer((response) => response.end("{}"));
  const meter = await startApiMeter();
  onTestFinished(async () => void (await Promise.all([inbox.stop(), peer.stop(), meter.stop()])));
  const { url, pool } = await createDatabase();
  await registerSubscription(pool, { name: `stripe/${TYPE}`, source: "stripe", pattern: TYPE });
  const mail = { smtpUrl: inbox.url, mailFrom: "shop@example.com", mailTemplates: await writeTemplates() };
  const options = JSON.stringify({
    ...mail,
    apiMeterUrl: meter.url,
    apiMeterToken: "token",
    apiMeterTenant: "acme",
    usageBatchSize: 100,
    ...app,
  });
  const env = { DATABASE_URL: url, PEER_URL: peer.url, EFFECT_SECRET: SECRET, EFFECT_OPTIONS: options };
  const { ukemi } = makeUkemi(url, { ...mail, http: { allow: [peer.url] } });
  return { url, pool, inbox, peer, meter, ukemi, start: (more = {}) => startApp({ ...env, ...more }) };
}

/** A process that carries out effects. */
export interface EffectProcess {
  readonly child: ChildProcess;
  readonly ended: Promise<unknown>;
  /** Everything it has written so far, both streams. */
  output(): string;
  /** Resolves as soon as it has written this. */
  says(text: string): Promise<void>;
  /** Lets it end what it has begun. */
  stop(): Promise<void>;
}

function startApp(env: Readonly<Record<string, string>>): EffectProcess {
  const child = spawn(process.execPath, [APP], {
    env: { ...cleanEnv(), ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let output = "";
  child.stdout.on("data", (piece: Buffer) => (output += piece.toString()));
  child.stderr.on("data", (piece: Buffer) => (output += piece.toString()));
  const ended = once(child, "close");
  return {
    child,
    ended,
    output: () => output,
    says: (text) => until(() => output.includes(text), `a process to say ${JSON.stringify(text)}`),
    async stop() {
      child.kill("SIGTERM");
      await ended;
    },
  };
}

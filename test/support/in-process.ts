// A Ukemi with its HTTP server inside the test's own process, stopped when the test ends.
import { onTestFinished } from "vitest";
import { createLogger } from "../../src/observe/log.ts";
import { startServer, type RunningServer } from "../../src/server/server.ts";
import { stripe } from "../../src/sources/stripe.ts";
import { createUkemi, type Ukemi, type UkemiOptions } from "../../src/ukemi.ts";
import { SECRET } from "./server.ts";

/** A running server, with what it logged. */
export interface TestServer extends RunningServer {
  readonly ukemi: Ukemi;
  /** The log lines so far, parsed. */
  lines(): Record<string, unknown>[];
}

/** Starts on a free port; Stripe is the source unless others are given. */
export async function startTestServer(options: Partial<UkemiOptions>): Promise<TestServer> {
  const written: string[] = [];
  const ukemi = createUkemi({
    port: 0,
    sources: { stripe: stripe({ secrets: [SECRET] }) },
    logger: createLogger("debug", { write: (line) => void written.push(line) }),
    ...options,
  });
  onTestFinished(() => ukemi.stop());
  await ukemi.start();
  const server = await startServer(ukemi);
  onTestFinished(() => server.stop());
  return {
    ...server,
    ukemi,
    lines: () => written.map((line) => JSON.parse(line) as Record<string, unknown>),
  };
}

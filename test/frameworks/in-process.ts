// A Ukemi and a server in the test's own process, for what an example would not show.
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import { createLogger } from "../../src/observe/log.ts";
import { stripe } from "../../src/sources/stripe.ts";
import { createUkemi, type UkemiOptions } from "../../src/ukemi.ts";
import { createDatabase } from "../support/database.ts";
import { SECRET } from "../support/server.ts";

/** A Ukemi on a database of its own, with what it logs. It starts at the first delivery. */
export async function createTestUkemi(options: Partial<UkemiOptions> = {}) {
  const { url, pool } = await createDatabase();
  const written: string[] = [];
  const ukemi = createUkemi({
    database: url,
    sources: { stripe: stripe({ secrets: [SECRET] }) },
    logger: createLogger("debug", { write: (line) => void written.push(line) }),
    ...options,
  });
  onTestFinished(() => ukemi.stop());
  const lines = (level?: string) =>
    written
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter((line) => level === undefined || line.level === level);
  return { ukemi, pool, lines };
}

/** Listens on a free port until the test ends; resolves with the URL. */
export async function listen(
  listener: (...request: Parameters<RequestListener>) => unknown,
): Promise<string> {
  const server = createServer((request, response) => void listener(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

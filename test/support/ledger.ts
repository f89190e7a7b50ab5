// Rows of the ledger without anybody who carries them out, and a world with a peer that does what it is told.
import type { ServerResponse } from "node:http";
import { onTestFinished } from "vitest";
import { uuidv7 } from "../../src/storage/ids.ts";
import type { Pool } from "../../src/storage/postgres.ts";
import type { UkemiOptions } from "../../src/ukemi.ts";
import { createDatabase } from "./database.ts";
import { startPeer, type PeerAnswer } from "./http-peer.ts";
import { startTestServer } from "./in-process.ts";

/** The peer's answer: JSON of this status. */
export function answerWith(response: ServerResponse, status: number, body: unknown = {}): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}

/** Never answers: the call stays without anybody knowing whether it was heard. */
export const hangUp: PeerAnswer = (_, request) => request.socket.destroy();

/** A server whose process also plans effects to a peer; the test calls work() where they are to be carried out. */
export async function startLedger(
  peerAnswer: PeerAnswer = (response) => answerWith(response, 200),
  options: Partial<UkemiOptions> = {},
) {
  const peer = await startPeer(peerAnswer);
  onTestFinished(() => peer.stop());
  const store = await createDatabase();
  const server = await startTestServer({
    database: store.url,
    pollMs: 50,
    http: {
      allow: [peer.url],
      tries: 3,
      destinations: { [peer.url]: { headers: { authorization: "Bearer token" } } },
    },
    ...options,
  });
  return { ...store, ...server, store, peer };
}

let made = 0;

/** A row of the ledger; what is not given is that of a mail that was sent. */
export async function insertEffect(
  pool: Pool,
  { state = "done", ...changes }: Readonly<Record<string, unknown>> & { readonly state?: string } = {},
): Promise<string> {
  made += 1;
  const id = uuidv7(Date.now() + made); // those of one millisecond have no order
  const row = {
    id,
    kind: "email",
    tenant: null,
    dedupe_key: `key:${id}`,
    state,
    target: "jane@example.com",
    intent: JSON.stringify({
      template: "receipt",
      to: "Jane@Example.com",
      locale: "en",
      data: { pin: "1234" },
    }),
    destination: "smtp://mail.example.com",
    on_uncertain: "retry",
    max_attempts: 3,
    planned_at: new Date(),
    ...(ENDED.includes(state) ? { ended_at: new Date() } : {}),
    ...changes,
  };
  const names = Object.keys(row);
  await pool.query(
    `insert into ukemi.effects (${names.join(", ")}) values (${names.map((_, index) => `$${index + 1}`).join(", ")})`,
    Object.values(row),
  );
  return id;
}

const ENDED = ["done", "failed", "cancelled", "suppressed"];

/** The state of each effect as it lies in the table, by id. */
export async function readStates(pool: Pool): Promise<Record<string, string>> {
  const { rows } = await pool.query<{ id: string; state: string }>(
    "select id::text, state from ukemi.effects order by id",
  );
  return Object.fromEntries(rows.map(({ id, state }) => [id, state]));
}

// Stored events in an operator's hands: look for them, read one whole.
import { listEvents, type EventFilter, type ListedEvent } from "../storage/event-list.ts";
import { readBody, showEvent, type StoredEvent } from "../storage/event-show.ts";
import { pageOf, type Page } from "../storage/conditions.ts";
import type { Read } from "./dead.ts";
import { readPage, type PageRequest } from "./page.ts";

/** An event with its body. */
export interface ShownEvent extends StoredEvent {
  /** Whether the body is there. */
  readonly body_state: "kept" | "gone";
  /** As text where it is UTF-8, else as base64; null where it is gone. */
  readonly body: string | null;
  readonly body_encoding: "utf8" | "base64" | null;
  /** True where only the first part is shown: the whole is at `/events/{id}/body`. */
  readonly body_cut: boolean;
  readonly headers: Readonly<Record<string, unknown>> | null;
}

/** What can be read of stored events. */
export interface EventReader {
  /** Newest first. */
  list(filter?: Omit<EventFilter, "limit" | "before">, page?: PageRequest): Promise<Page<ListedEvent>>;
  /** By our id or by the sender's. */
  show(id: string, tenants?: readonly string[]): Promise<ShownEvent | undefined>;
  /** The raw bytes, as they came; undefined where the event or its body is not there. */
  body(id: string, tenants?: readonly string[]): Promise<Buffer | undefined>;
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** More of a body would not be read by a person. */
const SHOWN_BYTES = 1024 * 1024;

export function createEventReader(read: Read): EventReader {
  return {
    async list(filter = {}, page = {}) {
      const { limit, before } = readPage(page, UUID);
      const wanted = { ...filter, limit: limit + 1, ...(before === undefined ? {} : { before }) };
      const rows = await read((client) => listEvents(client, wanted));
      return pageOf(rows, limit, (event) => event.id);
    },
    show: (id, tenants) =>
      read(async (client) => {
        const event = await showEvent(client, id, tenants);
        if (!event) return undefined;
        const stored = await readBody(client, event.id);
        return { ...event, ...shownBody(stored?.body), headers: stored ? headersOf(stored.headers) : null };
      }),
    body: (id, tenants) =>
      read(async (client) => {
        const event = await showEvent(client, id, tenants);
        return event && (await readBody(client, event.id))?.body;
      }),
  };
}

function shownBody(
  body: Buffer | undefined,
): Pick<ShownEvent, "body_state" | "body" | "body_encoding" | "body_cut"> {
  if (!body) return { body_state: "gone", body: null, body_encoding: null, body_cut: false };
  const isCut = body.length > SHOWN_BYTES;
  const part = body.subarray(0, SHOWN_BYTES);
  const text = isCut ? part.toString("utf8") : textOf(part);
  return {
    body_state: "kept",
    body: text ?? part.toString("base64"),
    body_encoding: text === undefined ? "base64" : "utf8",
    body_cut: isCut,
  };
}

/** Undefined where the bytes are not UTF-8: shown as text they would be other bytes. */
function textOf(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

const headersOf = (text: string) => JSON.parse(text) as Readonly<Record<string, unknown>>;

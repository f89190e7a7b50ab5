// Stored events in an operator's hands: look for them, read one whole.
import { listEvents, type EventFilter, type ListedEvent } from "../storage/event-list.ts";
import type { ShownBody } from "../storage/bodies.ts";
import { showEvent, type StoredEvent } from "../storage/event-show.ts";
import type { Keyring } from "../storage/keyring.ts";
import { pageOf, type Page } from "../storage/conditions.ts";
import type { Bodies } from "./bodies.ts";
import type { Read } from "./read.ts";
import { readPage, UUID, type PageRequest } from "./page.ts";

/** An event with its body. */
export interface ShownEvent extends StoredEvent {
  /** `pruned` is what retention did, `erased` what an operator did. */
  readonly body_state: ShownBody["state"];
  readonly body_erased_at: Date | null;
  /** The data key that the body is sealed with; null where it lies as it came. */
  readonly data_key: string | null;
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

/** More of a body would not be read by a person. */
const SHOWN_BYTES = 1024 * 1024;

export function createEventReader(read: Read, bodies: Bodies, keyring: Keyring): EventReader {
  return {
    async list(filter = {}, page = {}) {
      const { limit, before } = readPage(page, UUID);
      const wanted = { ...filter, limit: limit + 1, ...(before === undefined ? {} : { before }) };
      const rows = await read((client) => listEvents(client, wanted));
      return pageOf(rows, limit, (event) => event.id);
    },
    async show(id, tenants) {
      const event = await read((client) => showEvent(client, id, tenants, keyring));
      const body = event && (await bodies.show(event.id));
      return body && { ...event, ...describeBody(body) };
    },
    async body(id, tenants) {
      const body = await bodies.show(id, { ...(tenants && { tenants }) });
      return body?.body_base64 == null ? undefined : Buffer.from(body.body_base64, "base64");
    },
  };
}

type BodyFacts = Omit<ShownEvent, keyof StoredEvent>;

function describeBody({ state, erased_at, data_key, headers, body_base64 }: ShownBody): BodyFacts {
  const facts = { body_state: state, body_erased_at: erased_at, data_key, headers };
  if (body_base64 === null) return { ...facts, body: null, body_encoding: null, body_cut: false };
  const bytes = Buffer.from(body_base64, "base64");
  const isCut = bytes.length > SHOWN_BYTES;
  const part = bytes.subarray(0, SHOWN_BYTES);
  const text = isCut ? part.toString() : textOf(part);
  const shown =
    text === undefined
      ? { body: body_base64, body_encoding: "base64" as const }
      : { body: text, body_encoding: "utf8" as const };
  return { ...facts, ...shown, body_cut: isCut };
}

/** Undefined where the bytes are not UTF-8: shown as text they would be other bytes. */
function textOf(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

// An intent as its kind makes it: what is to be done, and to whom. Who decided it is added when it is planned.
import { UkemiError } from "../errors.ts";
import type { Intent } from "../storage/effects-plan.ts";

export type Draft = Omit<Intent, "tenant" | "event" | "cause" | "handler">;

/** What every effect may be told, whatever its kind. */
export interface EffectOptions {
  /** Unique for the tenant and the kind, for ever: what was intended once under this key never happens a second time. */
  readonly dedupe: string;
  /** The effect that must be done first: its id, or what planning it returned. */
  readonly after?: string | { readonly id: string };
  /**
   * What follows where nobody knows whether the call was heard: it is made again with the same key, or a person decides.
   * @default "retry" for mail and for peers that know the key again, else "hold"
   */
  readonly onUncertain?: "retry" | "hold";
}

/** Checks what is the same for all kinds. */
export function readOptions(
  kind: string,
  { dedupe, after, onUncertain }: EffectOptions,
): {
  readonly dedupeKey: string;
  readonly after: string | null;
  readonly onUncertain: "retry" | "hold" | undefined;
} {
  if (!isKey(dedupe)) {
    throw wrong(
      kind,
      "dedupe is needed: 1 to 255 bytes without control characters, the same whenever the same act is meant",
    );
  }
  const id = typeof after === "object" ? after.id : after;
  if (id !== undefined && !isId(id))
    throw wrong(kind, "after must be what planning the other effect returned, or its id");
  if (onUncertain !== undefined && onUncertain !== "retry" && onUncertain !== "hold") {
    throw wrong(kind, 'onUncertain must be "retry" or "hold"');
  }
  return { dedupeKey: dedupe, after: id ?? null, onUncertain };
}

/** Checks for whom it is; null where it is for nobody in particular. */
export function readTenant(kind: string, tenant: string | undefined): string | null {
  if (tenant === undefined) return null;
  if (!isKey(tenant)) throw wrong(kind, "tenant must be 1 to 255 bytes without control characters");
  return tenant;
}

/** An intent that cannot be planned, and what to do about it. */
export function wrong(kind: string, what: string): UkemiError {
  return new UkemiError("invalid_option", `effects.${kind}: ${what}.`);
}

function isKey(value: unknown): value is string {
  return (
    typeof value === "string" &&
    value !== "" &&
    Buffer.byteLength(value) <= 255 &&
    !/[\p{Cc}\p{Cs}]/u.test(value)
  );
}

function isId(value: unknown): boolean {
  return typeof value === "string" && /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(value);
}

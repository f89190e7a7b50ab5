// Times as people write and read them.
import { UkemiError } from "../errors.ts";

const UNIT_MS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** Reads a time in ISO 8601, or how long ago: `90m`, `2h`, `3d`. */
export function readMoment(flag: string, text: string, now = Date.now()): Date {
  const [, count, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  if (count !== undefined) return new Date(now - Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS]);
  const time = new Date(text);
  if (!/^\d{4}-\d{2}-\d{2}/.test(text) || Number.isNaN(time.getTime())) {
    throw new UkemiError(
      "invalid_option",
      `${flag} must be a time such as 2026-11-15T09:00:00Z, or how long ago: 90m, 2h, 3d.`,
    );
  }
  return time;
}

/** Reads a span of time in milliseconds: `90m`, `2h`, `3d`. */
export function readSpan(flag: string, text: string): number {
  const [, count, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  if (count !== undefined) return Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS];
  throw new UkemiError("invalid_option", `${flag} must be a span of time such as 90m, 2h or 3d.`);
}

/** A span of time in its largest unit: `3 min`. */
export function showSpan(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} d`;
}

/** How long ago. */
export function showAgo(time: Date | string, now = Date.now()): string {
  return `${showSpan(now - new Date(time).getTime())} ago`;
}

/** How long it will be. */
export function showUntil(time: Date | string, now = Date.now()): string {
  return `in ${showSpan(new Date(time).getTime() - now)}`;
}

/** A time to the second, in UTC. */
export function showTime(time: Date | string): string {
  return new Date(time)
    .toISOString()
    .replace("T", " ")
    .replace(/\.\d+Z$/, "Z");
}

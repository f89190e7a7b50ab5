// Pages of a list: how many, and where the page before ended.
import { wrong } from "./mandate.ts";

/** What a caller asks for of a list. */
export interface PageRequest {
  /** @default 50 */
  readonly limit?: number | undefined;
  /** The cursor of the answer before. */
  readonly cursor?: string | undefined;
}

export const LIMIT_MAX = 200;
export const LIMIT_DEFAULT = 50;

/** The limit, or an error that names it. */
export function readLimit(limit: number = LIMIT_DEFAULT): number {
  if (!Number.isInteger(limit) || limit < 1 || limit > LIMIT_MAX) {
    throw wrong("limit", `must be a whole number from 1 to ${LIMIT_MAX}`);
  }
  return limit;
}

/** The page of a list whose cursor has this form. */
export function readPage(
  { limit, cursor }: PageRequest,
  form: RegExp,
): { readonly limit: number; readonly before?: string } {
  if (cursor !== undefined && !form.test(cursor)) {
    throw wrong("cursor", "must be the cursor of an earlier answer");
  }
  return { limit: readLimit(limit), ...(cursor === undefined ? {} : { before: cursor }) };
}

/** A cursor that is a row's number. */
export const NUMBER = /^\d{1,18}$/;

/** A cursor that is one of our ids. */
export const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

// Parameters that several routes have in common.
import { Type } from "typebox";
import { LIMIT_DEFAULT, LIMIT_MAX } from "../operate/page.ts";
import { Time } from "./things.ts";

/** The longest text of a filter. */
const TEXT_MAX = 500;
/** The longest reason. */
const REASON_MAX = 500;

/** Text that narrows a list. */
export const Text = (description: string) =>
  Type.String({ description, minLength: 1, maxLength: TEXT_MAX, pattern: "\\S" });

/** Which page of a list. */
export const PAGE = {
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: LIMIT_MAX, default: LIMIT_DEFAULT, description: "How many items." }),
  ),
  cursor: Type.Optional(Text("The cursor of the answer before.")),
};

/** From when, and until when. */
export const span = (what: string) => ({
  since: Type.Optional(Type.Unsafe<string>({ ...Time, description: `${what} at this time or later.` })),
  until: Type.Optional(Type.Unsafe<string>({ ...Time, description: `${what} before this time.` })),
});

/** Why something is changed. */
export const REASON = {
  reason: Type.String({
    minLength: 1,
    maxLength: REASON_MAX,
    description: "Why, in words. Kept in the audit.",
  }),
};

/** The times of a span as dates, where they were given. */
export function timesOf({
  since,
  until,
}: {
  readonly since?: string | undefined;
  readonly until?: string | undefined;
}): {
  readonly since?: Date;
  readonly until?: Date;
} {
  return {
    ...(since === undefined ? {} : { since: new Date(since) }),
    ...(until === undefined ? {} : { until: new Date(until) }),
  };
}

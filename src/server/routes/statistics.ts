// /api/v1/stats: how many events came in each hour, of each type, and what was unusual.
import { Type } from "typebox";
import { HOURS_DAYS_MAX, TYPES_DAYS_MAX } from "../../operate/statistics.ts";
import { PAGE, span, Text, timesOf } from "../fields.ts";
import { route, type Route } from "../route.ts";
import { Many, OneOf, OrNull, Time, pageOf, thing } from "../things.ts";

const countFacts = {
  received: Type.Integer(),
  pending: Type.Integer(),
  success: Type.Integer(),
  failed: Type.Integer(),
  skipped: Type.Integer(),
  unrouted: Type.Integer(),
};

const HourCount = thing("HourCount", {
  hour: Time,
  source: Type.String(),
  type: Type.String(),
  ...countFacts,
});

const TypeCount = thing("TypeCount", {
  source: Type.String(),
  type: Type.String(),
  ...countFacts,
  last_received_at: Time,
  success_share: OrNull(Type.Number()),
});

const Anomaly = thing("Anomaly", {
  id: Type.Integer(),
  hour: Time,
  source: Type.String(),
  type: Type.String(),
  kind: OneOf(["high", "low", "silent"]),
  received: Type.Integer(),
  expected_low: Type.Number(),
  expected_high: Type.Number(),
  noticed_at: Time,
  ended_at: OrNull(Time),
});

const DAY_MS = 86_400_000;

/** What every answer says about the counts themselves. */
const COUNTED = {
  counted_until: OrNull(
    Type.Unsafe<Date | string>({ ...Time, description: "The counts lag behind by about a minute." }),
  ),
  hours_to_count: Type.Integer({ description: "Hours that are still to be counted, after the first start." }),
};

/** The span that was asked for; the last 24 hours where nothing was. */
function spanOf(
  query: { readonly since?: string | undefined; readonly until?: string | undefined },
  daysMax: number,
) {
  const now = Date.now();
  const { until, since = new Date(Math.min(now, until?.getTime() ?? now) - DAY_MS) } = timesOf(query);
  // this machine's clock may be behind the database's
  return { since, until: until ?? new Date(Math.min(now + DAY_MS, since.getTime() + daysMax * DAY_MS)) };
}

export const statisticsRoutes: readonly Route[] = [
  route({
    id: "countTypes",
    method: "GET",
    path: "/stats",
    scope: "read",
    reach: "tenants",
    text: "Counts events by source, type and outcome; of the last 24 hours where nothing else is said.",
    query: Type.Object(span("Received")),
    answer: Type.Object({ ...COUNTED, items: Many(TypeCount) }, { additionalProperties: false }),
    run: ({ query, caller: { tenants } }, { statistics }) =>
      statistics.types({ ...spanOf(query, TYPES_DAYS_MAX), tenants }),
  }),
  route({
    id: "countHours",
    method: "GET",
    path: "/stats/hours",
    scope: "read",
    reach: "tenants",
    text: "Counts events by hour (UTC), source, type and outcome; at most 31 days.",
    query: Type.Object({
      source: Type.Optional(Text("Only of this source.")),
      type: Type.Optional(Text("Only of this type.")),
      ...span("Received"),
    }),
    answer: Type.Object({ ...COUNTED, items: Many(HourCount) }, { additionalProperties: false }),
    run: ({ query: { since, until, ...filter }, caller: { tenants } }, { statistics }) =>
      statistics.hours({ ...filter, ...spanOf({ since, until }, HOURS_DAYS_MAX), tenants }),
  }),
  route({
    id: "listAnomalies",
    method: "GET",
    path: "/stats/anomalies",
    scope: "read",
    reach: "everything",
    text: "Lists hours in which a type came more or less often than usual, or fell silent; the last noticed first.",
    query: Type.Object({ ...span("Hours that began"), ...PAGE }),
    answer: pageOf(Anomaly),
    run: ({ query: { since, until, ...page } }, { statistics }) =>
      statistics.anomalies({
        since: since === undefined ? new Date(0) : new Date(since),
        until: until === undefined ? new Date(Date.now() + DAY_MS) : new Date(until),
        ...page,
      }),
  }),
];

// /api/v1/retention: what goes when.
import { Type } from "typebox";
import { route, type Route } from "../route.ts";
import { Many, text, thing } from "../things.ts";

const Count = thing("Count", {
  count: Type.Integer(),
  exact: Type.Boolean({ description: "False where it is an estimate." }),
});

const RetentionPreview = thing("RetentionPreview", {
  body_days: Type.Integer({ description: "0: for ever." }),
  attempt_days: Type.Integer(),
  job_days: Type.Integer(),
  effect_days: Type.Integer(),
  longer_elsewhere: Many(
    text("A limit that another process has longer than this server, such as body_days."),
  ),
  months: Many(
    thing("RetentionMonth", {
      month: Type.String(),
      bodies: Count,
      kept: Count,
      bytes: Type.Integer(),
    }),
  ),
  stray_bodies: Count,
  jobs: Count,
  attempts: Count,
  workers: Count,
  operations: Count,
  effects: Count,
  effect_attempts: Count,
  destination_hours: Count,
});

export const retentionRoutes: readonly Route[] = [
  route({
    id: "previewRetention",
    method: "GET",
    path: "/retention",
    scope: "read",
    reach: "everything",
    text: "How long things are kept, and what the next pruning would remove.",
    answer: RetentionPreview,
    run: (_, { retention }) => retention.preview(),
  }),
];

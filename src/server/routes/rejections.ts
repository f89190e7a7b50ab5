// /api/v1/rejections: what was refused, and why.
import { Type } from "typebox";
import { UkemiError } from "../../errors.ts";
import { PAGE, span, Text, timesOf } from "../fields.ts";
import { route, type Route } from "../route.ts";
import { OrNull, Time, pageOf, text, thing } from "../things.ts";
import { readId } from "./jobs.ts";

const rejectionFacts = {
  id: Type.Integer(),
  received_at: Time,
  source: Type.String(),
  reason: Type.String(),
  diagnosis: Type.String(),
  address: OrNull(text("Masked.")),
  request_id: Type.String(),
  body_bytes: Type.Integer(),
};

const Rejection = thing("Rejection", rejectionFacts);

const RejectionDetail = thing("RejectionDetail", {
  ...rejectionFacts,
  headers: Type.Record(Type.String(), Type.Unknown()),
  body_sample: text("The first bytes of the body."),
});

export const rejectionRoutes: readonly Route[] = [
  route({
    id: "listRejections",
    method: "GET",
    path: "/rejections",
    scope: "read",
    reach: "everything",
    text: "Lists requests that were refused, newest first, each with its diagnosis.",
    query: Type.Object({
      source: Type.Optional(Text("Only of this source.")),
      reason: Type.Optional(Text("Only refused for this reason.")),
      ...span("Received"),
      ...PAGE,
    }),
    answer: pageOf(Rejection),
    run: ({ query: { limit, cursor, since, until, ...filter } }, { rejections }) =>
      rejections.list({ ...filter, ...timesOf({ since, until }) }, { limit, cursor }),
  }),
  route({
    id: "getRejection",
    method: "GET",
    path: "/rejections/{id}",
    scope: "read",
    reach: "everything",
    text: "One refused request with what was kept of it.",
    answer: RejectionDetail,
    async run({ params }, { rejections }) {
      const rejection = await rejections.show(readId(params.id!));
      if (!rejection) throw new UkemiError("not_found", "There is no refused request with this id.");
      return rejection;
    },
  }),
];

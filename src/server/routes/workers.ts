// /api/v1/workers: who does the work.
import { Type } from "typebox";
import { route, type Route } from "../route.ts";
import { Names, OneOf, OrNull, Time, listOf, thing } from "../things.ts";

const Worker = thing("Worker", {
  id: Type.String(),
  host: Type.String(),
  pid: Type.Integer(),
  version: Type.String(),
  state: OneOf(["live", "missing", "stopped", "replaced", "lost"]),
  handlers: Names,
  queues: Names,
  running: Type.Integer(),
  has_session: Type.Boolean(),
  started_at: Time,
  seen_at: Time,
  ended_at: OrNull(Time),
});

export const workerRoutes: readonly Route[] = [
  route({
    id: "listWorkers",
    method: "GET",
    path: "/workers",
    scope: "read",
    reach: "everything",
    text: "Lists the workers that live, with what each has in hand.",
    query: Type.Object({
      ended: Type.Optional(Type.Boolean({ description: "Also those that have ended.", default: false })),
    }),
    answer: listOf(Worker),
    run: async ({ query }, { workers }) => ({ items: await workers.list(query.ended) }),
  }),
];

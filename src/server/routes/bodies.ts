// /api/v1/erasures and /data-keys: whose bodies are erased, and what bodies are sealed with.
import { Type } from "typebox";
import { REASON, Text } from "../fields.ts";
import { route, type Route } from "../route.ts";
import { Time, listOf, text, thing } from "../things.ts";

const Erasure = thing("Erasure", {
  dry_run: Type.Boolean(),
  events: Type.Integer(),
  bodies: Type.Integer(),
  effects: Type.Integer({ description: "Effects that these events decided, and that hold what was sent." }),
  rejections: Type.Integer(),
  unfinished: Type.Optional(Type.Integer({ description: "Jobs and effects that have not ended." })),
  running: Type.Optional(Type.Integer()),
  dead: Type.Optional(Type.Integer({ description: "Dead letters that could not be replayed any more." })),
  jobs_cancelled: Type.Optional(Type.Integer()),
  left_running: Type.Optional(Type.Integer()),
  left_unfinished: Type.Optional(Type.Integer()),
  stopped: Type.Optional(Type.Boolean()),
});

const DataKey = thing("DataKey", {
  id: Type.String(),
  wrapped_by: text("The name of the master key that opens it."),
  created_at: Time,
  opens: Type.Boolean({ description: "False where the server's bodyKeys do not open it." }),
});

export const bodyRoutes: readonly Route[] = [
  route({
    id: "eraseBodies",
    method: "POST",
    manner: "many_commits",
    refuses: ["body_needed"],
    path: "/erasures",
    scope: "admin",
    reach: "tenants",
    text: "Removes the bodies of every event that carries a ref, what was sent because of them, and what errors may have taken from them.",
    body: Type.Object({
      ref: Type.Optional(Text("The subject's id, or kind:id. This, or an event.")),
      event: Type.Optional(Text("One event, by our id or by the sender's.")),
      include_unfinished: Type.Optional(
        Type.Boolean({
          default: false,
          description: "Also where jobs still need the body: unfinished ones are cancelled.",
        }),
      ),
      dry_run: Type.Optional(Type.Boolean({ description: "Only say what would be removed." })),
      reason: Type.Optional(REASON.reason),
    }),
    answer: Erasure,
    async run({ body, caller: { tenants }, mandate }, { bodies }) {
      const { ref, event, include_unfinished: includeUnfinished, dry_run: dryRun } = body;
      const request = {
        ...(ref === undefined ? {} : { ref }),
        ...(event === undefined ? {} : { event }),
        ...(includeUnfinished === undefined ? {} : { includeUnfinished }),
        ...(tenants && { tenants }),
      };
      return dryRun
        ? { dry_run: true, ...(await bodies.previewErase(request)) }
        : { dry_run: false, ...(await bodies.erase(request, mandate)) };
    },
  }),
  route({
    id: "listDataKeys",
    method: "GET",
    path: "/data-keys",
    scope: "admin",
    reach: "everything",
    text: "Lists the data keys that bodies are sealed with, the oldest first.",
    answer: listOf(DataKey),
    run: async (_, { bodies }) => ({ items: await bodies.keys() }),
  }),
];

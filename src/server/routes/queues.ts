// /api/v1/queues and /api/v1/handlers: what waits where, and holding it up.
import { Type } from "typebox";
import { UkemiError } from "../../errors.ts";
import { REASON } from "../fields.ts";
import { route, type Route } from "../route.ts";
import { OneOf, OrNull, Time, count, listOf, text, thing } from "../things.ts";

const Queue = thing("Queue", {
  name: Type.String(),
  paused: Type.Boolean(),
  reason: OrNull(text("Why it was paused or resumed last.")),
  changed_at: OrNull(Time),
  ready: Type.Integer(),
  scheduled: Type.Integer(),
  waiting: Type.Integer(),
  running: Type.Integer(),
  dead: Type.Integer(),
  oldest_ready_seconds: OrNull(Type.Number()),
});

const Handler = thing("Handler", {
  name: Type.String(),
  kind: OneOf(["handler", "task", "effect"]),
  source: OrNull(Type.String()),
  pattern: OrNull(Type.String()),
  queue: OrNull(Type.String()),
  active: Type.Boolean({ description: "False where it was removed: new events make no jobs for it." }),
  workers: count("How many live workers have it."),
  unfinished: Type.Integer(),
  dead: Type.Integer(),
  orphaned: Type.Boolean({ description: "True where jobs wait for it and no live worker has it." }),
});

const change = (act: "pause" | "resume", text: string) =>
  route({
    id: `${act}Queue`,
    method: "POST",
    path: `/queues/{name}/${act}`,
    scope: "operate",
    reach: "everything",
    text,
    body: Type.Object(REASON),
    answer: thing("QueueChange", {
      name: Type.String(),
      paused: Type.Boolean(),
      changed: Type.Boolean({ description: "False where it was so before." }),
    }),
    run: ({ params, mandate }, { queues }) => queues[act](params.name!, mandate),
  });

export const queueRoutes: readonly Route[] = [
  route({
    id: "listQueues",
    method: "GET",
    path: "/queues",
    scope: "read",
    reach: "everything",
    text: "Lists the queues with what waits in them.",
    answer: listOf(Queue),
    run: async (_, { queues }) => ({ items: await queues.list() }),
  }),
  change("pause", "Lets no worker claim jobs of a queue; those that run go on to their end."),
  change("resume", "Lets workers claim jobs of a queue again."),
  route({
    id: "listHandlers",
    method: "GET",
    path: "/handlers",
    scope: "read",
    reach: "everything",
    text: "Lists handlers and tasks, who has them, and what waits for them.",
    answer: listOf(Handler),
    run: async (_, { handlers }) => ({ items: await handlers.list() }),
  }),
  route({
    id: "removeHandler",
    method: "POST",
    path: "/handlers/{name}/remove",
    scope: "operate",
    reach: "everything",
    text: "Takes back a handler's claim on events; its jobs stay.",
    body: Type.Object(REASON),
    answer: thing("HandlerRemoval", { name: Type.String() }),
    async run({ params, mandate }, { handlers }) {
      const name = params.name!;
      if (await handlers.remove(name, mandate)) return { name };
      throw new UkemiError(
        "not_found",
        `There is no active handler named ${JSON.stringify(name)}: \`ukemi handlers\` lists them.`,
      );
    },
  }),
];

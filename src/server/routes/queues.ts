// /api/v1/queues: what waits in each queue, and holding one up.
import { Hono } from "hono";
import type { Queues } from "../../operate/queues.ts";
import { readBody, requireKnown } from "../parameters.ts";

/** The routes below /api/v1/queues. */
export function queueRoutes(queues: Queues, actor: string): Hono {
  const routes = new Hono();
  routes.get("/", async (context) => {
    requireKnown(context.req.query(), []);
    return context.json({ items: await queues.list() });
  });
  for (const act of ["pause", "resume"] as const) {
    routes.post(`/:name/${act}`, async (context) => {
      const { reason } = await readBody(context, ["reason"]);
      // what is no text is refused with the rest of the mandate
      return context.json(await queues[act](context.req.param("name"), { actor, reason: reason as string }));
    });
  }
  return routes;
}

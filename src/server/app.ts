// Everything but the webhooks: health, metrics and the admin API.
import { Hono } from "hono";
import { steadyMs } from "../clock.ts";
import { UkemiError } from "../errors.ts";
import { problem, type Answer } from "../inbox/answer.ts";
import { requestIdOf } from "../inbox/headers.ts";
import { describeFault, classifyFault } from "../storage/faults.ts";
import type { Ukemi } from "../ukemi.ts";
import { readWithin } from "../storage/postgres.ts";
import { requireToken, requireTokenOrLocal } from "./auth.ts";
import { deadRoutes } from "./routes/dead.ts";
import { eventRoutes } from "./routes/events.ts";
import { queueRoutes } from "./routes/queues.ts";

type Variables = { requestId: string };

/** A read of the API that takes longer is given up, and answered with 503. */
const READ_TIMEOUT_MS = 5000;

/** Routes that answer without a token carry nothing that needs one. */
export function createApp(ukemi: Ukemi, isStopping: () => boolean): Hono<{ Variables: Variables }> {
  const app = new Hono<{ Variables: Variables }>();

  app.use(async (context, next) => {
    const startedAt = steadyMs();
    context.set("requestId", requestIdOf(context.req.header()));
    await next();
    context.header("x-request-id", context.get("requestId"));
    const seconds = (steadyMs() - startedAt) / 1000;
    const route = routeOf(context.req.path);
    ukemi.metrics.request(route, context.req.method, context.res.status, seconds);
    // health and metrics are asked every few seconds: at info they would drown the rest
    ukemi.logger[route === "api" ? "info" : "debug"](
      {
        request_id: context.get("requestId"),
        method: context.req.method,
        path: context.req.path,
        status: context.res.status,
        duration_ms: Math.round(seconds * 100_000) / 100,
      },
      "request",
    );
  });

  app.get("/healthz", (context) => context.json({ status: "ok" }));
  app.get("/readyz", async (context) => {
    if (isStopping()) throw new UkemiError("stopping");
    await ukemi.check();
    return context.json({ status: "ready" });
  });
  app.get("/metrics", requireTokenOrLocal(ukemi.settings.adminToken), async (context) =>
    context.text(await ukemi.metrics.registry.metrics(), 200, {
      "content-type": ukemi.metrics.registry.contentType,
    }),
  );

  app.use("/api/v1/*", requireToken(ukemi.settings.adminToken));
  app.route(
    "/api/v1/events",
    eventRoutes((work) => readWithin(ukemi.store().pool, READ_TIMEOUT_MS, work)),
  );
  const { operate } = ukemi;
  const actor = ukemi.settings.adminToken === undefined ? "api:local" : "api:admin";
  app.route("/api/v1/dead", deadRoutes(operate.dead, actor));
  app.route("/api/v1/queues", queueRoutes(operate.queues, actor));

  app.notFound((context) => {
    const allow = allowedMethod(context.req.path);
    return allow !== undefined && allow !== context.req.method
      ? toResponse(problem("method_not_allowed", context.get("requestId"), { headers: { allow } }))
      : toResponse(problem("not_found", context.get("requestId")));
  });
  app.onError((error, context) => toResponse(toProblem(error, context.get("requestId"), ukemi)));
  return app;
}

function toProblem(error: Error, requestId: string, ukemi: Ukemi): Answer {
  if (error instanceof UkemiError) {
    return problem(error.code, requestId, { detail: error.message });
  }
  if (classifyFault(error) !== "refused") {
    ukemi.logger.warn({ request_id: requestId, error: describeFault(error) }, "a read failed");
    return problem("store_unavailable", requestId);
  }
  ukemi.logger.error(
    { request_id: requestId, error: describeFault(error), stack: error.stack },
    "a fault in Ukemi",
  );
  return problem("internal", requestId);
}

function toResponse(answer: Answer): Response {
  return new Response(answer.body, { status: answer.status, headers: answer.headers });
}

const GET_PATH = /^\/(?:healthz|readyz|metrics|api\/v1\/(?:events.*|dead(?:\/(?:groups|\d+))?|queues))$/;
const POST_PATH = /^\/api\/v1\/(?:dead\/(?:replay|drop)|queues\/[^/]+\/(?:pause|resume))$/;

/** The one method of a path that is there; undefined where it is not. */
function allowedMethod(path: string): string | undefined {
  if (POST_PATH.test(path)) return "POST";
  return GET_PATH.test(path) ? "GET" : undefined;
}

function routeOf(path: string): string {
  if (path.startsWith("/api/")) return "api";
  if (path === "/healthz" || path === "/readyz") return "health";
  return path === "/metrics" ? "metrics" : "other";
}

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
import { eventRoutes } from "./routes/events.ts";

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

  app.notFound((context) => {
    const wrongMethod = context.req.method !== "GET" && isKnownPath(context.req.path);
    return wrongMethod
      ? toResponse(problem("method_not_allowed", context.get("requestId"), { headers: { allow: "GET" } }))
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

function isKnownPath(path: string): boolean {
  return ["/healthz", "/readyz", "/metrics"].includes(path) || path.startsWith("/api/v1/events");
}

function routeOf(path: string): string {
  if (path.startsWith("/api/")) return "api";
  if (path === "/healthz" || path === "/readyz") return "health";
  return path === "/metrics" ? "metrics" : "other";
}

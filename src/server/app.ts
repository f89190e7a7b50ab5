// Everything but the webhooks: health, metrics and the admin API.
import { Hono } from "hono";
import { steadyMs } from "../clock.ts";
import { UkemiError } from "../errors.ts";
import { problem } from "../inbox/answer.ts";
import { requestIdOf } from "../inbox/headers.ts";
import type { Tell } from "../storage/news.ts";
import type { Ukemi } from "../ukemi.ts";
import { API_PATH, createApi, toProblem, toResponse } from "./api.ts";
import { createAuthenticate, isLocalCall } from "./auth.ts";
import { requireAllowed } from "./caller.ts";

type Variables = { requestId: string };

/** Routes that answer without a token carry nothing that needs one. */
export function createApp(ukemi: Ukemi, isStopping: () => boolean): Hono<{ Variables: Variables }> {
  const app = new Hono<{ Variables: Variables }>();
  const authenticate = createAuthenticate(ukemi.settings.adminToken, ukemi.operate.tokens);
  const tell: Tell = (level, message, fields) => ukemi.logger[level](fields ?? {}, message);

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
  app.get("/metrics", async (context) => {
    // its gauges are those of every tenant
    if (!isLocalCall(context))
      requireAllowed(await authenticate(context), { scope: "read", reach: "everything" });
    return context.text(await ukemi.metrics.registry.metrics(), 200, {
      "content-type": ukemi.metrics.registry.contentType,
    });
  });

  const api = createApi({ operate: ukemi.operate, open: async () => ukemi.store().pool, tell });
  app.all(`${API_PATH}/*`, (context) =>
    api(context.req.raw, context.get("requestId"), () => authenticate(context)),
  );

  app.notFound((context) => {
    const isOurs = GET_PATHS.includes(context.req.path);
    return isOurs && context.req.method !== "GET"
      ? toResponse(problem("method_not_allowed", context.get("requestId"), { headers: { allow: "GET" } }))
      : toResponse(problem("not_found", context.get("requestId")));
  });
  app.onError((error, context) => toResponse(toProblem(error, context.get("requestId"), tell)));
  return app;
}

const GET_PATHS: readonly string[] = ["/healthz", "/readyz", "/metrics"];

function routeOf(path: string): string {
  if (path.startsWith("/api/")) return "api";
  if (path === "/healthz" || path === "/readyz") return "health";
  return path === "/metrics" ? "metrics" : "other";
}

// Who may use the admin API: the holder of the token, or, without one, a caller on this machine.
import { createHash, timingSafeEqual } from "node:crypto";
import type { MiddlewareHandler } from "hono";
import { getConnInfo } from "@hono/node-server/conninfo";
import { UkemiError } from "../errors.ts";

/** True for names and addresses that only this machine can reach. */
export function isLoopback(host: string): boolean {
  return /^(?:localhost|127(?:\.\d{1,3}){3}|::1|\[::1\]|::ffff:127(?:\.\d{1,3}){3})$/.test(host);
}

/** Demands the token; without a configured one, a connection from this machine with a local Host header. */
export function requireToken(token: string | undefined): MiddlewareHandler {
  return async (context, next) => {
    const given = /^Bearer (.+)$/i.exec(context.req.header("authorization") ?? "")?.[1];
    const allowed =
      token === undefined ? isLocalCall(context) : given !== undefined && sameText(given, token);
    if (!allowed) throw new UkemiError("unauthorized");
    await next();
  };
}

/** Lets callers on this machine in; others need the token. */
export function requireTokenOrLocal(token: string | undefined): MiddlewareHandler {
  const withToken = requireToken(token);
  return (context, next) => (isLocalCall(context) ? next() : withToken(context, next));
}

/** What a reverse proxy on this machine adds for callers elsewhere. One that adds nothing cannot be told from a local caller. */
const FORWARDED = /^(?:forwarded|via|x-forwarded-.*|x-real-ip|x-client-ip|cf-connecting-ip|true-client-ip)$/;

/** The Host header is checked too: a web page must not reach us by a name that it points at 127.0.0.1. */
function isLocalCall(context: Parameters<MiddlewareHandler>[0]): boolean {
  const peer = getConnInfo(context).remote.address ?? "";
  const host = (context.req.header("host") ?? "").replace(/:\d+$/, "");
  const isForwarded = Object.keys(context.req.header()).some((name) => FORWARDED.test(name));
  return isLoopback(peer) && isLoopback(host) && !isForwarded;
}

/** Compares digests: of equal length whatever is given, and in constant time. */
function sameText(left: string, right: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(left), digest(right));
}

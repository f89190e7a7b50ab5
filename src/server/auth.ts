// Who may use the admin API: the holder of a token, or, as long as no token was ever made, a caller on this machine.
import { createHash, timingSafeEqual } from "node:crypto";
import type { Context } from "hono";
import { getConnInfo } from "@hono/node-server/conninfo";
import { UkemiError } from "../errors.ts";
import type { Tokens } from "../operate/tokens.ts";
import type { Caller } from "./caller.ts";

/** True for names and addresses that only this machine can reach. */
export function isLoopback(host: string): boolean {
  return /^(?:localhost|127(?:\.\d{1,3}){3}|::1|\[::1\]|::ffff:127(?:\.\d{1,3}){3})$/.test(host);
}

/** Tells who calls, or throws. */
export type Authenticate = (context: Context) => Promise<Caller>;

export function createAuthenticate(adminToken: string | undefined, tokens: Tokens): Authenticate {
  return async (context) => {
    const given = /^Bearer (.+)$/i.exec(context.req.header("authorization") ?? "")?.[1];
    if (given === undefined) {
      const isOpen = adminToken === undefined && isLocalCall(context) && !(await tokens.any());
      if (isOpen) return { actor: "api:local", identity: "api:local", scope: "admin" };
      throw new UkemiError("unauthorized");
    }
    if (adminToken !== undefined && sameText(given, adminToken)) {
      return { actor: "api:admin", identity: "api:admin", scope: "admin" };
    }
    const token = await tokens.find(given);
    if (!token) throw new UkemiError("unauthorized");
    const { id, name, scope, tenants } = token;
    return {
      actor: `token:${name}`,
      identity: `token:${id}`,
      scope,
      ...(tenants === null ? {} : { tenants }),
    };
  };
}

/** What a reverse proxy on this machine adds for callers elsewhere. One that adds nothing cannot be told from a local caller. */
const FORWARDED = /^(?:forwarded|via|x-forwarded-.*|x-real-ip|x-client-ip|cf-connecting-ip|true-client-ip)$/;

/** The Host header is checked too: a web page must not reach us by a name that it points at 127.0.0.1. */
export function isLocalCall(context: Context): boolean {
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

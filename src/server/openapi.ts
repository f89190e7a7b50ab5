// The OpenAPI document, made from the routes: what is not in it is not there.
import type { TSchema } from "typebox";
import { catalogue, type ErrorCode } from "../errors.ts";
import { VERSION } from "../version.ts";
import type { Route } from "./route.ts";

type Json = Readonly<Record<string, unknown>>;

/** An OpenAPI 3.1 document. */
export interface Document {
  readonly openapi: string;
  readonly info: Json;
  readonly servers: readonly Json[];
  readonly security: readonly Json[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Json>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Json>>; readonly securitySchemes: Json };
}

/** What every route may answer beside its own answer. */
const PROBLEMS: Readonly<Record<string, string>> = {
  400: "A parameter is wrong; the detail names it.",
  401: "No token, or one that is not active.",
  403: "The token lacks the scope, or the tenant.",
  404: "There is no such thing.",
  503: "The store cannot be reached; try again after Retry-After.",
};

/** What a request with a body may be answered. */
const BODY_PROBLEMS: Readonly<Record<string, string>> = {
  413: "The body is too large.",
};

/** What a request with an Idempotency-Key may be answered. */
const KEY_PROBLEMS: Readonly<Record<string, string>> = {
  422: "The Idempotency-Key was used for another request.",
};

const PROBLEM: Json = {
  type: "object",
  description: "An error as RFC 9457 has it.",
  required: ["type", "title", "status", "detail", "instance", "code", "request_id"],
  properties: {
    type: { type: "string" },
    title: { type: "string" },
    status: { type: "integer" },
    detail: { type: "string", description: "What is wrong, and what to do." },
    instance: { type: "string" },
    code: { type: "string", description: "A code of the catalogue." },
    request_id: { type: "string" },
  },
};

/** Describes the routes. */
export function createDocument(routes: readonly Route[]): Document {
  const schemas: Record<string, Json> = { Problem: PROBLEM };
  const paths: Record<string, Record<string, Json>> = {};
  for (const route of routes) {
    (paths[route.path] ??= {})[route.method.toLowerCase()] = describe(route, schemas);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Ukemi admin API",
      version: VERSION,
      description:
        "Lists answer `{ items, cursor }`; errors are problem documents. Every change is a POST with a reason, and is audited in the same transaction.",
    },
    servers: [{ url: "/api/v1" }],
    security: [{ token: [] }],
    paths,
    components: {
      schemas,
      securitySchemes: { token: { type: "http", scheme: "bearer" } },
    },
  };
}

function describe(route: Route, schemas: Record<string, Json>): Json {
  const hasBody = route.method === "POST";
  const takesKey = hasBody && route.manner !== "reads";
  const isBytes = (route.answer as { format?: string }).format === "binary";
  return {
    operationId: route.id,
    tags: [route.path.split("/")[1]],
    summary: route.text,
    "x-scope": route.scope,
    "x-reach": route.reach,
    parameters: [
      ...[...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
        name,
        in: "path",
        required: true,
        schema: { type: "string" },
      })),
      ...Object.entries(route.query?.properties ?? {}).map(([name, schema]) =>
        queryOf(name, schema, schemas),
      ),
      ...(takesKey ? [KEY] : []),
    ],
    ...(hasBody
      ? {
          requestBody: {
            required: true,
            content: { "application/json": { schema: named(route.body ?? { type: "object" }, schemas) } },
          },
        }
      : {}),
    responses: {
      200: {
        description: "Done.",
        content: {
          [isBytes ? "application/octet-stream" : "application/json"]: {
            schema: named(route.answer, schemas),
          },
        },
      },
      ...Object.fromEntries(
        Object.entries({
          ...PROBLEMS,
          ...(hasBody ? BODY_PROBLEMS : {}),
          ...(takesKey ? KEY_PROBLEMS : {}),
          ...describeRefusals(route.refuses ?? []),
        }).map(([status, description]) => [
          status,
          { description, content: { "application/problem+json": { schema: refTo("Problem") } } },
        ]),
      ),
    },
  };
}

/** By status: several refusals may share one. */
function describeRefusals(codes: readonly ErrorCode[]): Record<string, string> {
  const told: Record<string, string> = {};
  for (const code of codes) {
    const { status, title, remedy }: { status?: number; title: string; remedy: string } = catalogue[code];
    const before = told[String(status)];
    told[String(status)] = `${before === undefined ? "" : `${before} `}${title}. ${remedy}`;
  }
  return told;
}

/** The header of every change. */
const KEY: Json = {
  name: "Idempotency-Key",
  in: "header",
  required: false,
  description: "A request that comes again with the same key within 24 hours is answered as the first was.",
  schema: { type: "string", maxLength: 255 },
};

function queryOf(name: string, schema: TSchema, schemas: Record<string, Json>): Json {
  const { description, ...rest } = named(schema, schemas) as { description?: string };
  return { name, in: "query", required: false, ...(description ? { description } : {}), schema: rest };
}

const refTo = (name: string): Json => ({ $ref: `#/components/schemas/${name}` });

/** The schema as plain JSON, in which every thing with a name is a reference. */
function named(schema: unknown, schemas: Record<string, Json>): Json {
  const plain = JSON.parse(JSON.stringify(schema)) as Json;
  return collect(plain, schemas) as Json;
}

function collect(value: unknown, schemas: Record<string, Json>): unknown {
  if (Array.isArray(value)) return value.map((item) => collect(item, schemas));
  if (typeof value !== "object" || value === null) return value;
  const inner = Object.fromEntries(
    Object.entries(value).map(([name, item]) => [name, collect(item, schemas)]),
  );
  const { title, ...rest } = inner;
  if (typeof title !== "string" || inner.type !== "object") return inner;
  schemas[title] = rest;
  return refTo(title);
}

// Makes src/client/generated.ts from the OpenAPI document. `UPDATE_DOCS=1 npx vitest run --project unit test/docs` writes it.
import type { Document } from "../../src/server/openapi.ts";

interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly description?: string;
  readonly format?: string;
  readonly enum?: readonly string[];
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
}

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly parameters: readonly { name: string; in: string; description?: string; schema: Schema }[];
  readonly requestBody?: { content: { "application/json": { schema: Schema } } };
  readonly responses: { 200: { content: Record<string, { schema: Schema }> } };
}

/** The source of the generated file, before it is formatted. */
export function clientSource({ paths, components }: Document): string {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      path,
      method: method.toUpperCase(),
      operation: operation as unknown as Operation,
    })),
  );
  return [
    "// The things and calls of the admin API. Made from its OpenAPI document: UPDATE_DOCS=1 npx vitest run --project unit test/docs",
    ...Object.entries(components.schemas)
      .filter(([name]) => name !== "Problem")
      .map(([name, schema]) => `export interface ${name} ${fieldsOf(schema as Schema)}`),
    "/** What each call takes and gives. */",
    "export interface Calls {",
    ...operations.map(
      ({ operation }) =>
        `/** ${operation.summary} */\n${operation.operationId}: { input: ${inputOf(operation)}; output: ${outputOf(operation)} };`,
    ),
    "}",
    "/** Where each call goes. */",
    "export const CALLS: { readonly [Id in keyof Calls]: { readonly method: string; readonly path: string; readonly query: readonly string[] } } = {",
    ...operations.map(({ path, method, operation }) => {
      const query = operation.parameters.filter((parameter) => parameter.in === "query");
      return `${operation.operationId}: { method: ${JSON.stringify(method)}, path: ${JSON.stringify(path)}, query: ${JSON.stringify(query.map(({ name }) => name))} },`;
    }),
    "};",
    "",
  ].join("\n");
}

/** Parts of the path, query and body side by side: their names never meet. */
function inputOf({ parameters, requestBody }: Operation): string {
  const properties: Record<string, Schema> = {};
  const required: string[] = [];
  for (const { name, in: where, description, schema } of parameters) {
    if (where === "header") continue;
    properties[name] = description === undefined ? schema : { ...schema, description };
    if (where === "path") required.push(name);
  }
  const body = requestBody?.content["application/json"].schema;
  Object.assign(properties, body?.properties);
  if (Object.keys(properties).length === 0) return "Record<string, undefined>";
  return fieldsOf({ properties, required: [...required, ...(body?.required ?? [])] });
}

function outputOf({ responses }: Operation): string {
  const [kind, { schema }] = Object.entries(responses[200].content)[0]!;
  return kind === "application/json" ? typeOf(schema) : "Uint8Array";
}

function fieldsOf({ properties = {}, required = [] }: Schema): string {
  const fields = Object.entries(properties).map(([name, schema]) => {
    const doc = schema.description === undefined ? "" : `/** ${schema.description} */\n`;
    return `${doc}readonly ${name}${required.includes(name) ? "" : "?"}: ${typeOf(schema)}${required.includes(name) ? "" : " | undefined"};`;
  });
  return `{\n${fields.join("\n")}\n}`;
}

function typeOf(schema: Schema): string {
  if (schema.$ref) return schema.$ref.split("/").at(-1)!;
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(" | ");
  if (schema.enum) return schema.enum.map((word) => JSON.stringify(word)).join(" | ");
  if (schema.type === "integer") return "number";
  if (schema.type === "array") return `readonly (${typeOf(schema.items ?? {})})[]`;
  if (schema.type === "object")
    return schema.properties ? fieldsOf(schema) : "Readonly<Record<string, unknown>>";
  return schema.type ?? "unknown"; // string, number, boolean and null have the same names here
}

// Flags made from the schema of a route: the command line filters by what the API filters by.
import { Option, type Command } from "commander";
import type { TObject } from "typebox";
import { UkemiError } from "../errors.ts";
import { expectationOf } from "../server/parameters.ts";
import { ROUTES } from "../server/routes/routes.ts";
import { readMoment } from "./moment.ts";

interface Field {
  readonly type?: string;
  readonly format?: string;
  readonly enum?: readonly string[];
  readonly description?: string;
  readonly default?: FieldValue;
}

/** The value of a field as the API takes it. */
export type FieldValue = string | number | boolean;

/** `error_class` and `errorClass` are --error-class here. */
export const flagOf = (name: string) =>
  name.replaceAll("_", "-").replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
const optionOf = (name: string) => name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
const fieldsOf = (schema: TObject) => Object.entries(schema.properties as Readonly<Record<string, Field>>);

/** The query of the route with this id, if it has one. */
export function queryOf(id: string): TObject | undefined {
  return ROUTES.find((route) => route.id === id)?.query;
}

/** Adds a flag for each field. */
export function withFields(command: Command, schema: TObject): Command {
  for (const [name, field] of fieldsOf(schema)) {
    const isTime = field.format === "date-time";
    const value = field.type === "boolean" ? "" : ` <${placeOf(name, field)}>`;
    const ago = isTime ? " A time such as 2026-11-15T09:00:00Z, or how long ago: 90m, 2h, 3d." : "";
    const fallback =
      field.default === undefined || field.type === "boolean" ? "" : ` Default: ${String(field.default)}.`;
    const option = new Option(`--${flagOf(name)}${value}`, `${field.description ?? ""}${ago}${fallback}`);
    command.addOption(field.enum ? option.choices(field.enum) : option);
  }
  return command;
}

/** What stands for the value in the help. */
function placeOf(name: string, field: Field): string {
  const { type, format } = field;
  if (format === "date-time") return "time";
  if (field.enum) return flagOf(name);
  if (type === "integer" || type === "number") return "number";
  return /^(?:ref|event|worker|cursor|ids)$/.test(name) ? "id" : "text";
}

/** The values that were given, as the API takes them. */
export function readFields(command: Command, schema: TObject): Readonly<Record<string, FieldValue>> {
  const given = command.opts<Record<string, FieldValue | undefined>>();
  const read: Record<string, FieldValue> = {};
  for (const [name, field] of fieldsOf(schema)) {
    const value = given[optionOf(name)];
    if (value !== undefined) read[name] = readValue(`--${flagOf(name)}`, field, value);
  }
  return read;
}

function readValue(flag: string, field: Field, value: FieldValue): FieldValue {
  if (field.format === "date-time") return readMoment(flag, String(value)).toISOString();
  if (field.type !== "integer" && field.type !== "number") return value;
  const count = Number(value);
  if (String(value).trim() === "" || Number.isNaN(count)) {
    throw new UkemiError("invalid_option", `${flag} ${expectationOf(field)}.`);
  }
  return count;
}

// Which dead letters an operator means: by id, by filter, or all of them, but never all of them by mistake.
import type { DeadFilter } from "../storage/dead-filter.ts";
import { DEATHS } from "../storage/states.ts";
import { readText, wrong } from "./mandate.ts";

/** Which dead letters are meant. A filter without a single field is refused: say `all` instead. */
export type Selection =
  | { readonly ids: readonly number[] }
  | { readonly filter: DeadFilter }
  | { readonly all: true };

/** How many ids one request may name. */
export const IDS_MAX = 1000;

const TEXTS = [
  "handler",
  "queue",
  "type",
  "source",
  "tenant",
  "ref",
  "event",
  "errorClass",
  "death",
] as const;
const TEXT_MAX = 500;

/** The filter that a selection comes to. */
export function filterOf(selection: Selection): DeadFilter {
  if ("all" in selection) {
    if (!selection.all) throw wrong("all", "must be true");
    return {};
  }
  if ("ids" in selection) return { ids: readIds(selection.ids) };
  const filter = readDeadFilter(selection.filter);
  if (Object.values(filter).every((value) => value === undefined)) {
    throw wrong("filter", "must name at least one field: an empty one would mean every dead letter");
  }
  return filter;
}

/** A selection as it is kept and shown: in the words of the API. */
export function shownSelection(selection: Selection): Readonly<Record<string, unknown>> {
  if ("all" in selection) return { all: true };
  if ("ids" in selection) return { ids: selection.ids };
  const { errorClass, tenants: _, ...filter } = selection.filter;
  return { filter: { ...filter, ...(errorClass === undefined ? {} : { error_class: errorClass }) } };
}

/** The filter, or an error that names the field that cannot be. */
export function readDeadFilter(filter: DeadFilter): DeadFilter {
  for (const name of TEXTS) if (filter[name] !== undefined) readText(name, filter[name], TEXT_MAX);
  if (filter.death !== undefined && !DEATHS.includes(filter.death)) {
    throw wrong("death", `must be one of ${DEATHS.join(", ")}`);
  }
  for (const name of ["since", "until"] as const) {
    const time = filter[name];
    if (time !== undefined && !(time instanceof Date && !Number.isNaN(time.getTime()))) {
      throw wrong(name, "must be a time");
    }
  }
  if (filter.ids !== undefined) readIds(filter.ids);
  return filter;
}

function readIds(ids: readonly number[]): readonly number[] {
  if (!Array.isArray(ids) || ids.length === 0 || ids.length > IDS_MAX) {
    throw wrong("ids", `must be a list of 1 to ${IDS_MAX} job ids`);
  }
  if (!ids.every((id) => Number.isSafeInteger(id) && id > 0)) {
    throw wrong("ids", "must hold whole numbers from 1 up");
  }
  return [...new Set(ids)];
}

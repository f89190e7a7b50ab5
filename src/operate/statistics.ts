// Statistics in an operator's hands: how many events came in each hour, of each type, and what was unusual.
import {
  readCountState,
  readHours,
  readTypes,
  type CountedHour,
  type CountedType,
  type CountFilter,
  type CountState,
} from "../storage/statistics.ts";
import { listAnomalies, type Anomaly } from "../storage/statistics-anomalies.ts";
import { pageOf, type Page } from "../storage/conditions.ts";
import type { Read } from "./read.ts";
import { readText, wrong } from "./mandate.ts";
import { NUMBER, readPage, type PageRequest } from "./page.ts";

/** Which anomalies to list. */
export interface AnomalyQuery extends PageRequest {
  /** The first hour. */
  readonly since: Date;
  /** Only hours that begin before this. */
  readonly until: Date;
  /** Volumes are those of all tenants together: who may see only some sees no anomalies. */
  readonly tenants?: readonly string[] | undefined;
}

/** What can be asked of the counts. They lag behind by about a minute: each answer says how far they go. */
export interface Statistics {
  /** By hour (UTC), source and type, the oldest first; at most 31 days. */
  hours(filter: CountFilter): Promise<CountState & { readonly items: readonly CountedHour[] }>;
  /** By source and type, the most frequent first; at most 366 days. */
  types(
    filter: Pick<CountFilter, "since" | "until" | "tenants">,
  ): Promise<CountState & { readonly items: readonly CountedType[] }>;
  /** The last noticed first. */
  anomalies(query: AnomalyQuery): Promise<Page<Anomaly>>;
}

const DAY_MS = 86_400_000;
export const HOURS_DAYS_MAX = 31;
export const TYPES_DAYS_MAX = 366;
const NAME_MAX = 255;

export function createStatistics(read: Read): Statistics {
  return {
    hours(filter) {
      const wanted = readFilter(filter, HOURS_DAYS_MAX);
      return read(async (client) => ({
        ...(await readCountState(client)),
        items: await readHours(client, wanted),
      }));
    },
    types({ since, until, tenants }) {
      const wanted = readFilter({ since, until, tenants }, TYPES_DAYS_MAX);
      return read(async (client) => ({
        ...(await readCountState(client)),
        items: await readTypes(client, wanted),
      }));
    },
    async anomalies({ since, until, tenants, ...page }) {
      readSpan(since, until);
      const { limit, before } = readPage(page, NUMBER);
      if (tenants !== undefined) return { items: [] };
      const query = {
        since,
        until,
        limit: limit + 1,
        before: before === undefined ? undefined : Number(before),
      };
      const found = await read((client) => listAnomalies(client, query));
      return pageOf(found, limit, (last) => String(last.id));
    },
  };
}

function readFilter(filter: CountFilter, daysMax: number): CountFilter {
  const { since, until, source, type } = filter;
  readSpan(since, until);
  if (until.getTime() - since.getTime() > daysMax * DAY_MS) {
    throw wrong("since", `must lie at most ${daysMax} days before until`);
  }
  if (source !== undefined) readText("source", source, NAME_MAX);
  if (type !== undefined) readText("type", type, NAME_MAX);
  return filter;
}

function readSpan(since: Date, until: Date): void {
  for (const [name, time] of Object.entries({ since, until })) {
    if (!(time instanceof Date) || Number.isNaN(time.getTime())) throw wrong(name, "must be a time");
  }
  if (since >= until) throw wrong("since", "must lie before until");
}

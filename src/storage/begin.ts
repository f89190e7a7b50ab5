// How a handler's transaction begins: marked as its job's, bounded in time, on a session that is left as it was found.
import type pg from "pg";

export interface Bounds {
  /** True behind a transaction pooler: no settings of the session, no named statements. */
  readonly pooled: boolean;
  /**
   * True where all of a transaction may go out in one trip. Should the rest of it never come, the server does not count it as
   * idle: its time as a whole must be bounded, as it can be since version 17.
   */
  readonly oneTrip: boolean;
  /** A transaction in which nothing happens for so long is ended by the server: it must be below the lease. */
  readonly idleMs: number;
  readonly statementMs: number;
  /** A commit that is not answered after this time is cut, and unknown. */
  readonly commitMs: number;
}

export interface TransactionLimits extends Bounds {
  /** Says to which job the transaction belongs. */
  readonly mark: string;
  /** True where its handler may share one: what is refused there is refused here, too. */
  readonly shareable?: boolean;
}

/** The setting that holds a transaction's mark. */
const MARK = "ukemi.job";

/** What the bounds of a connection were last set to. A pooler's connections are not ours to set. */
const bounded = new WeakMap<pg.ClientBase, Bounds>();

type Setting = [name: string, value: string];

const boundsOf = ({ idleMs, statementMs, commitMs, oneTrip }: Bounds): Setting[] => [
  ["idle_in_transaction_session_timeout", String(idleMs)],
  ["statement_timeout", String(statementMs)],
  ...(oneTrip ? [["transaction_timeout", String(statementMs + commitMs)] satisfies Setting] : []),
];

const setAll = (command: string, settings: readonly Setting[]) =>
  settings.map(([name, value]) => `${command} ${name} = '${value}'`).join("; ");

/** Begins a transaction with its bounds, and with what else is to be set in it. */
export async function begin(
  client: pg.ClientBase,
  limits: Bounds,
  local: readonly Setting[] = [],
): Promise<void> {
  if (limits.pooled) {
    await client.query(`begin; ${setAll("set local", [...boundsOf(limits), ...local])}`);
    return;
  }
  // not in one text: a transaction that is rolled back would take the bounds with it
  const bounding = isBound(client, limits) ? undefined : bound(client, limits);
  await Promise.all([bounding, client.query(`begin; ${setAll("set local", local)}`)]);
}

/** True where the bounds of the connection are what they were last set to. */
export function isBound(client: pg.ClientBase, limits: Bounds): boolean {
  const last = bounded.get(client);
  return (
    last !== undefined &&
    last.idleMs === limits.idleMs &&
    last.statementMs === limits.statementMs &&
    last.commitMs === limits.commitMs &&
    last.oneTrip === limits.oneTrip
  );
}

/** Sets the bounds of a connection that is not a pooler's. */
export async function bound(client: pg.ClientBase, limits: Bounds): Promise<void> {
  bounded.delete(client);
  await client.query(setAll("set", boundsOf(limits)));
  bounded.set(client, limits);
}

/** What says to which job the transaction belongs. */
export const markOf = (limits: TransactionLimits): Setting => [MARK, limits.mark];

export async function mark(client: pg.ClientBase, limits: TransactionLimits): Promise<void> {
  await client.query(setAll("set local", [markOf(limits)]));
}

/** The mark and the bounds for a transaction that somebody else has begun: one statement with a row, which must be the first. */
export function markAndBound(limits: TransactionLimits): string {
  const set = ([name, value]: Setting, index: number) =>
    `set_config('${name}', '${value}', true) as set_${index}`;
  const settings = [markOf(limits), ...boundsOf(limits)];
  return `select ${settings.map(set).join(", ")}`;
}

const ROWS = /^\s*(?:select|insert|update|delete|with|values|merge)\b/i;
const SAVEPOINTS = /^\s*(?:savepoint|release|rollback|begin|commit)\b/i;
const MORE =
  /set_config|advisory|;\s*\S|^\s*(?:select|with)\b[^]*\binto\s+(?:(?:local|global)\s+)?temp(?:orary)?\s+\w|\bupdate\s+(?:pg_catalog\.)?pg_settings\b|\bpg_temp\b/i;

/** True for statements that can do no more than read and write rows: no settings, no locks, no savepoints. */
export function isOfRows(text: string): boolean {
  return ROWS.test(text) && !MORE.test(text);
}

/** The same with savepoints: nothing that outlives the transaction, and not its end. */
export function isPlain(text: string): boolean {
  return isOfRows(text) || (SAVEPOINTS.test(text) && !MORE.test(text));
}

/** True for statements that open a savepoint: what is set inside is undone with it. */
export function opensSavepoint(text: string): boolean {
  return /^\s*(?:begin|savepoint)\b/i.test(text);
}

/** All that `discard all` does, but for prepared statements: `pg` believes that those which it has named are there. */
const TIDY = `close all; reset session authorization; reset all; unlisten *;
  select pg_advisory_unlock_all(); discard temp; discard sequences`;

/** What a handler set for the session, or locked, is nobody else's. */
export async function tidy(client: pg.ClientBase): Promise<void> {
  bounded.delete(client);
  await client.query(TIDY);
}

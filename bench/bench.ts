// What every contest is given, and how it says what it came to.
import type { Judged } from "./bars.ts";
import type { ContestOptions } from "./contest.ts";
import type { BenchStore } from "./store.ts";
import type { Table } from "./tables.ts";

export interface Bench {
  readonly store: BenchStore;
  /** The node that every program runs on. */
  readonly node: string;
  /** The one that started the bench, which is the user's own; undefined where it is not known. */
  readonly machineNode: string | undefined;
  readonly rounds: number;
  /** Shorter runs: a look, not a measurement. */
  readonly quick: boolean;
  /** How many finished events the full store of the growth contest has. */
  readonly rows: number;
  readonly onRun: NonNullable<ContestOptions["onRun"]>;
  report(table: Table): void;
  judge(judged: Judged): void;
}

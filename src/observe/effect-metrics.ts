// What is told of the ledger: calls as they end in this process, and what waits in the database for a call or a person.
import { Counter, Gauge, type Registry } from "prom-client";
import type { AttemptResult } from "../effects/attempt.ts";
import type { LedgerBacklog } from "../storage/effect-backlog.ts";
import type { EffectKind } from "../storage/effects.ts";

export interface EffectMetrics {
  /** A call has ended. */
  called(kind: EffectKind, outcome: AttemptResult["is"]): void;
}

/** Makes the counter of calls. */
export function createCallMetrics(registers: Registry[]): EffectMetrics {
  const calls = new Counter({
    name: "ukemi_effect_calls_total",
    help: "Calls of effects by how they ended: done, again (it did not happen, and may later), failed, uncertain (nobody knows), blocked (the destination refuses us). Counted by the process that made the call, or that found it under way by nobody's account.",
    labelNames: ["kind", "outcome"],
    registers,
  });
  return { called: (kind, outcome) => calls.inc({ kind, outcome }) };
}

const STATES = ["waiting", "uncertain", "held"] as const;

/** Makes the gauges: every process shows the same, but for the names, of which each tells those of its own settings. */
export function createLedgerMetrics(
  registers: Registry[],
  ledger: () => Promise<LedgerBacklog | undefined>,
): void {
  new Gauge({
    name: "ukemi_effects",
    help: "Effects that have not come to their end: waiting (planned, and no other effect must be done first), uncertain, held (a person must decide). Destinations that no setting names are told together, as other.",
    labelNames: ["kind", "destination", "state"],
    registers,
    async collect() {
      const effects = (await ledger())?.effects ?? [];
      this.reset();
      for (const { kind, destination, ...counts } of effects) {
        for (const state of STATES) this.set({ kind, destination, state }, counts[state]);
      }
    },
  });
  new Gauge({
    name: "ukemi_effects_oldest_waiting_seconds",
    help: "How long ago the oldest effect that waits was intended; 0 where none waits.",
    labelNames: ["kind", "destination"],
    registers,
    async collect() {
      const effects = (await ledger())?.effects ?? [];
      this.reset();
      for (const { kind, destination, oldest_waiting_seconds: oldest } of effects)
        this.set({ kind, destination }, oldest ?? 0);
    },
  });
  const closed = (what: "paused" | "open", help: string) =>
    new Gauge({
      name: `ukemi_destinations_${what}`,
      help,
      labelNames: ["destination"],
      registers,
      async collect() {
        const destinations = (await ledger())?.destinations ?? [];
        this.reset();
        for (const { destination, [what]: count } of destinations) this.set({ destination }, count);
      },
    });
  closed(
    "paused",
    "1 where a destination is paused: it asked for it, its limit of a day is reached, or an operator did it. Of other ones, how many.",
  );
  closed(
    "open",
    "1 where a destination's circuit is open: it failed too often, or refuses us. Of other ones, how many.",
  );
}

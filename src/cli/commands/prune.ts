// `ukemi prune`: let go of what is old, now; servers and workers do it by themselves about once an hour.
import { Command } from "commander";
import { createOperate } from "../../operate/operate.ts";
import type { PruneResult } from "../../operate/prune.ts";
import type { AgreedPreview } from "../../operate/retention.ts";
import type { Settings } from "../../options.ts";
import type { Pool } from "../../storage/postgres.ts";
import { LIMIT_NAMES } from "../../storage/retention-limits.ts";
import {
  actor,
  changeWithConsent,
  reasonOf,
  stopOnInterrupt,
  withChangeFlags,
  type ChangeFlags,
} from "../consent.ts";
import { createProgressBar } from "../progress.ts";
import { flagsOf } from "../settings.ts";
import { table } from "../table.ts";
import { withStore, withStoreFlags } from "../store.ts";

export function pruneCommand(): Command {
  const command = new Command("prune").description(
    "Let go of old bodies, attempts, finished jobs and what ended effects held; what is unfinished or dead stays.",
  );
  withChangeFlags(command);
  return withStoreFlags(command, LIMIT_NAMES).action(async () => {
    const flags = command.opts<ChangeFlags>();
    const mandate = { actor: actor(), reason: reasonOf(flags) };
    const work = async (pool: Pool, limits: Settings, place: string) => {
      const { retention } = createOperate({
        open: () => Promise.resolve(pool),
        limits,
        // who names a limit means it
        namedLimits: LIMIT_NAMES.filter((name) => flagsOf(command)[name] !== undefined),
        readTimeoutMs: 60_000,
      });
      const preview = await retention.preview();
      const any = countOf(preview) > 0;
      await changeWithConsent(
        flags,
        { place, preview, words: previewed(preview), any, question: "Let it go?" },
        async () => {
          const bar = createProgressBar("pruning");
          const stop = stopOnInterrupt();
          try {
            const result = await retention.prune(mandate, {
              onProgress: ({ part, done, total }) => bar.show({ done, total }, part),
              signal: stop.signal,
            });
            bar.end();
            return { result, words: pruned(result), failed: result.stopped || result.held_up.length > 0 };
          } finally {
            bar.end();
            stop.release();
          }
        },
      );
    };
    await withStore(command, work, { readsFile: true });
  });
}

const countOf = (preview: AgreedPreview) => {
  const { months, stray_bodies, jobs, attempts, workers, operations } = preview;
  const { effects, effect_attempts, destination_hours } = preview;
  const rows = [
    stray_bodies,
    jobs,
    attempts,
    workers,
    operations,
    effects,
    effect_attempts,
    destination_hours,
  ];
  return rows.reduce((sum, { count }) => sum + count, months.length);
};

const about = ({ count, exact }: { readonly count: number; readonly exact: boolean }) =>
  exact ? String(count) : `about ${count}`;

function previewed(preview: AgreedPreview): string {
  const { months, jobs, attempts, workers, operations, stray_bodies: stray } = preview;
  const { effects, effect_attempts: calls, destination_hours: hours } = preview;
  const limits = kept(preview);
  if (countOf(preview) === 0) return `${limits}\nNothing is old enough to go.`;
  const rows = months.map((month) => ({
    month: month.month,
    bodies: about(month.bodies),
    "must stay": about(month.kept),
    MB: (month.bytes / 1e6).toFixed(1),
  }));
  return [
    limits,
    ...(rows.length === 0 ? [] : [table(rows, { width: process.stdout.columns })]),
    `Would go: ${about(jobs)} finished jobs, ${about(attempts)} attempts, ${about(workers)} ended workers, ${about(operations)} ended operations, ${about(stray)} stray bodies.`,
    `Of effects, which stay: what ${about(effects)} held, ${about(calls)} calls, ${about(hours)} hourly counts of calls.`,
  ].join("\n");
}

function kept(preview: AgreedPreview): string {
  const { body_days, attempt_days, job_days, effect_days, longer_elsewhere: longer } = preview;
  const limit = (name: string, count: number) =>
    days(count) + (longer.includes(name) ? ", as another process has it" : "");
  const parts = [
    `bodies ${limit("body_days", body_days)}`,
    `attempts ${limit("attempt_days", attempt_days)}`,
    `finished jobs ${limit("job_days", job_days)}`,
    `what effects held ${limit("effect_days", effect_days)}`,
  ];
  return `Kept: ${parts.join(longer.length > 0 ? "; " : ", ")}.`;
}

const days = (count: number) => (count === 0 ? "for ever" : `${count} days`);

function pruned({ bodies, jobs, attempts, effects, months, held_up, stopped }: PruneResult): string {
  return [
    `Pruned ${bodies} bodies (${months.length} months), ${jobs} jobs, ${attempts} attempts.`,
    ...(effects > 0 ? [`Removed what ${effects} effects held; they stay, with their keys.`] : []),
    ...(held_up.length > 0
      ? [`Held up by a long transaction, and tried again later: ${held_up.join(", ")}.`]
      : []),
    ...(stopped ? ["Stopped before the end: the same command does the rest."] : []),
  ].join("\n");
}

// `ukemi usage`: exports records of use to the API_Meter. It needs no database: batch jobs run it where they are.
import { stat } from "node:fs/promises";
import { Command } from "commander";
import { aboutUpdated } from "../../effects/usage/counters.ts";
import {
  openExporter,
  readSpool,
  spoolFolder,
  type Exporter,
  type UsageReport,
} from "../../effects/usage/exporter.ts";
import type { Say } from "../../effects/usage/send.ts";
import type { SpoolState } from "../../effects/usage/spool.ts";
import { UkemiError } from "../../errors.ts";
import { createLogger } from "../../observe/log.ts";
import { EXIT } from "../exit.ts";
import { showSpan } from "../moment.ts";
import { note, print, printJson } from "../print.ts";
import { createProgressBar } from "../progress.ts";
import { settingsOf, withFlags } from "../settings.ts";

/** Where nobody looks at a bar, so often a line says how far it has come. */
const LINE_EVERY_MS = 10_000;

export function usageCommand(): Command {
  return new Command("usage")
    .description(
      "Export records of use to the API_Meter: nothing is lost, and what is sent again is counted once.",
    )
    .addCommand(pushCommand())
    .addCommand(resendCommand())
    .addCommand(statusCommand());
}

function pushCommand(): Command {
  const command = new Command("push")
    .description("Send a file of records, one JSON object a line, after what an earlier run could not send.")
    .argument("<file>", "The file. A record without a source_event_id gets one that is made of its line.")
    .option("--json", "Print JSON.");
  return withFlags(command, ["data"]).action(async (file: string) => {
    const { size } = await stat(file).catch((error: NodeJS.ErrnoException) => {
      throw new UkemiError("invalid_option", `${file} cannot be read (${error.code}).`, { cause: error });
    });
    await run(command, file, async (exporter, tell) =>
      exporter.push(file, (bytes, records) => {
        // how many there will be is known at the end
        tell(records, bytes >= size ? records : Math.round((records * size) / Math.max(1, bytes)));
      }),
    );
  });
}

function resendCommand(): Command {
  const command = new Command("resend")
    .description("Send what earlier runs could not send, oldest first.")
    .option("--refused", "Also what the meter refused (400, 422): after its records can be accepted.")
    .option("--blocked", "Also what was blocked (401, 403, 404): after token, tenant or URL was corrected.")
    .option("--json", "Print JSON.");
  return withFlags(command, ["data"]).action(async () => {
    const { refused, blocked } = command.opts<{ refused?: boolean; blocked?: boolean }>();
    const also: SpoolState[] = [
      ...(refused ? ["refused" as const] : []),
      ...(blocked ? ["blocked" as const] : []),
    ];
    await run(command, "batches", (exporter, tell) => exporter.resend(also, tell));
  });
}

function statusCommand(): Command {
  const command = new Command("status")
    .description("Show what waits to be sent.")
    .option("--json", "Print JSON.");
  return withFlags(command, ["data"]).action(async () => {
    const { data } = settingsOf(command).settings;
    const { list, ...status } = await readSpool(data);
    if (command.opts<{ json?: boolean }>().json)
      return printJson({ folder: spoolFolder(data), ...status, list });
    print(spoolWords(status).join("\n"));
  });
}

/** Runs an export, shows how far it has come, and what it came to. */
async function run(
  command: Command,
  what: string,
  work: (exporter: Exporter, tell: (done: number, total: number) => void) => Promise<UsageReport>,
): Promise<void> {
  const { settings } = settingsOf(command);
  const stopping = new AbortController();
  const stop = () => stopping.abort();
  process.once("SIGINT", stop).once("SIGTERM", stop);
  const isWatched = process.stderr.isTTY;
  const logger = createLogger(settings.logLevel, process.stderr);
  const bar = createProgressBar(what);
  const say: Say = (level, text, fields = {}) => {
    bar.end();
    if (isWatched) note(text);
    else logger[level](fields, text);
  };
  const startedAt = performance.now();
  let saidAt = startedAt;
  const tell = (done: number, total: number) => {
    bar.show({ done, total });
    if (isWatched || performance.now() - saidAt < LINE_EVERY_MS) return;
    saidAt = performance.now();
    logger.info({ done, total, per_second: Math.round((done * 1000) / (saidAt - startedAt)) }, "usage");
  };
  const exporter = await openExporter({ settings, say, signal: stopping.signal });
  try {
    const report = await work(exporter, tell);
    bar.end();
    const took = performance.now() - startedAt;
    if (command.opts<{ json?: boolean }>().json) printJson({ ...report, took_ms: Math.round(took) });
    else print(words(report, took).join("\n"));
    if (!isWhole(report)) process.exitCode = EXIT.failure;
  } finally {
    bar.end();
    await exporter.close();
  }
}

/** True where the meter has taken everything that it was to be sent. */
function isWhole({ end, badLines, saved, damaged, spool }: UsageReport): boolean {
  const isSaved = Object.values(saved).some((count) => count > 0);
  return end === undefined && badLines === 0 && !isSaved && damaged.length === 0 && spool.batches.due === 0;
}

function words(report: UsageReport, tookMs: number): string[] {
  const { figures } = report;
  const lines = [
    `sent      ${count(figures.sent, "record")} in ${showSpan(tookMs)}: ${figures.inserted} inserted, ${figures.updated} updated`,
  ];
  const about = aboutUpdated(figures);
  if (about === "resend") lines.push("          the meter had all of them already: this was a resend");
  if (about === "unusual")
    lines.push(
      "          unusually many were there already: was the file sent before, or are ids used twice?",
    );
  if (figures.mismatched > 0)
    lines.push(
      `counted   ${count(figures.mismatched, "batch", "batches")} of which the meter counted another number of records`,
    );
  if (figures.retries > 0) lines.push(`retries   ${figures.retries}`);
  if (report.badLines > 0) {
    lines.push(`not read  ${count(report.badLines, "line")}: correct them and push the file again`);
    for (const { line, fault } of report.firstBadLines) lines.push(`          line ${line}: ${fault}`);
  }
  for (const id of report.damaged)
    lines.push(`damaged   ${id}: this saved batch is not what was written, and is not sent`);
  if (report.end === "blocked")
    lines.push("stopped   the meter refuses us; when that is mended, push the file again");
  if (report.end === "stopped") lines.push("stopped   before the end: push the file again");
  return [...lines, ...spoolWords(report.spool)];
}

function spoolWords({ batches, bytes, oldest, unfinished }: UsageReport["spool"]): string[] {
  const lines = [
    batches.due > 0 && `due       ${count(batches.due, "batch", "batches")}: sent with the next run`,
    batches.refused > 0 &&
      `refused   ${count(batches.refused, "batch", "batches")}: ukemi usage resend --refused`,
    batches.blocked > 0 &&
      `blocked   ${count(batches.blocked, "batch", "batches")}: ukemi usage resend --blocked`,
    oldest !== null && `spool     ${Math.ceil(bytes / 1024)} KB, the oldest of ${oldest.toISOString()}`,
    unfinished > 0 && `unsaved   ${count(unfinished, "file")} that an exporter is writing, or died over`,
  ].filter((line) => line !== false);
  return lines.length > 0 ? lines : ["spool     empty"];
}

function count(number: number, one: string, many = `${one}s`): string {
  return `${number} ${number === 1 ? one : many}`;
}

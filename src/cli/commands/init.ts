// `ukemi init`: a starter configuration, a handler and a test for an existing project.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Command } from "commander";
import { EXIT } from "../exit.ts";
import { frameworkName, mountLines, type Mount } from "../init/mount.ts";
import { importFrom, planFiles, writeFiles, type PlannedResult } from "../init/plan.ts";
import { detectProject, type Project } from "../init/project.ts";

interface InitFlags {
  readonly dryRun?: boolean;
  readonly json?: boolean;
}

interface Step {
  readonly command: string;
  readonly about: string;
}

export function initCommand(): Command {
  const command = new Command("init")
    .description(
      "Write a starter configuration, a handler and a test into this project. Nothing is overwritten.",
    )
    .option("--dry-run", "Show what would be written, and write nothing.")
    .option("--json", "Print JSON.");
  return command.action(async () => {
    const { dryRun = false, json } = command.opts<InitFlags>();
    const project = detectProject(process.cwd());
    const { files, layout } = planFiles(project);
    const results = await writeFiles(project.folder, files, { dryRun });
    const steps = nextSteps(project, layout.test);
    const mount = mountLines(project, importFrom(project, `${project.sources}server.js`, layout.config));
    const { folder: _, manager, ...found } = project;
    process.stdout.write(
      json
        ? `${JSON.stringify({ project: { ...found, manager: manager.name }, files: results, steps, mount: mount ?? null })}\n`
        : `${words(project, results, steps, mount)}\n`,
    );
    if (!results.some(({ state }) => state === "written" || state === "would be written")) {
      process.exitCode = EXIT.failure;
    }
    if (results.some(({ state }) => state === "failed")) process.exitCode = EXIT.failure;
  });
}

function nextSteps({ folder, manager, hasUkemi }: Project, test: string): readonly Step[] {
  const ignore = join(folder, ".gitignore");
  const ignored = !existsSync(ignore) || /^\/?\.ukemi\/?$/m.test(readFileSync(ignore, "utf8"));
  return [
    ...(hasUkemi ? [] : [{ command: `${manager.add} ukemi`, about: "" }]),
    ...(ignored ? [] : [{ command: "echo .ukemi/ >> .gitignore", about: "the local database" }]),
    { command: `node --test ${test}`, about: "the test that was written" },
    { command: `${manager.run} ukemi dev`, about: "everything on this machine, nothing to set up" },
    { command: `${manager.run} ukemi send`, about: "a signed event for it, from another terminal" },
  ];
}

function words(
  project: Project,
  results: readonly PlannedResult[],
  steps: readonly Step[],
  mount: Mount | undefined,
): string {
  const lines = [`Found  ${foundWords(project)}`, ""];
  const width = Math.max(...results.map(({ path }) => path.length));
  for (const { path, about, state, reason } of results) {
    const line = `${state.padEnd(16)}  ${path.padEnd(width)}`;
    const whole = `${line}  ${reason ?? about}`;
    // why it was not written must be read; what it is for is said on its first line
    const fits = whole.length <= (process.stdout.columns ?? Number.POSITIVE_INFINITY);
    lines.push(fits || reason !== undefined ? whole : line.trimEnd());
  }
  const commands = Math.max(...steps.map(({ command }) => command.length));
  lines.push("", "Next", "");
  for (const { command, about } of steps) lines.push(`  ${command.padEnd(commands)}  ${about}`.trimEnd());
  if (mount)
    lines.push("", `And ${mount.place}:`, "", ...mount.code.split("\n").map((line) => `  ${line}`.trimEnd()));
  if (!mount) {
    lines.push(
      "",
      `To receive, run ${project.manager.run} ukemi serve: webhooks go to /webhooks/stripe on port 8787.`,
    );
  }
  return lines.join("\n");
}

function foundWords(project: Project): string {
  const { language, modules, manager, router } = project;
  return [
    frameworkName(project) ?? "no framework that Ukemi knows",
    ...(router ? [`its ${router.kind} router in ${router.folder}`] : []),
    language === "typescript" ? "TypeScript" : "JavaScript",
    modules === "esm" ? "ES modules" : "CommonJS",
    manager.name,
  ].join(", ");
}

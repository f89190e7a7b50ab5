// What `ukemi init` writes into a project, and where; writing it without ever touching what is there.
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { CONFIG_NAMES } from "../config.ts";
import { nextRoute } from "./mount.ts";
import type { Project } from "./project.ts";
import { configText, handlersText, testText, type Layout } from "./templates.ts";

/** A file to write. */
export interface PlannedFile {
  /** From the project's folder. */
  readonly path: string;
  /** What it is for. */
  readonly about: string;
  readonly text: string;
  /** A file that is there already and does the same, so that this one is not wanted. */
  readonly instead?: string | undefined;
}

/** What became of it. */
export interface PlannedResult {
  readonly path: string;
  readonly about: string;
  readonly state: "written" | "would be written" | "left alone" | "failed";
  /** Why it was not written. */
  readonly reason?: string;
}

/** The files for this project. */
export function planFiles(project: Project): { files: readonly PlannedFile[]; layout: Layout } {
  const { folder, router, sources } = project;
  const ending = endingOf(project);
  const found = CONFIG_NAMES.find((name) => existsSync(join(folder, name)));
  const config = found ?? `ukemi.config.${ending}`;
  const handlers = `${sources}webhooks/payments.${ending}`;
  const test = `${existsSync(join(folder, "tests")) ? "tests" : "test"}/webhooks.${project.hasOtherRunner ? "check" : "test"}.mjs`;
  const layout: Layout = {
    config,
    handlers,
    test,
    handlersImport: importFrom(project, config, handlers),
    configFromTest: pathFrom(test, config),
  };
  const files: PlannedFile[] = [
    {
      path: config,
      about: "options, sources and handlers",
      text: configText(project, layout),
      instead: found,
    },
    { path: handlers, about: "what is done about a payment", text: handlersText(project) },
    { path: test, about: "a test of it, on a PostgreSQL of its own", text: testText(layout) },
  ];
  if (router) {
    const script = project.language === "typescript" ? "ts" : "js";
    const name = router.kind === "app" ? `stripe/route.${script}` : `stripe.${script}`;
    const path = `${router.folder}/api/webhooks/${name}`;
    const text = nextRoute(project, importFrom(project, path, config));
    files.push({ path, about: "receives the webhooks, at /api/webhooks/stripe", text });
  }
  return { files, layout };
}

/** A name that means modules, also where the package does not say so. */
function endingOf({ language, modules }: Project): string {
  const script = language === "typescript" ? "ts" : "js";
  return modules === "esm" ? script : `m${script}`;
}

/** How one file of the project imports another. */
export function importFrom({ endings }: Project, from: string, to: string): string {
  const path = pathFrom(from, to);
  if (endings === "none") return path.replace(/\.[cm]?[jt]s$/, "");
  return endings === "source" ? path : path.replace(/\.(m?)ts$/, ".$1js");
}

function pathFrom(from: string, to: string): string {
  const path = relative(dirname(from), to).replaceAll("\\", "/");
  return path.startsWith(".") ? path : `./${path}`;
}

/** Writes what is not there yet. */
export async function writeFiles(
  folder: string,
  files: readonly PlannedFile[],
  { dryRun }: { readonly dryRun: boolean },
): Promise<readonly PlannedResult[]> {
  const results: PlannedResult[] = [];
  for (const file of files) results.push(await writeOne(folder, file, dryRun));
  return results;
}

async function writeOne(folder: string, file: PlannedFile, dryRun: boolean): Promise<PlannedResult> {
  const { path, about, text } = file;
  const target = join(folder, path);
  const alone: PlannedResult = { path, about, state: "left alone", reason: "it is there already" };
  if (file.instead !== undefined || existsSync(target)) return alone;
  if (dryRun) return { path, about, state: "would be written" };
  const failed = (error: NodeJS.ErrnoException): PlannedResult => {
    return { path, about, state: "failed", reason: error.code ?? error.message };
  };
  try {
    await mkdir(dirname(target), { recursive: true });
  } catch (error) {
    return failed(error as NodeJS.ErrnoException);
  }
  try {
    await writeFile(target, text, { flag: "wx" }); // never over a file that came in the meantime
    return { path, about, state: "written" };
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EEXIST"
      ? alone
      : failed(error as NodeJS.ErrnoException);
  }
}

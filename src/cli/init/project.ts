// What a project is made of, as its files tell: framework, language, modules, package manager.
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { UkemiError } from "../../errors.ts";

export type Framework = "next" | "hono" | "fastify" | "express";

/** How packages are installed and their commands run. */
export interface Manager {
  readonly name: "npm" | "pnpm" | "yarn" | "bun";
  readonly add: string;
  readonly run: string;
}

/** A project that Ukemi is added to. */
export interface Project {
  readonly folder: string;
  readonly framework: Framework | undefined;
  readonly language: "typescript" | "javascript";
  readonly modules: "esm" | "commonjs";
  readonly manager: Manager;
  /** Where its sources lie: "src/", or "" for the project's own folder. */
  readonly sources: "src/" | "";
  /** Next.js: the folder of its routes, and which router has them. */
  readonly router: { readonly kind: "app" | "pages"; readonly folder: string } | undefined;
  /** True where Ukemi is among its dependencies already. */
  readonly hasUkemi: boolean;
  /** True where a runner of its own would take up every file named .test. */
  readonly hasOtherRunner: boolean;
  /** How a file of its own is imported: with the ending of its source, of its output, or with none. */
  readonly endings: "source" | "output" | "none";
}

/** In this order: Next.js projects often have one of the others too, and Hono may run on Fastify or Express. */
const FRAMEWORKS: readonly Framework[] = ["next", "hono", "fastify", "express"];

const MANAGERS: Readonly<Record<string, Manager>> = {
  "pnpm-lock.yaml": { name: "pnpm", add: "pnpm add", run: "pnpm exec" },
  "yarn.lock": { name: "yarn", add: "yarn add", run: "yarn" },
  "bun.lock": { name: "bun", add: "bun add", run: "bunx" },
  "bun.lockb": { name: "bun", add: "bun add", run: "bunx" },
  "package-lock.json": { name: "npm", add: "npm install", run: "npx" },
};

/** Looks at the project in this folder; throws where there is none. */
export function detectProject(folder: string): Project {
  const manifest = readManifest(folder);
  const packages = Object.keys({ ...manifest.dependencies, ...manifest.devDependencies });
  const framework = FRAMEWORKS.find((name) => packages.includes(name));
  const hasTypeScript = packages.includes("typescript") || existsSync(join(folder, "tsconfig.json"));
  return {
    folder,
    framework,
    language: hasTypeScript ? "typescript" : "javascript",
    // what Next.js compiles are modules, whatever the package says
    modules: manifest.type === "module" || framework === "next" ? "esm" : "commonjs",
    manager: managerOf(folder),
    sources: existsSync(join(folder, "src")) ? "src/" : "",
    router: framework === "next" ? routerOf(folder) : undefined,
    hasUkemi: packages.includes("ukemi"),
    hasOtherRunner: packages.some((name) => name === "vitest" || name === "jest"),
    endings: hasTypeScript ? endingsOf(folder, framework) : "source",
  };
}

interface Manifest {
  readonly type?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

function readManifest(folder: string): Manifest {
  const file = join(folder, "package.json");
  if (!existsSync(file)) {
    throw new UkemiError(
      "invalid_option",
      `There is no package.json in ${folder}: run npm init -y first, or go to the folder of your project.`,
    );
  }
  try {
    const manifest: unknown = JSON.parse(readFileSync(file, "utf8"));
    if (typeof manifest === "object" && manifest !== null) return manifest;
  } catch {
    // said below
  }
  throw new UkemiError("invalid_option", `${file} cannot be read as JSON: correct it first.`);
}

/** By the lock file, which in a repository of many packages lies above. */
function managerOf(folder: string): Manager {
  for (let at = resolve(folder); ; at = dirname(at)) {
    const lock = Object.keys(MANAGERS).find((name) => existsSync(join(at, name)));
    if (lock !== undefined) return MANAGERS[lock]!;
    if (at === dirname(at) || existsSync(join(at, ".git"))) return MANAGERS["package-lock.json"]!;
  }
}

function routerOf(folder: string): Project["router"] {
  const found = (["app", "src/app", "pages", "src/pages"] as const).find((path) =>
    existsSync(join(folder, path)),
  );
  if (found === undefined)
    return { kind: "app", folder: existsSync(join(folder, "src")) ? "src/app" : "app" };
  return { kind: found.endsWith("app") ? "app" : "pages", folder: found };
}

/** What the compiler accepts, as far as tsconfig.json says so itself. */
function endingsOf(folder: string, framework: Framework | undefined): Project["endings"] {
  const file = join(folder, "tsconfig.json");
  const text = existsSync(file) ? readFileSync(file, "utf8") : "";
  if (/"(?:allowImportingTsExtensions|rewriteRelativeImportExtensions)"\s*:\s*true/.test(text))
    return "source";
  const bundles = /"moduleResolution"\s*:\s*"bundler"/i.test(text);
  return framework === "next" || bundles ? "none" : "output";
}

// How the receiver is mounted in a framework: the few lines to add, or the file of its own that Next.js wants.
import type { Project } from "./project.ts";

/** Lines for a person to add. */
export interface Mount {
  /** Where they go. */
  readonly place: string;
  readonly code: string;
}

const NAMES = { next: "Next.js", hono: "Hono", fastify: "Fastify", express: "Express" } as const;

/** The framework as it writes itself. */
export function frameworkName({ framework }: Project): string | undefined {
  return framework && NAMES[framework];
}

/** The lines to add to the application; undefined where Ukemi serves by itself. */
export function mountLines(project: Project, configImport: string): Mount | undefined {
  const { framework } = project;
  if (framework === undefined) return undefined;
  if (framework === "next") {
    return {
      place: "in next.config: what Ukemi brings must not be bundled",
      code: `serverExternalPackages: ["ukemi", "pg"],`,
    };
  }
  const place = {
    hono: "where your routes are",
    fastify: "where your routes are",
    express: "before express.json()",
  };
  return {
    place: `in the file of your server, ${place[framework]}`,
    code: `${openLines(project, configImport)}\n\n${ROUTES[framework]}`,
  };
}

/** The route of Next.js, by the router that it uses. */
export function nextRoute(project: Project, configImport: string): string {
  const typed = project.language === "typescript";
  return (project.router?.kind === "pages" ? pagesRoute : appRoute)(typed, configImport);
}

function openLines({ modules, language, manager }: Project, configImport: string): string {
  const requires = modules === "commonjs" && language === "javascript";
  const imports = requires
    ? `const { createUkemi } = require("ukemi");
const { default: config } = require("${configImport}");`
    : `import { createUkemi } from "ukemi";
import config from "${configImport}";`;
  const wait = modules === "esm" ? "await" : "void";
  return `${imports}

const ukemi = createUkemi(config);
${wait} config.handlers?.(ukemi);
${wait} ukemi.work(); // or leave this out, and run \`${manager.run} ukemi work\` beside your server`;
}

const ROUTES = {
  hono: `app.all("/webhooks/stripe", (context) => ukemi.receiver("stripe")(context.req.raw));`,
  express: `app.all("/webhooks/stripe", ukemi.nodeReceiver("stripe"));`,
  fastify: `app.register(async (webhooks) => {
  // here bodies stay unread: a signature covers the raw bytes
  webhooks.removeAllContentTypeParsers();
  webhooks.addContentTypeParser("*", (_request, _payload, done) => done(null));
  webhooks.all("/webhooks/stripe", async (request, reply) => {
    reply.hijack(); // the receiver answers by itself
    await ukemi.nodeReceiver("stripe")(request.raw, reply.raw);
  });
});`,
} as const;

const SHARED =
  "One for the process, though Next.js may load this file again; and not before the first request: a build has no secrets.";

function appRoute(typed: boolean, configImport: string): string {
  const request = typed ? "request: Request" : "request";
  const returns = typed ? ": Promise<Response>" : "";
  const documented = typed ? "" : "/** @param {Request} request */\n";
  return `// Receives Stripe's webhooks. What is done about them runs elsewhere: \`ukemi work\`, or \`ukemi dev\` on this machine.
import { createUkemi${typed ? ", type Ukemi" : ""} } from "ukemi";

export const runtime = "nodejs";

// ${SHARED}
${sharedLine(typed)}

${documented}export async function POST(${request})${returns} {
  shared.ukemi ??= createUkemi((await import("${configImport}")).default);
  return shared.ukemi.receiver("stripe")(request);
}
`;
}

function pagesRoute(typed: boolean, configImport: string): string {
  const types = typed ? 'import type { NextApiRequest, NextApiResponse } from "next";\n' : "";
  const parameters = typed ? "request: NextApiRequest, response: NextApiResponse" : "request, response";
  const returns = typed ? ": Promise<void>" : "";
  const documented = typed
    ? ""
    : `/**
 * @param {import("next").NextApiRequest} request
 * @param {import("next").NextApiResponse} response
 */
`;
  return `// Receives Stripe's webhooks. What is done about them runs elsewhere: \`ukemi work\`, or \`ukemi dev\` on this machine.
${types}import { createUkemi${typed ? ", type Ukemi" : ""} } from "ukemi";

// A signature covers the raw bytes: nothing may read the body first.
export const config = { api: { bodyParser: false } };

// ${SHARED}
${sharedLine(typed)}

${documented}export default async function handler(${parameters})${returns} {
  shared.ukemi ??= createUkemi((await import("${configImport}")).default);
  await shared.ukemi.nodeReceiver("stripe")(request, response);
}
`;
}

function sharedLine(typed: boolean): string {
  return typed
    ? "const shared = globalThis as { ukemi?: Ukemi };"
    : 'const shared = /** @type {{ ukemi?: import("ukemi").Ukemi }} */ (globalThis);';
}

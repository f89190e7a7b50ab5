// Makes the reference pages from the code. `UPDATE_DOCS=1 npx vitest run --project unit test/docs` writes them.
import type { Command } from "commander";
import type { TObject } from "typebox";
import { createProgram } from "../../src/cli/main.ts";
import { catalogue } from "../../src/errors.ts";
import { REFUSALS } from "../../src/inbox/receipt.ts";
import { createMetrics } from "../../src/observe/metrics.ts";
import { OPTION_NAMES, OPTIONS } from "../../src/options.ts";
import { expectationOf } from "../../src/server/parameters.ts";
import { ROUTES } from "../../src/server/routes/routes.ts";

const MADE = "<!-- Made from the code: UPDATE_DOCS=1 npx vitest run --project unit test/docs -->";

function page(title: string, intro: string, body: string): string {
  return `# ${title}\n\n${MADE}\n\n${intro}\n\n${body.trim()}\n`;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}

const code = (text: string) => `\`${text}\``;

/** Every option: docs/reference/options.md. */
function options(): string {
  const rows = OPTION_NAMES.map((name) => {
    const {
      text,
      env,
      flag,
      default: fallback,
      secret,
    } = OPTIONS[name] as {
      text: string;
      env?: string;
      flag?: string;
      default: unknown;
      secret?: boolean;
    };
    const shown =
      fallback === undefined || Array.isArray(fallback)
        ? "not set"
        : code(JSON.stringify(fallback).replaceAll('"', ""));
    return [
      code(name),
      text + (secret ? " Secret: never shown." : ""),
      shown,
      env ? code(env) : "",
      flag ? code(`--${flag}`) : "",
    ];
  });
  return page(
    "Options",
    "Flags win over the environment, the environment over the configuration file (`ukemi.config.ts`), the file over defaults. Every command that uses options reads the file. In code, pass them to `createUkemi({ … })`. `ukemi doctor` shows the values in force and where each came from.",
    table(["option", "meaning", "default", "environment", "flag"], rows),
  );
}

/** Every error: docs/reference/errors.md. */
function errors(): string {
  const rows = Object.entries(catalogue).map(([name, entry]) => [
    code(name),
    "status" in entry ? String(entry.status) : "–",
    entry.title,
    entry.retryable ? "yes" : "no",
    entry.remedy,
  ]);
  return page(
    "Errors",
    "Every error carries one of these codes: as `code` in a problem document (RFC 9457, `application/problem+json`), or as `UkemiError.code` in code. Codes are stable. Without a status an error ends a command instead of answering a request.",
    table(["code", "status", "title", "does trying again help?", "what to do"], rows),
  );
}

/** Every reason to refuse a delivery: docs/reference/refusals.md. */
function refusals(): string {
  const rows = Object.entries(REFUSALS).map(([reason, { result, remedy }]) => [
    code(reason),
    code(result),
    remedy,
  ]);
  return page(
    "Refusals",
    "Why a delivery was refused: `reason` in the log line and in `ukemi.rejections`, `result` in the log line and in `ukemi_inbox_events_total`. The caller is told none of it. Other results: `accepted`, `duplicate`, `skipped` (another mode), `rejected_size` (413), `rejected_address` (403), `rejected_abuse` (429), `rejected_route` (404, 405), and `error` with an [error code](errors.md) as its reason (503).",
    table(["reason", "result", "what to do"], rows),
  );
}

/** Every command: docs/reference/cli.md. */
function cli(): string {
  const program = createProgram();
  const flags = (command: Command) =>
    table(
      ["flag", "meaning"],
      command.options.map((option) => [code(option.flags), option.description]),
    );
  const describe = (command: Command, path: string): string[] => {
    const args = command.registeredArguments.map((argument) =>
      argument.required ? ` <${argument.name()}>` : ` [${argument.name()}]`,
    );
    const name = `${path} ${command.name()}`;
    const own = command.options.length === 0 ? [] : [flags(command)];
    return [
      [`## ${name}${args.join("")}`, command.description(), ...own].join("\n\n"),
      ...command.commands.flatMap((part) => describe(part, name)),
    ];
  };
  const commands = program.commands.flatMap((command) => describe(command, "ukemi"));
  return page(
    "Command line",
    "`--help` works on every command. Exit codes: 0 done, 1 failed, 2 wrong flag, argument or option. In brackets: the environment variable that does the same.",
    [`## ukemi\n\n${flags(program)}`, ...commands].join("\n\n"),
  );
}

/** Every metric of ours: docs/reference/metrics.md. */
async function metrics(): Promise<string> {
  const { registry } = createMetrics({
    version: "0.0.0",
    waiting: () => 0,
    running: () => 0,
    skewMs: () => 0,
    backlog: () => Promise.resolve(undefined),
  });
  const rows = (await registry.getMetricsAsJSON())
    .filter((metric) => metric.name.startsWith("ukemi_"))
    .map((metric) => {
      const { labelNames } = registry.getSingleMetric(metric.name) as unknown as { labelNames: string[] };
      return [code(metric.name), String(metric.type), labelNames.map(code).join(" "), metric.help];
    });
  return page(
    "Metrics",
    "`GET /metrics` in Prometheus' text format: without a token from this machine, with the admin token from elsewhere. Beside these, Node's own `nodejs_*` and `process_*`. No label carries an id, an address or anything a caller chose.",
    table(["name", "type", "labels", "meaning"], rows),
  );
}

/** Every route of the admin API: docs/reference/admin-api.md. */
function adminApi(): string {
  const fields = (schema: TObject, where: string) => {
    const required = (schema.required ?? []) as readonly string[];
    return Object.entries(schema.properties).map(([name, field]) => {
      const { description = "", default: fallback } = field as {
        description?: string;
        default?: string | number | boolean;
      };
      const shown = fallback === undefined ? "" : ` Default: ${String(fallback)}.`;
      const expected = `${expectationOf(field)}${required.includes(name) ? "; needed" : ""}`;
      return [code(name), where, `${description}${shown}`, expected];
    });
  };
  const routes = ROUTES.map((route) => {
    const rows = [
      ...(route.query ? fields(route.query, "query") : []),
      ...(route.body ? fields(route.body, "body") : []),
    ];
    const who = `Scope ${code(route.scope)}${route.reach === "everything" ? "; not for tokens bound to tenants" : ""}. Client: ${code(`client.${route.id}()`)}.`;
    return [
      `## ${code(`${route.method} /api/v1${route.path}`)}`,
      route.text,
      who,
      ...(rows.length === 0 ? [] : [table(["parameter", "in", "meaning", "expected"], rows)]),
    ].join("\n\n");
  });
  return page(
    "Admin API",
    [
      "The same as the OpenAPI document at `GET /api/v1/openapi.json`, from which the typed client `ukemi/client` is made.",
      "**Who may**: `Authorization: Bearer …` with a token (`ukemi token create`), or with the value of `UKEMI_ADMIN_TOKEN`, which may everything. As long as there is neither, callers on this machine are answered, and the server refuses to listen beyond loopback. Scopes: `read` looks, `operate` changes jobs and queues, `admin` makes tokens; each includes those before it. A token bound to tenants sees and changes only what is theirs.",
      '**Form**: JSON in snake_case, times in ISO 8601. Lists answer `{ "items": […], "cursor": "…" }`; the cursor is absent on the last page, and rows that arrive meanwhile neither shift nor repeat. Errors are problem documents with a [code](errors.md): `400` names the parameter, `401` lacks a token, `403` lacks a scope or tenant, `503` may be tried again.',
      "**Changes** are POST with `content-type: application/json` and a `reason`, which is kept in the audit in the same transaction. With an `Idempotency-Key` a request that comes again within 24 hours is answered as the first was (`Idempotency-Replayed: true`) and changes nothing; the same key with another request is a `422`.",
    ].join("\n\n"),
    routes.join("\n\n"),
  );
}

/** The pages that are made from the code, by file name. */
export async function referencePages(): Promise<Record<string, string>> {
  return {
    "options.md": options(),
    "errors.md": errors(),
    "refusals.md": refusals(),
    "cli.md": cli(),
    "admin-api.md": adminApi(),
    "metrics.md": await metrics(),
  };
}

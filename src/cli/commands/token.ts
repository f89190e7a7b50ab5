// `ukemi token`: who may use the API, for what, for which tenants, and until when.
import { Command, Option } from "commander";
import type { MadeToken } from "../../client/client.ts";
import { UkemiError } from "../../errors.ts";
import { SCOPES, type Scope } from "../../storage/tokens.ts";
import { listCommand } from "../list.ts";
import { note, print, printJson } from "../print.ts";
import { readSpan, showAgo, showSpan } from "../moment.ts";
import { withApi, withTarget } from "../target.ts";

interface TokenFlags {
  readonly name?: string;
  readonly scope: Scope;
  readonly tenant?: readonly string[];
  readonly expiresIn?: string;
  readonly overlap: string;
  readonly reason?: string;
  readonly json?: boolean;
}

export function tokenCommand(): Command {
  return new Command("token")
    .description("Make, list, rotate and revoke tokens of the admin API.")
    .addCommand(
      listCommand({
        name: "list",
        call: "listTokens",
        description: "List the tokens, newest first. Secrets are not stored and cannot be shown.",
        row: (token, tokens) => ({
          id: token.id,
          token: `${token.hint}…`,
          name: token.name,
          scope: token.scope,
          state: stateOf(token),
          ...(tokens.some(({ tenants }) => tenants !== null)
            ? { tenants: token.tenants?.join(", ") ?? "all" }
            : {}),
          used: token.last_used_at === null ? "never" : showAgo(token.last_used_at),
          "made by": token.created_by,
        }),
        table: { cut: ["name", "tenants", "made by"], optional: ["made by", "token", "used", "tenants"] },
        empty: "There are no tokens: the API answers callers on the server's own machine only.",
      }),
      { isDefault: true },
    )
    .addCommand(createCommand())
    .addCommand(rotateCommand())
    .addCommand(revokeCommand());
}

function stateOf({ active, revoked_at, expires_at }: Omit<MadeToken, "secret">): string {
  if (revoked_at !== null) return "revoked";
  if (!active) return "expired";
  return expires_at === null ? "active" : `${showSpan(new Date(expires_at).getTime() - Date.now())} left`;
}

const REASON = "Why: kept in the audit with your name. Needed.";

function createCommand(): Command {
  const command = new Command("create")
    .description("Make a token. Its secret is printed once and stored nowhere.")
    .option("--name <text>", "For people: whose it is, and what for. Needed.")
    .addOption(
      new Option("--scope <scope>", "What it allows; each includes those before it.")
        .choices(SCOPES)
        .default("read"),
    )
    .option(
      "--tenant <tenant...>",
      "Only these tenants' things; may be given several times. Unset: everything.",
    )
    .option("--expires-in <span>", "How long it is good: 12h, 90d. Unset: until it is revoked.")
    .option("--reason <text>", REASON)
    .option("--json", "Print the API's answer as JSON, on one line.");
  return withTarget(command).action(async () => {
    const flags = command.opts<TokenFlags>();
    const { name, scope, tenant, expiresIn } = flags;
    if (name === undefined) throw new UkemiError("invalid_option", "--name must say whose token it is.");
    const token = await withApi(command, (api) =>
      api.createToken({
        name,
        scope,
        tenants: tenant,
        expires_in_seconds:
          expiresIn === undefined ? undefined : Math.round(readSpan("--expires-in", expiresIn) / 1000),
        reason: reasonOf(flags),
      }),
    );
    printToken(token, flags);
  });
}

function rotateCommand(): Command {
  const command = new Command("rotate")
    .description("Make a token like another one; both are good until the overlap is over.")
    .argument("<id>", "The token's id: ukemi token list shows it.")
    .option("--overlap <span>", "How long the old one stays good: 0s, 1h, 7d.", "1d")
    .option("--reason <text>", REASON)
    .option("--json", "Print the API's answer as JSON, on one line.");
  return withTarget(command).action(async (id: string) => {
    const flags = command.opts<TokenFlags>();
    const overlap = Math.round(readSpan("--overlap", flags.overlap) / 1000);
    const token = await withApi(command, (api) =>
      api.rotateToken({ id, overlap_seconds: overlap, reason: reasonOf(flags) }),
    );
    printToken(token, flags);
  });
}

function revokeCommand(): Command {
  const command = new Command("revoke")
    .description("End a token at once.")
    .argument("<id>", "The token's id: ukemi token list shows it.")
    .option("--reason <text>", REASON)
    .option("--json", "Print the API's answer as JSON, on one line.");
  return withTarget(command).action(async (id: string) => {
    const flags = command.opts<TokenFlags>();
    const result = await withApi(command, (api) => api.revokeToken({ id, reason: reasonOf(flags) }));
    if (flags.json) printJson(result);
    else print(`Revoked ${id}.`);
  });
}

function reasonOf({ reason }: TokenFlags): string {
  if (reason !== undefined && reason.trim() !== "") return reason;
  throw new UkemiError("invalid_option", "--reason must say why: it is kept in the audit.");
}

/** The secret alone on standard output, so that a script can take it; what a person should know beside it. */
function printToken(token: MadeToken, { json }: TokenFlags): void {
  if (token.secret === null) throw lost(token);
  if (json) return printJson(token);
  const tenants = token.tenants === null ? "all tenants" : `tenants ${token.tenants.join(", ")}`;
  note(
    `Token ${token.id} (${token.name}): scope ${token.scope}, ${tenants}, ${stateOf(token)}.\n` +
      "This is its secret. It is shown this once; set it as UKEMI_TOKEN:",
  );
  print(token.secret);
}

/** The answer was lost and asked for again, and a secret is told once. */
function lost({ id }: MadeToken): UkemiError {
  const remedy = `End it with ukemi token revoke ${id}, and make another.`;
  return new UkemiError(
    "server_unreachable",
    `The token ${id} was made, and its secret was lost on the way.`,
    {
      remedy,
    },
  );
}

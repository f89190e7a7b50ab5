// `ukemi send`: sends a correctly signed test event to a server and shows what became of it.
import { Command } from "commander";
import { UkemiError } from "../../errors.ts";
import { OPTIONS } from "../../options.ts";
import { sampleEvent, sampleEventTypes } from "../../testing/sample-events.ts";
import { signStripe } from "../../testing/sign.ts";
import { readConfigured, withConfig } from "../config.ts";
import { makeSecret, readDevSecret } from "../dev-secret.ts";
import { EXIT } from "../exit.ts";
import { withFlags } from "../settings.ts";

interface SendFlags {
  readonly url?: string;
  readonly secret?: string;
  readonly id?: string;
  readonly json?: boolean;
}

/** What the API says of the event. */
interface ShownEvent {
  readonly id: string;
  readonly status: string;
  readonly refs: readonly { readonly kind: string; readonly id: string }[];
  readonly jobs: readonly { readonly handler: string; readonly state: string }[];
}

export function sendCommand(): Command {
  const command = new Command("send")
    .description("Send a correctly signed Stripe test event, and show what became of it.")
    .argument("[type]", "The event's type.", "payment_intent.succeeded")
    .option(
      "--url <url>",
      "The server to send to. Default: this machine, on the configured port. [UKEMI_URL]",
    )
    .option(
      "--secret <secret>",
      `The signing secret; else ${OPTIONS.stripeSecrets.env}, else that of \`ukemi dev\`.`,
    )
    .option("--id <id>", "The event's id: send the same one twice to see a duplicate.")
    .option("--json", "Print JSON.");
  command.registeredArguments[0]!.argChoices = [...sampleEventTypes]; // for the shell's completion; any other is sent too
  return withFlags(withConfig(command), ["data"]).action(async (type: string) => {
    const { settings } = await readConfigured(command, makeSecret());
    const given = command.opts<SendFlags>();
    const url = given.url ?? (process.env.UKEMI_URL || `http://127.0.0.1:${settings.port}`);
    const flags = { ...given, url: url.replace(/\/+$/, "") };
    const secret = flags.secret ?? settings.stripeSecrets[0] ?? (await readDevSecret(settings.data));
    if (secret === undefined) {
      throw new UkemiError(
        "invalid_option",
        "There is no signing secret: start the server with this data folder first (npm start, or npx ukemi dev), or pass --secret.",
      );
    }
    const body = sampleEvent(type, flags.id === undefined ? {} : { id: flags.id });
    const answer = await post(`${flags.url}/webhooks/stripe`, body, secret);
    const event =
      answer.messageId === null ? undefined : await lookUp(flags.url, answer.messageId, settings.adminToken);
    process.stdout.write(flags.json ? `${JSON.stringify({ answer, event })}\n` : words(type, answer, event));
    if (answer.status !== 204) process.exitCode = EXIT.failure;
  });
}

/** What a refusing server said; a stranger on that port may say anything. */
async function readProblem(response: Response): Promise<string> {
  const text = await response.text();
  try {
    return (JSON.parse(text) as { detail?: string }).detail ?? text.slice(0, 200);
  } catch {
    return text.slice(0, 200);
  }
}

type Sent = Awaited<ReturnType<typeof post>>;

async function post(url: string, body: string, secret: string) {
  const startedAt = performance.now();
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json; charset=utf-8", ...signStripe(body, secret) },
    body,
  }).catch((error: unknown) => {
    throw new UkemiError("server_unreachable", `No server answers at ${url}.`, { cause: error });
  });
  return {
    status: response.status,
    durationMs: Math.round(performance.now() - startedAt),
    requestId: response.headers.get("x-request-id"),
    eventId: (JSON.parse(body) as { id: string }).id,
    messageId: response.headers.get("x-message-id"),
    duplicate: response.headers.get("x-duplicate") === "true",
    problem: response.status === 204 ? undefined : await readProblem(response),
  };
}

async function lookUp(url: string, id: string, token: string | undefined): Promise<ShownEvent | undefined> {
  const response = await fetch(`${url}/api/v1/events/${id}`, {
    headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
  });
  return response.ok ? ((await response.json()) as ShownEvent) : undefined;
}

function words(type: string, answer: Sent, event: ShownEvent | undefined): string {
  const lines = [
    `sent      ${type}  ${answer.eventId}`,
    `answered  ${verdict(answer)} in ${answer.durationMs} ms`,
  ];
  if (answer.problem) lines.push(`          ${answer.problem}`, `request   ${answer.requestId}`);
  if (event) {
    lines.push(`stored    ${event.id}`);
    lines.push(
      `status    ${event.status}${event.status === "unrouted" ? " (no handler wants this type yet)" : ""}`,
    );
    for (const ref of event.refs) lines.push(`ref       ${ref.kind} ${ref.id}`);
    for (const job of event.jobs) lines.push(`job       ${job.handler} ${job.state}`);
  } else if (answer.status === 204) {
    lines.push("          the API did not show the event: set UKEMI_ADMIN_TOKEN as on the server");
  }
  return `${lines.join("\n")}\n`;
}

function verdict(answer: Sent): string {
  if (answer.status !== 204) return String(answer.status);
  return answer.duplicate ? "204: stored before, a duplicate" : "204: committed";
}

// `ukemi audit`: who did what, and why.
import { Command } from "commander";
import type { AuditEntry } from "../../client/client.ts";
import { listCommand } from "../list.ts";
import { showAgo } from "../moment.ts";

export function auditCommand(): Command {
  return new Command("audit").description("See who did what, and why.").addCommand(
    listCommand({
      name: "list",
      call: "listAudit",
      description: "List the entries of the audit, newest first.",
      row: (entry, entries) => ({
        id: String(entry.id),
        when: showAgo(entry.at),
        actor: entry.actor,
        action: entry.action,
        target: entry.target ?? "",
        ...(entries.some(({ tenant }) => tenant !== null) ? { tenant: entry.tenant ?? "" } : {}),
        why: whyOf(entry),
      }),
      table: { cut: ["actor", "target", "tenant", "why"], names: ["target"], optional: ["id", "tenant"] },
      empty: "Nothing was done here.",
    }),
    { isDefault: true },
  );
}

/** The reason in words, else what the entry says. */
function whyOf({ details }: AuditEntry): string {
  if (typeof details.reason === "string") return details.reason;
  const facts = Object.entries(details).filter(([, value]) => value !== null);
  return facts
    .map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(", ");
}

// `ukemi rejections`: requests that were refused, and why.
import { Command } from "commander";
import type { RejectionDetail } from "../../client/client.ts";
import { listCommand } from "../list.ts";
import { showAgo, showTime } from "../moment.ts";
import { showCommand } from "../show.ts";
import { clean } from "../width.ts";

export function rejectionsCommand(): Command {
  return new Command("rejections")
    .description("See which requests were refused, and why.")
    .addCommand(
      listCommand({
        name: "list",
        call: "listRejections",
        description: "List refused requests, newest first.",
        row: (rejection) => ({
          id: String(rejection.id),
          when: showAgo(rejection.received_at),
          source: rejection.source,
          reason: rejection.reason,
          address: rejection.address ?? "",
          bytes: String(rejection.body_bytes),
          diagnosis: rejection.diagnosis,
        }),
        table: { cut: ["source", "diagnosis"], optional: ["bytes", "address"] },
        empty: "No request was refused.",
      }),
      { isDefault: true },
    )
    .addCommand(
      showCommand({
        call: "getRejection",
        description: "Show one refused request with what was kept of it.",
        argument: "Its id: ukemi rejections lists them.",
        describe,
      }),
    );
}

function describe(rejection: RejectionDetail): string {
  const headers = Object.entries(rejection.headers).map(([name, value]) => `  ${name}: ${textOf(value)}`);
  const facts = [
    `refused    ${showTime(new Date(rejection.received_at))}, ${rejection.reason}`,
    `source     ${rejection.source}`,
    `diagnosis  ${rejection.diagnosis}`,
    `address    ${rejection.address ?? "unknown"}`,
    `request    ${rejection.request_id}`,
    "headers",
    ...headers,
    `body       ${rejection.body_bytes} bytes, of which the beginning is kept:`,
    rejection.body_sample,
  ];
  return facts.map(clean).join("\n");
}

const textOf = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));

// The settings of a small server that must not lose a commit, as arguments of `postgres`.
import { UkemiError } from "../../errors.ts";

const base = {
  // Durability first: these are defaults, stated so that no configuration file can weaken them unseen.
  fsync: "on",
  synchronous_commit: "on",
  full_page_writes: "on",
  max_connections: "100",
  shared_buffers: "128MB",
  password_encryption: "scram-sha-256",
  timezone: "UTC",
  log_timezone: "UTC",
  lc_messages: "C",
  // Failing statements and their values belong to the application, not into a log file: only the server's own news.
  log_min_messages: "log",
  log_min_error_statement: "panic",
  log_error_verbosity: "terse",
  logging_collector: "off",
  log_destination: "stderr",
  cluster_name: "ukemi",
} as const;

/** `-c name=value` for each setting; those of the caller win. */
export function settingArguments(...layers: readonly Readonly<Record<string, string>>[]): readonly string[] {
  const settings = Object.assign({}, base, ...layers) as Record<string, string>;
  return Object.entries(settings).flatMap(([name, value]) => {
    if (!/^[a-z_][a-z0-9_.]*$/i.test(name)) {
      throw new UkemiError(
        "invalid_option",
        `${JSON.stringify(name)} is not the name of a PostgreSQL setting.`,
      );
    }
    return ["-c", `${name}=${value}`];
  });
}

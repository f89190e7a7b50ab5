// Standard output for log lines: what is said in one turn of the event loop leaves in one write.
import pino from "pino";

interface Lines {
  write(line: string): void;
  /** For the last lines of a process; pino asks for it after a fatal one. */
  flushSync(): void;
}

/** One for the process, since there is one standard output: every logger's lines leave in the order they were said. */
let shared: Lines | undefined;

/** Where loggers write. A reader that is slow holds nobody up. */
export function standardOutput(): Lines {
  return (shared ??= openStandardOutput());
}

function openStandardOutput(): Lines {
  const destination = pino.destination({ dest: 1, sync: false, minLength: 0 });
  let lines = "";
  // answers come in groups, after their commit: a write for each of their lines would cost more than the line
  function write(): void {
    const gathered = lines;
    lines = "";
    if (gathered !== "") destination.write(gathered);
  }
  function flushSync(): void {
    write();
    destination.flushSync();
  }
  process.on("exit", flushSync);
  return {
    write(line) {
      if (lines === "") setImmediate(write);
      lines += line;
    },
    flushSync,
  };
}

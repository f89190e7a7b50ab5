// Standard output for log lines: what is said within a few milliseconds leaves in one write.
import pino from "pino";

interface Lines {
  write(line: string): void;
  /** For the last lines of a process; pino asks for it after a fatal one. */
  flushSync(): void;
}

/**
 * How long the first line of a group waits for others. A write that holds nobody up is another thread's work, and to wake that
 * for every line, or for every commit's, costs more than the lines.
 */
const GATHER_MS = 20;

/** One for the process, since there is one standard output: every logger's lines leave in the order they were said. */
let shared: Lines | undefined;

/** Where loggers write. A reader that is slow holds nobody up. */
export function standardOutput(): Lines {
  return (shared ??= openStandardOutput());
}

function openStandardOutput(): Lines {
  const destination = pino.destination({ dest: 1, sync: false, minLength: 0 });
  let lines = "";
  function write(): void {
    const gathered = lines;
    lines = "";
    if (gathered !== "") destination.write(gathered);
  }
  /** What is given to the destination now would be another thread's work, and the process may end before that is done. */
  function flushSync(): void {
    const last = lines;
    lines = "";
    destination.flushSync();
    if (last !== "") pino.destination({ dest: 1, sync: true }).write(last);
  }
  process.on("exit", flushSync);
  return {
    write(line) {
      // the end of the process does not wait for the timer, but writes what is left
      if (lines === "") setTimeout(write, GATHER_MS).unref();
      lines += line;
    },
    flushSync,
  };
}

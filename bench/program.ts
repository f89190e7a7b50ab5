// The other side of programs.ts: a process that answers the commands of the bench.
import { existsSync, readFileSync } from "node:fs";
import type { Answer, Question } from "./programs.ts";

/** What a program can be asked. */
export type Commands = Readonly<Record<string, (given: never) => unknown>>;

/** Answers questions, one after the other as they come, until the bench ends it. */
export function answerBench(commands: Commands, stop: () => Promise<void> | void = () => {}): void {
  const all: Commands = { ready: () => true, memory: memoryPeak, ...commands };
  process.on("message", (question: Question) => void reply(all, question));
  const end = () => {
    process.on("unhandledRejection", () => {}); // what is under way fails now, and nobody waits for it
    void Promise.resolve(stop()).finally(() => process.exit(0));
  };
  process.on("SIGTERM", end);
  process.on("SIGINT", () => {}); // Ctrl-C reaches everyone: the bench ends us when it has seen it too
  process.on("disconnect", end); // the bench is gone
  if (!process.connected) end(); // and was before we were ready
}

/** The most memory that this process has had in RAM, in bytes. */
export function memoryPeak(): number {
  // what getrusage says includes the process that we were forked from
  if (!existsSync("/proc/self/status")) return process.resourceUsage().maxRSS * 1024;
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync("/proc/self/status", "utf8"))![1]) * 1024;
}

async function reply(commands: Commands, { id, command, given }: Question): Promise<void> {
  const send = (answer: Answer) => process.send?.(answer);
  try {
    const run = commands[command];
    if (!run) throw new Error(`there is no command ${command}`);
    send({ id, answer: await run(given as never) });
  } catch (error) {
    send({ id, fault: error instanceof Error ? (error.stack ?? error.message) : String(error) });
  }
}

// The other side of programs.ts: a process that answers the commands of the bench.
import type { Answer, Question } from "./programs.ts";

/** What a program can be asked. */
export type Commands = Readonly<Record<string, (given: never) => unknown>>;

/** Answers questions, one after the other as they come, until the bench ends it. */
export function answerBench(commands: Commands, stop: () => Promise<void> | void = () => {}): void {
  const all: Commands = { ready: () => true, ...commands };
  process.on("message", (question: Question) => void reply(all, question));
  const end = () => void Promise.resolve(stop()).finally(() => process.exit(0));
  process.on("SIGTERM", end);
  process.on("disconnect", end); // the bench is gone
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

// Contestants and loaders are processes of their own: one must not wait for the other's event loop.
import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { ending } from "./endings.ts";
import { argumentsFor } from "./nodes.ts";

/** A process that was started, and answers commands. */
export interface Program {
  readonly pid: number;
  /** Asks it to do something; resolves with its answer. */
  ask<T>(command: string, given?: unknown): Promise<T>;
  /** The most memory that it has had in RAM so far, in bytes. */
  memory(): Promise<number>;
  /** Ends it, and waits for its end. */
  stop(): Promise<void>;
}

export interface ProgramOptions {
  /** The node that runs it. */
  readonly node: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly args?: readonly string[];
}

/** What goes to and fro. */
export interface Question {
  readonly id: number;
  readonly command: string;
  readonly given: unknown;
}
export interface Answer {
  readonly id: number;
  readonly answer?: unknown;
  readonly fault?: string;
}

const READY_MS = 60_000;
const STOP_MS = 10_000;

/** Starts a program of this folder and waits until it is ready. */
export async function startProgram(path: string, options: ProgramOptions): Promise<Program> {
  const file = new URL(path, import.meta.url).pathname;
  const child = fork(file, options.args ?? [], {
    execPath: options.node,
    execArgv: argumentsFor(options.node),
    env: { ...process.env, JITI_FS_CACHE: "false", ...options.env },
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  const waiting = new Map<number, (answer: Answer) => void>();
  child.on("message", (answer: Answer) => {
    waiting.get(answer.id)?.(answer);
    waiting.delete(answer.id);
  });
  child.on("exit", (code) => {
    for (const [id, resolve] of waiting) resolve({ id, fault: `it ended with ${code ?? "a signal"}` });
  });
  let asked = 0;
  const ask = async <T>(command: string, given?: unknown): Promise<T> => {
    const id = (asked += 1);
    const { answer, fault } = await new Promise<Answer>((resolve) => {
      waiting.set(id, resolve);
      const question: Question = { id, command, given: given ?? null };
      if (!child.connected) return resolve({ id, fault: "it has ended" });
      child.send(question);
    });
    if (fault !== undefined) throw new Error(`${path}: ${command}: ${fault}`);
    return answer as T;
  };
  const stop = ending(() => end(child));
  await untilReady(ask, path).catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  return { pid: child.pid!, ask, memory: () => ask<number>("memory"), stop };
}

async function untilReady(ask: Program["ask"], path: string): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${path} is not ready after ${READY_MS} ms`)), READY_MS);
  });
  await Promise.race([ask("ready"), late]).finally(() => clearTimeout(timer));
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
  await ended;
  clearTimeout(timer);
}

// What of a stack helps to find the cause: the application's own frames.
import { fileURLToPath } from "node:url";

/** Where this very code lies, in an application's node_modules or in a clone. */
const OURS = fileURLToPath(new URL("..", import.meta.url));

const FOREIGN = /node_modules[/\\](?:ukemi|pg|pg-pool|pg-protocol)[/\\]|[( ]node:/;

/** The frames of a stack, without those of Ukemi, of pg and of Node, unless there are no others. */
export function framesOf(stack: string): readonly string[] {
  // the first lines repeat the message
  const frames = stack.split("\n").flatMap((line) => (/^\s*at /.test(line) ? [line.trim()] : []));
  const own = frames.filter((frame) => !FOREIGN.test(frame) && !frame.includes(OURS));
  return own.length > 0 ? own : frames;
}

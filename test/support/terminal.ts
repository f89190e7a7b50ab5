// A real terminal for a command: a pseudo-terminal, and a screen that shows what a person would see.
import { spawn, type IPty } from "@lydell/node-pty";
import xterm, { type Terminal as Screen } from "@xterm/headless";
import { onTestFinished } from "vitest";
import { BIN, cleanEnv } from "./server.ts";
import { until } from "./until.ts";

/** Long enough for a machine that does much else. */
const WAIT_MS = 100_000;

/** Tells the exit code, unseen by whoever looks at the screen. */
const EXIT_NOTE = 777;

/** The shell outlives the command, as a person's does, and what it shows before must be there afterwards. */
const SHELL = `trap : INT; printf '$ ukemi\\r\\n'; "$@"; printf '\\033]${EXIT_NOTE};%s\\007' $?; exec cat`;

export interface Terminal {
  /** The lines with everything that was scrolled away, without blanks at their ends. */
  lines(): string[];
  text(): string;
  /** Lines that went on because the terminal was too narrow for them. */
  wrapped(): string[];
  /** True while the command has a screen of its own. */
  isAlternate(): boolean;
  /** What stands in each cell of a line; the second half of a wide character is undefined. */
  cells(index: number): readonly (string | undefined)[];
  /** Everything that the command has written, but for the note of its exit code. */
  raw(): string;
  type(keys: string): void;
  resize(columns: number, rows: number): void;
  /** Waits until the screen shows it. */
  shows(what: string | RegExp): Promise<void>;
  /** Waits until the command has ended; resolves with its exit code. */
  ended(): Promise<number>;
}

export interface TerminalOptions {
  readonly columns?: number;
  readonly rows?: number;
  readonly env?: Readonly<Record<string, string>>;
}

export const CTRL_C = "\u0003";

/** Runs `ukemi` with these arguments in a terminal. */
export function inTerminal(args: readonly string[], options: TerminalOptions = {}): Terminal {
  const { columns: cols = 80, rows = 24, env = {} } = options;
  const screen = new xterm.Terminal({ cols, rows, scrollback: 10_000, allowProposedApi: true });
  useWideEmoji(screen);
  let code: number | undefined;
  screen.parser.registerOscHandler(EXIT_NOTE, (text) => {
    code = Number(text);
    return true;
  });
  let raw = "";
  const child: IPty = spawn("/bin/sh", ["-c", SHELL, "sh", process.execPath, BIN, ...args], {
    cols,
    rows,
    name: "xterm-256color",
    env: { ...cleanEnv(), ...env },
  });
  child.onData((data) => {
    raw += data;
    screen.write(data);
  });
  let isGone = false;
  child.onExit(() => (isGone = true));
  onTestFinished(() => {
    if (!isGone) child.kill("SIGKILL");
    screen.dispose();
  });
  const linesOf = (isWanted: (isWrapped: boolean) => boolean) => {
    const buffer = screen.buffer.active;
    const lines = Array.from({ length: buffer.length }, (_, index) => buffer.getLine(index)!);
    return lines.filter((line) => isWanted(line.isWrapped)).map((line) => line.translateToString(true));
  };
  const lines = () => linesOf(() => true);
  const text = () => lines().join("\n").trimEnd();
  const wait = async (condition: () => boolean, what: string) => {
    try {
      await until(condition, what, WAIT_MS);
    } catch (error) {
      throw new Error(`${what}, but the terminal shows:\n${text()}`, { cause: error });
    }
  };
  return {
    lines,
    text,
    wrapped: () => linesOf((isWrapped) => isWrapped),
    isAlternate: () => screen.buffer.active.type === "alternate",
    cells(index) {
      const line = screen.buffer.active.getLine(index)!;
      return Array.from({ length: line.length }, (_, column) => {
        const cell = line.getCell(column)!;
        return cell.getWidth() === 0 ? undefined : cell.getChars() || " ";
      });
    },
    raw: () => raw.replace(`\u001B]${EXIT_NOTE};${code}\u0007`, ""),
    type: (keys) => child.write(keys),
    resize(columns, newRows) {
      screen.resize(columns, newRows);
      child.resize(columns, newRows);
    },
    shows: (what) =>
      wait(
        () => (typeof what === "string" ? text().includes(what) : what.test(text())),
        `waited to see ${String(what)}`,
      ),
    async ended() {
      await wait(() => code !== undefined, "waited for the command to end");
      return code!;
    },
  };
}

const WIDE =
  /[\p{Emoji_Presentation}\u1100-\u115F\u2E80-\u303E\u3041-\uA4CF\uAC00-\uD7A3\uF900-\uFAFF\uFF00-\uFF60]/u;
const NONE = /[\p{Mn}\p{Me}\p{Cf}]/u;

/** As terminals of today count: what xterm has built in knows no emoji. */
function useWideEmoji(screen: Screen): void {
  const wcwidth = (code: number): 0 | 1 | 2 => {
    const character = String.fromCodePoint(code);
    if (NONE.test(character)) return 0;
    return WIDE.test(character) ? 2 : 1;
  };
  screen.unicode.register({
    version: "today",
    wcwidth,
    charProperties(code, before) {
      const width = wcwidth(code);
      const joins = width === 0 && before !== 0;
      // the width in bits 1 and 2, and in bit 0 whether it joins the character before
      return ((joins ? (before >> 1) & 3 : width) << 1) | (joins ? 1 : 0);
    },
  });
  screen.unicode.activeVersion = "today";
}

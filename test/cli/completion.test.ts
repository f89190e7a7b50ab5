// `ukemi completion`: the scripts, sourced and asked in real shells.
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { spawn } from "@lydell/node-pty";
import type { Command } from "commander";
import { describe, expect, onTestFinished, test } from "vitest";
import { createProgram } from "../../src/cli/main.ts";
import { runCli } from "../support/cli.ts";
import { cleanEnv } from "../support/server.ts";
import { debianFile } from "../support/tools.ts";
import { until } from "../support/until.ts";

const run = promisify(execFile);

/** A folder with the script, and files to be completed. */
async function writeScript(shell: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "ukemi-completion-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const { code, stdout, stderr } = await runCli(["completion", shell]);
  expect([code, stderr]).toEqual([0, ""]);
  await writeFile(join(folder, "script"), stdout);
  await writeFile(join(folder, "other config.ts"), "");
  return folder;
}

/** What may follow these words; the last of them is being written. */
type Ask = (words: readonly string[]) => Promise<readonly string[]>;

async function askBash(): Promise<Ask> {
  const cwd = await writeScript("bash");
  const program = `source ./script
    COMP_WORDS=("$@"); COMP_CWORD=$(( \${#COMP_WORDS[@]} - 1 ))
    _ukemi; printf '%s\\n' "\${COMPREPLY[@]}"`;
  return async (words) => {
    const asked = ["-c", program, "bash", "ukemi", ...words];
    const { stdout, stderr } = await run("bash", ["--noprofile", "--norc", ...asked], { cwd });
    expect(stderr).toBe("");
    return stdout.split("\n").filter((line) => line !== "");
  };
}

const FISH = debianFile("usr/bin/fish");

async function askFish(): Promise<Ask> {
  const cwd = await writeScript("fish");
  const share = join(dirname(FISH!), "../share/fish");
  const env = {
    ...cleanEnv(),
    HOME: cwd,
    XDG_CONFIG_HOME: cwd,
    XDG_DATA_HOME: cwd,
    LD_LIBRARY_PATH: dirname(debianFile("LIBRARIES/libpcre2-32.so.0")!),
  };
  return async (words) => {
    const line = ["ukemi", ...words].join(" ").replace(/ = ?/, "=");
    const program = `set -p fish_function_path ${share}/functions; source ./script; complete -C '${line}'`;
    const { stdout, stderr } = await run(FISH!, ["--no-config", "-c", program], { cwd, env });
    expect(stderr).toBe("");
    // behind a tab is what it is about; fish writes the flag of --flag=value again
    return stdout
      .split("\n")
      .filter((text) => text !== "")
      .map((text) => text.split("\t")[0]!.replace(/^--[\w-]+=/, ""));
  };
}

const COMMANDS = createProgram().commands.map((command) => command.name());

describe.each([
  { shell: "bash", start: askBash, missing: false },
  { shell: "fish", start: askFish, missing: FISH === undefined },
])("$shell", ({ start, missing }) => {
  test.skipIf(missing)("completes commands and their parts", async () => {
    const ask = await start();
    expect(new Set(await ask([""]))).toEqual(new Set([...COMMANDS, "help"]));
    expect(new Set(await ask(["de"]))).toEqual(new Set(["dev", "dead", "destinations"]));
    const parts = createProgram().commands.find((command) => command.name() === "dead")!.commands;
    expect(new Set(await ask(["dead", ""]))).toEqual(new Set(parts.map((part) => part.name())));
    expect(await ask(["help", "doc"])).toEqual(["doctor"]);
    expect(new Set(await ask(["completion", ""]))).toEqual(new Set(["bash", "zsh", "fish"]));
    expect(await ask(["send", "invoice.paid"])).toEqual(["invoice.paid"]);
  });

  test.skipIf(missing)("completes flags, and values that can be known", async () => {
    const ask = await start();
    expect(await ask(["serve", "--log"])).toEqual(["--log-level"]);
    expect(await ask(["queues", "--js"])).toEqual(["--json"]); // of `queues list`, which is meant
    expect(await ask(["serve", "--js"])).toEqual([]);
    const levels = ["trace", "debug", "info", "warn", "error", "fatal", "silent"];
    expect(new Set(await ask(["serve", "--log-level", ""]))).toEqual(new Set(levels));
    expect(await ask(["serve", "--log-level", "=", "w"])).toEqual(["warn"]);
    expect((await ask(["serve", "--config", "other"])).map((name) => name.replaceAll("\\", ""))).toEqual([
      "other config.ts",
    ]);
    expect(await ask(["serve", "--data", "other"])).toEqual([]); // a file is no folder
    expect(await ask(["serve", "--port", ""])).toEqual([]);
    // the value of a flag is no command, whatever it is called
    expect(await ask(["serve", "--config", "dead", "--no-"])).toEqual(["--no-work"]);
  });
});

test("bash knows every command, flag and choice of the program", async () => {
  const ask = await askBash();
  const visit = async (command: Command, path: readonly string[]): Promise<void> => {
    const flags = command.options.map((option) => option.long ?? option.short!);
    expect(await ask([...path, "-"]), path.join(" ")).toEqual(expect.arrayContaining([...flags, "--help"]));
    for (const part of command.commands) await visit(part, [...path, part.name()]);
  };
  await visit(createProgram(), []);
});

const ZSH = debianFile("bin/zsh");

test.skipIf(ZSH === undefined)("zsh completes commands, flags and values at its prompt", async () => {
  const cwd = await writeScript("zsh");
  const root = join(dirname(ZSH!), "..");
  const zsh = spawn(ZSH!, ["-f", "-i"], {
    cwd,
    cols: 200,
    rows: 50,
    env: { ...cleanEnv(), HOME: cwd, TERM: "dumb" },
  });
  onTestFinished(() => zsh.kill("SIGKILL"));
  let output = "";
  zsh.onData((text) => (output += text));
  const libraries = dirname(debianFile("LIBRARIES/zsh/5.9/zsh/complete.so")!);
  const prepare = [
    `module_path=(${dirname(libraries)})`,
    `fpath=(${root}/usr/share/zsh/functions/**/*(/))`,
    "autoload -U compinit && compinit -u -D",
    "source ./script",
    "setopt no_beep list_ambiguous; LISTMAX=500",
    "PS1='%%'; print rea''dy",
  ];
  for (const line of prepare) zsh.write(`${line}\r`);
  await until(() => /^ready/m.test(output), `the prompt: ${output}`);
  /** Types, asks for what may follow, and clears the line. */
  const ask = async (line: string, ...expected: readonly string[]) => {
    output = "";
    zsh.write(`${line}\t`);
    await until(
      () => expected.every((word) => output.includes(word)),
      `${line} → ${expected.join(", ")}`,
    ).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${output}`);
    });
    const seen = output;
    zsh.write("\u0015");
    return seen;
  };
  expect(await ask("ukemi de", "dead", "dev", "Run everything on this machine")).not.toContain("serve");
  await ask("ukemi dead ", "groups", "replay", "drop");
  await ask("ukemi serve --log-", "--log-level");
  await ask("ukemi serve --log-level ", "trace", "silent");
  await ask("ukemi serve --log-level=wa", "--log-level=warn");
  await ask("ukemi serve --config oth", String.raw`other\ config.ts`);
  await ask("ukemi serve --config dead --no-", "--no-work");
});

test("says how to install itself, and what shells it knows", async () => {
  const { stdout } = await runCli(["completion", "--help"]);
  for (const shell of ["bash", "zsh", "fish"]) expect(stdout).toContain(`ukemi completion ${shell}`);
  expect(await runCli(["completion", "tcsh"])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("Allowed choices are bash, zsh, fish") as string,
  });
});

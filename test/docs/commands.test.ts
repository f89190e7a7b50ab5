// The papers name only commands and flags that are there.
import { readFile } from "node:fs/promises";
import type { Command } from "commander";
import { expect, test } from "vitest";
import { createProgram } from "../../src/cli/main.ts";

const PAPERS = [
  "README.md",
  "SECURITY.md",
  "CONTRIBUTING.md",
  "docs/guides/api.md",
  "docs/guides/bodies.md",
  "docs/guides/configuration.md",
  "docs/guides/effects.md",
  "docs/guides/handlers.md",
  "docs/guides/operating.md",
];

/** No commands, but names of connections in pg_stat_activity. */
const CONNECTIONS = /^ukemi (?:inbox|session|worker|handler|inline|duties|rounds|cli)$/;

/** What is written as code and begins with our name, in a sentence or on a line of a block. */
function commandsIn(text: string): readonly string[] {
  const inSentences = [...text.matchAll(/`(?:npx )?(ukemi [^`\n]+)`/g)];
  const inBlocks = [...text.matchAll(/^(?:\$ )?(?:[A-Z_]+=\S+ )?(?:npx )?(ukemi [^\n]+)$/gm)];
  return [...inSentences, ...inBlocks]
    .map(([, command]) => command!.replace(/\s#.*$/, ""))
    .filter((command) => !CONNECTIONS.test(command));
}

/** The command that the words lead to, and what is wrong with them; a list is what a group alone means. */
function faultOf(program: Command, written: string): string | undefined {
  const words = written.match(/"[^"]*"|\S+/g)!.slice(1);
  let command = program;
  while (words[0] !== undefined && !words[0].startsWith("-")) {
    const part = command.commands.find((child) => child.name() === words[0]);
    if (!part) {
      if (command === program) return `there is no command ${words[0]}`;
      if (command.commands.length > 0) return `${command.name()} has no command ${words[0]}`;
      break;
    }
    command = part;
    words.shift();
  }
  const shown = command.commands.find((child) => child.name() === "list") ?? command;
  const known = new Set(
    shown.options.flatMap(({ long, short }) => [long, short]).concat("--help", "-h", "--version"),
  );
  const flag = words.find((word) => /^--?[a-z]/.test(word) && !known.has(word.replace(/=.*$/, "")));
  return flag === undefined ? undefined : `${shown.name()} has no flag ${flag}`;
}

test.each(PAPERS)("%s names commands and flags that are there", async (paper) => {
  const program = createProgram();
  const text = await readFile(new URL(`../../${paper}`, import.meta.url), "utf8");
  const faults = commandsIn(text).flatMap((written) => {
    const fault = faultOf(program, written);
    return fault === undefined ? [] : [`${written}: ${fault}`];
  });
  expect(faults).toEqual([]);
});

test("a mistyped command and a mistyped flag are noticed", () => {
  const text =
    "Run `ukemi dead shwo 1`.\n\n```sh\n$ ukemi dead replay 1 --resaon x # why\nnpx ukemi dead --since 2h\n```";
  expect(commandsIn(text).map((written) => faultOf(createProgram(), written))).toEqual([
    "dead has no command shwo",
    "replay has no flag --resaon",
    undefined,
  ]);
});

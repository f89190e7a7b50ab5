// The completion script for fish.
import { brief, steps, valuedFlags } from "./cases.ts";
import { everyCommand, type CompletedCommand, type CompletedFlag } from "./tree.ts";

export function fishScript(tree: CompletedCommand): string {
  const valued = valuedFlags(tree).map(({ words }) => `"${words}"`);
  const lines = everyCommand(tree).flatMap((command) => {
    const here = `complete -c ukemi -n "__ukemi_is '${command.path}'"`;
    return [
      ...command.commands.map(({ name, about }) => `${here} -a ${name} -d ${fishQuoted(brief(about))}`),
      ...command.choices.map((choice) => `${here} -a ${fishQuoted(choice)}`),
      ...command.flags.map((flag) => `${here} ${flagWords(flag)} -d ${fishQuoted(brief(flag.about))}`),
    ];
  });
  return `# Completion of ukemi for fish, made by: ukemi completion fish
function __ukemi_is
    set -l at ""
    set -l skip ""
    for word in (commandline -opc)[2..-1]
        if test -n "$skip"
            set skip ""
            continue
        end
        switch "$at $word"
${steps(tree)
  .map(({ words, path }) => `            case "${words}"\n                set at "${path}"`)
  .join("\n")}
            case ${valued.join(" ")}
                set skip 1
        end
    end
    test "$at" = "$argv[1]"
end

complete -c ukemi -f
${lines.join("\n")}
`;
}

function flagWords({ names, value }: CompletedFlag): string {
  const all = names.map((name) => (name.startsWith("--") ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`));
  const wanted = {
    none: "",
    any: " -x",
    file: " -r -F",
    folder: ' -x -a "(__fish_complete_directories)"',
    choice: value.kind === "choice" ? ` -x -a ${fishQuoted(value.choices.join(" "))}` : "",
  };
  return all.join(" ") + wanted[value.kind];
}

function fishQuoted(text: string): string {
  return `'${text.replaceAll(/['\\]/g, String.raw`\$&`)}'`;
}

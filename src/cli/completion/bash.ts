// The completion script for bash, from 3.2 (macOS) on.
import { pattern, steps, valuedFlags } from "./cases.ts";
import { everyCommand, type CompletedCommand } from "./tree.ts";

export function bashScript(tree: CompletedCommand): string {
  const flags = valuedFlags(tree);
  const choices = flags.flatMap(({ words, value }) =>
    value.kind === "choice"
      ? [`    "${words}") COMPREPLY=($(compgen -W "${value.choices.join(" ")}" -- "$current")); return ;;`]
      : [],
  );
  const offers = everyCommand(tree).map(({ path, commands, choices: first, flags: own }) => {
    const words = [...commands.map(({ name }) => name), ...first].join(" ");
    const names = own.flatMap(({ names: all }) => all).join(" ");
    return `    "${path}") words="${words}" flags="${names}" ;;`;
  });
  return `# Completion of ukemi for bash, made by: ukemi completion bash
_ukemi() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]}
  local at="" skip="" word i words="" flags=""
  COMPREPLY=()
  # bash takes --flag=value apart
  if [[ $current == "=" ]]; then current=""
  elif [[ $previous == "=" ]]; then previous=\${COMP_WORDS[COMP_CWORD-2]}
  fi

  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    if [[ -n $skip ]]; then
      [[ $word == "=" ]] || skip=""
      continue
    fi
    case "$at $word" in
${steps(tree)
  .map(({ words, path }) => `      "${words}") at="${path}" ;;`)
  .join("\n")}
      ${["any", "file", "folder", "choice"].map((kind) => pattern(flags, kind as "any")).join(" | ")}) skip=1 ;;
    esac
  done

  local IFS=$' \\n'
  case "$at $previous" in
${choices.join("\n")}
    ${pattern(flags, "file")}) IFS=$'\\n'; compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- "$current")); return ;;
    ${pattern(flags, "folder")}) IFS=$'\\n'; compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -d -- "$current")); return ;;
    ${pattern(flags, "any")}) return ;;
  esac

  case "$at" in
${offers.join("\n")}
  esac
  if [[ $current == -* || -z $words ]]; then words=$flags; fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -F _ukemi ukemi
`;
}

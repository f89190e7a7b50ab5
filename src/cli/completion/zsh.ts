// The completion script for zsh.
import { brief, pattern, quoted, steps, valuedFlags } from "./cases.ts";
import { everyCommand, type CompletedCommand } from "./tree.ts";

export function zshScript(tree: CompletedCommand): string {
  const flags = valuedFlags(tree);
  const choices = flags.flatMap(({ words, value }) =>
    value.kind === "choice" ? [`    "${words}") compadd -- ${value.choices.join(" ")}; return ;;`] : [],
  );
  const offers = everyCommand(tree).map(({ path, commands, choices: first, flags: own }) => {
    const parts = [...commands.map(({ name, about }) => described(name, about)), ...first.map(quoted)];
    const names = own.flatMap(({ names: all, about }) => all.map((name) => described(name, about)));
    return `    "${path}") parts=(${parts.join(" ")}) flags=(${names.join(" ")}) ;;`;
  });
  return `#compdef ukemi
# Completion of ukemi for zsh, made by: ukemi completion zsh
_ukemi() {
  local at="" skip="" word previous=$words[CURRENT-1] i
  local -a parts flags

  for ((i = 2; i < CURRENT; i++)); do
    word=$words[i]
    if [[ -n $skip ]]; then
      skip=""
      continue
    fi
    case "$at $word" in
${steps(tree)
  .map(({ words, path }) => `      "${words}") at="${path}" ;;`)
  .join("\n")}
      ${["any", "file", "folder", "choice"].map((kind) => pattern(flags, kind as "any")).join(" | ")}) skip=1 ;;
    esac
  done

  if [[ $words[CURRENT] == --*=* ]]; then
    previous=\${words[CURRENT]%%=*}
    compset -P '*='
  fi
  case "$at $previous" in
${choices.join("\n")}
    ${pattern(flags, "file")}) _files; return ;;
    ${pattern(flags, "folder")}) _files -/; return ;;
    ${pattern(flags, "any")}) return ;;
  esac

  case "$at" in
${offers.join("\n")}
  esac
  if [[ $PREFIX == -* || $#parts -eq 0 ]]; then
    _describe -o option flags
  else
    _describe command parts
  fi
}
# as a file of $fpath it is the function itself; otherwise it has been sourced
if [[ $funcstack[1] == _ukemi ]]; then _ukemi "$@"; else compdef _ukemi ukemi; fi
`;
}

function described(name: string, about: string): string {
  return quoted(`${name}:${brief(about)}`);
}

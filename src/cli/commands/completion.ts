// `ukemi completion`: a script that lets the shell complete commands and flags.
import { Argument, Command } from "commander";
import { bashScript } from "../completion/bash.ts";
import { fishScript } from "../completion/fish.ts";
import { completedTree } from "../completion/tree.ts";
import { zshScript } from "../completion/zsh.ts";

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript } as const;

const INSTALL = `
To have it in every new shell:

  bash  echo 'source <(ukemi completion bash)' >> ~/.bashrc
  zsh   echo 'source <(ukemi completion zsh)' >> ~/.zshrc     (after compinit)
  fish  ukemi completion fish > ~/.config/fish/completions/ukemi.fish

It completes the command ukemi: installed in a project only, name it so first,
as in alias ukemi='npx ukemi'.
`;

/** `program` is the whole command line, which this is a part of. */
export function completionCommand(program: Command): Command {
  return new Command("completion")
    .description("Print a script that lets your shell complete commands and flags.")
    .addArgument(new Argument("<shell>", "Your shell.").choices(Object.keys(SCRIPTS)))
    .addHelpText("after", INSTALL)
    .action((shell: keyof typeof SCRIPTS) => {
      process.stdout.write(SCRIPTS[shell](completedTree(program)));
    });
}

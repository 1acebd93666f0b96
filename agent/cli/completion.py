"""`cellagent completion`: the script that a shell sources to complete our commands."""

import os
import sys

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    get_completion_class,
    split_arg_string,
)

from agent.cli.framework.command import OfflineCommand, agent_command, emit
from agent.cli.framework.session import Session

_POWERSHELL = """\
Register-ArgumentCompleter -Native -CommandName %(prog_name)s -ScriptBlock {
    param($word, $ast, $cursor)
    $env:COMP_WORDS = $ast.ToString()
    $env:COMP_WORD = $word
    $env:%(complete_var)s = 'powershell_complete'
    %(prog_name)s | ForEach-Object {
        $value, $help = $_ -split "`t", 2
        if (-not $help) { $help = $value }
        [Management.Automation.CompletionResult]::new($value, $value, 'ParameterValue', $help)
    }
    Remove-Item Env:%(complete_var)s
}
"""


class _WholeWords(ShellComplete):
    """For shells that put a candidate in place of the whole word, also of `--fault=x`."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        """Return the candidates, behind the option to which they are joined."""
        option, equals, _ = incomplete.partition("=")
        found = super().get_completions(args, incomplete)
        for item in found if equals and option.startswith("--") else ():
            if item.type == "plain":
                item.value = f"{option}={item.value}"
        return found


class PowerShellComplete(_WholeWords):
    """Completion for PowerShell, which click does not bring, in click's own protocol."""

    name = "powershell"
    source_template = _POWERSHELL

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        """Return the candidates; where these are files there are none, and the shell looks."""
        return [item for item in super().get_completions(args, incomplete) if item.type == "plain"]

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the whole words before the cursor, and the word under it."""
        words = split_arg_string(os.environ.get("COMP_WORDS", ""))[1:]
        incomplete = os.environ.get("COMP_WORD", "")
        return (words[:-1] if incomplete and words else words), incomplete

    def format_completion(self, item: CompletionItem) -> str:
        """Return one candidate as "value<TAB>help"."""
        return f"{item.value}\t{item.help or ''}"


class JoinedBashComplete(BashComplete):
    """Click's completion for bash, to which `--fault=x` is three words: the option, = and x."""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the whole words before the cursor, and the word under it."""
        words, incomplete = super().get_completion_args()
        return [word for word in words if word != "="], incomplete


class JoinedZshComplete(ZshComplete):
    """Click's completion for zsh, whose script would put the value in place of `--fault=x`."""

    source_template = ZshComplete.source_template.replace(
        "    for type key", "    compset -P '--*='\n    for type key"
    ).replace("compadd -U", 'compadd -U -i "$IPREFIX"')


class WholeFishComplete(_WholeWords, FishComplete):
    """Click's completion for fish, whose script ends a description at its first comma.

    And it offers files without the option to which they are joined, which fish does not take.
    """

    source_template = FishComplete.source_template.replace(
        'split ","', 'split --max 1 ","'
    ).replace(
        "__fish_complete_path $metadata[2];",
        "__fish_complete_path $metadata[2] | string replace --regex '^' -- "
        "(string match --regex -- '^--[^=]+=' (commandline -t); or echo);",
    )


for each in PowerShellComplete, JoinedBashComplete, JoinedZshComplete, WholeFishComplete:
    add_completion_class(each)


@agent_command("cellagent completion bash >> ~/.bashrc", OfflineCommand)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish", "powershell"]))
def command(session: Session, shell: str) -> None:
    """Print the completion script of SHELL.

    zsh takes it at the end of ~/.zshrc, after `compinit`; fish as
    ~/.config/fish/completions/cellagent.fish; PowerShell in the file that $PROFILE names.
    """
    from agent.cli.tree import root

    chosen = get_completion_class(shell)
    if chosen is None:
        raise click.UsageError(f"no completion for {shell}")
    completion = chosen(root, {}, "cellagent", "_CELLAGENT_COMPLETE")
    if session.json:
        emit({"shell": shell, "script": completion.source()})
    else:
        sys.stdout.write(completion.source())

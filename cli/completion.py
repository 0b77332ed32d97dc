"""`rollcall completion`: shell completion of the command.

Prints click's own script for the shell.
"""

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script for a shell.

    \b
    bash:  eval "$(rollcall completion bash)"          in ~/.bashrc
    zsh:   eval "$(rollcall completion zsh)"           in ~/.zshrc
    fish:  rollcall completion fish | source           in ~/.config/fish/config.fish
    """
    script = get_completion_class(shell)
    if script is None:
        raise click.UsageError(f"no completion for {shell}")
    click.echo(script(context.find_root().command, {}, "rollcall", "_ROLLCALL_COMPLETE").source())

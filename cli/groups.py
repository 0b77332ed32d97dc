"""Command groups: how a command ends that fails, and a suggestion for a misspelled one."""

from difflib import get_close_matches
from typing import ClassVar

import click

from cli.exits import operator_errors


class Commands(click.Group):
    """A group that reports operator errors, and names the command that was probably meant."""

    opens_logs: ClassVar[bool] = True
    """Its commands open the files of a data directory: errors of storage/ are an operator's."""

    def invoke(self, context: click.Context) -> object:
        with operator_errors(opens_logs=self.opens_logs):
            result: object = super().invoke(context)
            return result

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        is_known = self.get_command(context, name) is not None
        if is_known or name.startswith("-") or context.resilient_parsing:
            return super().resolve_command(context, args)
        known = self.list_commands(context)
        near = get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"commands: {', '.join(known)}"
        raise click.UsageError(f"no command {name!r}; {hint}", context)

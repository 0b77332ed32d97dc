"""Command groups: a misspelled command gets a suggestion."""

from difflib import get_close_matches

import click


class Commands(click.Group):
    """A group that names the command that was probably meant."""

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

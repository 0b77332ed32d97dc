"""`rollcall top`: the groups of a daemon, live in the terminal."""

import click

from cli.admin import Expected, admin_option, ask_admin
from cli.clock import SecondsRange
from seams.operator_error import WrongInput

_GROUPS: Expected = {"groups": list, "groups_total": int, "matched": int, "at_ms": int}


@click.command()
@click.option(
    "--every",
    "every_s",
    type=SecondsRange(0.2, 3_600),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="How often the daemon is asked.",
)
@admin_option
def top(*, every_s: float, admin: str) -> None:
    """Groups as they change: state, members, lag and what is wrong with them.

    Keys: s sorts by the next column, r reverses, / searches, p pauses, q quits.
    """
    try:
        from cli.top_view import GroupsView, TopApp
    except ImportError:
        remedy = "pip install 'rollcall-broker[top]'"
        raise WrongInput(f"rollcall top needs the package textual: {remedy}") from None
    context = click.get_current_context()

    def ask(view: GroupsView) -> dict[str, object]:
        query: dict[str, str | int] = {"limit": view.limit, "sort": view.sort_words}
        if view.search:
            query["search"] = view.search
        with context.scope(cleanup=False):  # of this thread: it has the token
            return ask_admin(admin, "/api/groups", query, _GROUPS)

    ask(GroupsView())  # a mistake is shown before the screen is taken
    TopApp(ask, admin, every_s).run()

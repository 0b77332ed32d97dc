"""Top view: the screen of `rollcall top`, a table of groups that is asked for again and again.

A question runs in a thread, one at a time. If the daemon does not answer, the last table stays and
the line above it says so. Needs the extra `top` (textual).
"""

from collections.abc import Callable, Mapping
from typing import ClassVar, Final

from rich.text import Text
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Footer, Input, Static

from cli.tables import cell, duration_cell
from protocol.printable import printable
from seams.operator_error import OperatorError
from seams.text import instant

TOP_GROUPS_MAX: Final = 200
"""Groups on the screen; the daemon sorts them, so these are the first of all."""

_SORTS: Final = ("status", "lag", "seconds", "members", "state", "verdicts", "group")
_HEADER: Final = ("GROUP", "TYPE", "STATE", "#MEMBERS", "LAG", "BEHIND", "STATUS", "VERDICTS")
_COLOURS: Final = {"OK": "green", "WARN": "yellow", "ERR": "red", "STOP": "red", "STALL": "red"}


class GroupsView:
    """What the user wants to see."""

    def __init__(self) -> None:
        self.limit = TOP_GROUPS_MAX
        self.search = ""
        self.sort = _SORTS[0]
        self.reverse = True

    @property
    def sort_words(self) -> str:
        """For the daemon: the greatest first with a minus; groups that are alike by their lag."""
        first = f"-{self.sort}" if self.reverse else self.sort
        return first if self.sort == "lag" else f"{first},-lag"

    def next_sort(self) -> None:
        self.sort = _SORTS[(_SORTS.index(self.sort) + 1) % len(_SORTS)]
        self.reverse = self.sort not in ("state", "group")


Ask = Callable[[GroupsView], Mapping[str, object]]
"""Called in a thread. Raises OperatorError."""


class TopApp(App[None]):
    CSS = """
    #head { height: 1; }
    #search { display: none; height: 3; }
    #search.shown { display: block; }
    DataTable { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "sort", "Sort"),
        Binding("r", "reverse", "Reverse"),
        Binding("slash", "search", "Search"),
        Binding("p", "pause", "Pause"),
        Binding("escape", "close_search", "Close", show=False),
        Binding("q", "quit", "Quit"),
    ]

    def __init__(self, ask: Ask, admin: str, every_s: float) -> None:
        super().__init__()
        self.title = "rollcall top"
        self.view = GroupsView()
        self.is_paused = False
        self.is_asking = False
        self._is_due = False
        self._ask = ask
        self._admin = admin
        self._every_s = every_s
        self._shown = "asking the daemon"

    def compose(self) -> ComposeResult:
        yield Static(id="head", markup=False)
        yield Input(placeholder="part of a group's name", id="search")
        yield DataTable[Text](cursor_type="row", zebra_stripes=True)
        yield Footer()

    def on_mount(self) -> None:
        table = self._table
        for name in _HEADER:
            table.add_column(name, key=name)
        table.focus()
        self._say(self._shown)
        self.set_interval(self._every_s, self._tick)
        self.refresh_groups()

    def _tick(self) -> None:
        if not self.is_paused and not self.is_asking:
            self.refresh_groups()

    def refresh_groups(self) -> None:
        """Ask now, or again when the question that is under way is answered."""
        self._is_due = self.is_asking
        if not self.is_asking:
            self.is_asking = True
            self._question()

    @work(thread=True)
    def _question(self) -> None:
        try:
            self.call_from_thread(self._answered, self._ask(self.view), "")
        except OperatorError as error:
            words = printable(" ".join(str(error).split()))
            self.call_from_thread(self._answered, None, words)

    def _answered(self, answer: Mapping[str, object] | None, error: str) -> None:
        self.is_asking = False
        if answer is None:
            self._say(error)
        else:
            self._show(answer)
        if self._is_due:
            self.refresh_groups()

    def _show(self, answer: Mapping[str, object]) -> None:
        groups = answer["groups"]
        assert isinstance(groups, list)
        table = self._table
        row, column = table.cursor_coordinate
        scroll_y = table.scroll_y
        table.clear()
        for entry in groups:
            table.add_row(*(_cells(entry)))
        table.move_cursor(row=min(row, max(len(groups) - 1, 0)), column=column, scroll=False)
        table.scroll_to(y=scroll_y, animate=False)
        at_ms = answer["at_ms"]
        assert isinstance(at_ms, int)
        more = f", matching {self.view.search!r}: {answer['matched']}" if self.view.search else ""
        order = "descending" if self.view.reverse else "ascending"
        self._say(
            f"{printable(self._admin)}  {instant(at_ms)}  groups: {answer['groups_total']}{more}  "
            f"sorted by {self.view.sort}, {order}"
        )

    def _say(self, words: str) -> None:
        self._shown = words
        paused = "  (paused)" if self.is_paused else ""
        self.query_one("#head", Static).update(words + paused)

    @property
    def _table(self) -> "DataTable[Text]":
        return self.query_one(DataTable)

    def action_sort(self) -> None:
        self.view.next_sort()
        self.refresh_groups()

    def action_reverse(self) -> None:
        self.view.reverse = not self.view.reverse
        self.refresh_groups()

    def action_pause(self) -> None:
        self.is_paused = not self.is_paused
        self._say(self._shown)

    def action_search(self) -> None:
        box = self.query_one(Input)
        box.add_class("shown")
        box.focus()

    def action_close_search(self) -> None:
        box = self.query_one(Input)
        box.value = ""
        box.remove_class("shown")
        self._table.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        self.view.search = event.value
        self.refresh_groups()

    def on_input_submitted(self, _event: Input.Submitted) -> None:
        self._table.focus()


def _cells(entry: Mapping[str, object]) -> list[Text]:
    """Text, not markup: a group's name may look like it."""
    verdicts = entry.get("verdicts")
    status = cell(entry.get("status"))
    words = [
        cell(entry.get("group")),
        cell(entry.get("type")),
        cell(entry.get("state")),
        cell(entry.get("members")),
        cell(entry.get("lag")),
        duration_cell(entry.get("seconds_max")),
        status,
        cell(", ".join(map(str, verdicts)) if isinstance(verdicts, list) else None),
    ]
    return [
        Text(printable(word), style=_COLOURS.get(status, "") if word is status else "")
        for word in words
    ]

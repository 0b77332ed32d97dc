"""`rollcall top`: what its screen shows, and what its keys do; driven by textual's pilot."""

import threading
from collections.abc import Mapping

import pytest
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import DataTable, Input, Static

from cli.top_view import GroupsView, TopApp
from seams.operator_error import WrongInput
from tests.cli.test_command import Command, rollcall

__all__ = ["rollcall"]  # a fixture

NEVER_S = 3_600.0


def entry(group: str, lag: int) -> dict[str, object]:
    return {
        "group": group, "type": "classic", "state": "Stable", "members": 2, "lag": lag,
        "seconds_max": 6.2, "status": "WARN", "verdicts": ["stuck_group"],
    }  # fmt: skip


class FakeDaemon:
    """Answers with the groups whose names match; remembers what it was asked."""

    def __init__(self, *groups: dict[str, object]) -> None:
        self.groups = list(groups)
        self.sorts: list[str] = []
        self.error = ""
        self.asked = threading.Event()

    def ask(self, view: GroupsView) -> Mapping[str, object]:
        self.sorts.append(view.sort_words)
        self.asked.set()
        if self.error:
            raise WrongInput(self.error)
        found = [each for each in self.groups if view.search in str(each["group"])]
        total = len(self.groups)
        return {"groups": found, "groups_total": total, "matched": len(found), "at_ms": 0}


async def until_answered(pilot: Pilot[None]) -> None:
    """Until no question is under way."""
    app = pilot.app
    assert isinstance(app, TopApp)
    await pilot.pause()
    while app.is_asking:
        await pilot.pause(0.005)
    await pilot.pause()


def rows(app: App[None]) -> list[list[str]]:
    table = app.query_one(DataTable)
    return [[str(word) for word in table.get_row_at(at)] for at in range(table.row_count)]


def head(app: App[None]) -> str:
    return str(app.query_one("#head", Static).render())


async def test_groups_are_shown_as_the_daemon_sorts_them() -> None:
    daemon = FakeDaemon(entry("billing", 96), entry("evil[red]\n\x1b[31m", 0))
    app = TopApp(daemon.ask, "127.0.0.1:9180", NEVER_S)
    async with app.run_test(size=(120, 20)) as pilot:
        await until_answered(pilot)
        assert rows(app) == [
            ["billing", "classic", "Stable", "2", "96", "6.2 s", "WARN", "stuck_group"],
            [
                "evil[red]\\n\\x1b[31m",
                "classic",
                "Stable",
                "2",
                "0",
                "6.2 s",
                "WARN",
                "stuck_group",
            ],
        ]
        assert "groups: 2" in head(app)
        await pilot.press("s")
        await until_answered(pilot)
        await pilot.press("r")
        await until_answered(pilot)
    assert daemon.sorts == ["-status,-lag", "-lag", "lag"]


async def test_a_search_narrows_the_groups_and_escape_ends_it() -> None:
    daemon = FakeDaemon(entry("billing", 1), entry("invoices", 2))
    app = TopApp(daemon.ask, "127.0.0.1:9180", NEVER_S)
    async with app.run_test() as pilot:
        await until_answered(pilot)
        await pilot.press("slash", "b", "i", "l")
        await until_answered(pilot)
        assert [row[0] for row in rows(app)] == ["billing"]
        assert "matching 'bil': 1" in head(app)
        await pilot.press("escape")
        await until_answered(pilot)
        assert len(rows(app)) == 2
        assert not app.query_one(Input).has_class("shown")


async def test_a_daemon_that_is_gone_leaves_the_last_table() -> None:
    daemon = FakeDaemon(entry("billing", 1))
    app = TopApp(daemon.ask, "127.0.0.1:9180", NEVER_S)
    async with app.run_test() as pilot:
        await until_answered(pilot)
        daemon.error = "no daemon answers"
        app.refresh_groups()
        await until_answered(pilot)
        assert head(app) == "no daemon answers"
        assert len(rows(app)) == 1
        daemon.error = ""
        app.refresh_groups()
        await until_answered(pilot)
        assert "groups: 1" in head(app)


async def test_the_groups_are_asked_for_again_unless_paused() -> None:
    daemon = FakeDaemon(entry("billing", 1))
    app = TopApp(daemon.ask, "127.0.0.1:9180", 0.01)
    async with app.run_test() as pilot:
        await until_answered(pilot)
        while len(daemon.sorts) < 3:
            await pilot.pause(0.01)
        await pilot.press("p")
        await until_answered(pilot)
        assert head(app).endswith("(paused)")
        asked = len(daemon.sorts)
        await pilot.pause(0.1)
        assert len(daemon.sorts) == asked


def test_without_a_daemon_it_does_not_take_the_screen(rollcall: Command) -> None:
    refused = rollcall("top", "--admin", "127.0.0.1:1")
    assert refused.exit_code == 2
    assert refused.out == ""
    assert "no daemon answers at 127.0.0.1:1" in refused.err


def test_without_textual_it_names_the_extra(
    rollcall: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "cli.top_view", None)
    refused = rollcall("top")
    assert refused.exit_code == 2
    assert "rollcall-broker[top]" in refused.err

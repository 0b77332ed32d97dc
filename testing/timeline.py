"""TimelineText: the groups of a test as text, for the report of a test that fails."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Final

from broker.daemon import Daemon
from broker.history_log.reader import TimeRange
from broker.history_log.view import HistoryView
from coordinator.group_types import AnyGroupView, generation_of
from history.entries import ENTRY_NAMES, HistoryEntry
from history.text.entry_text import format_entry
from history.text.rebalance_text import format_wait
from seams.text import instant
from storage.api import Corrupt

_EVENTS_MAX: Final = 200
_GROUPS_MAX: Final = 50


class TimelineText:
    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._view: HistoryView | None = None
        if daemon.history is not None:
            self._view = HistoryView(daemon.history, daemon.coordinator, daemon.clock)

    async def text(self, since_ms: int) -> str:
        """How each group is now, and their events since this time, oldest first.

        With a time: only groups with events since then. Those of earlier tests say nothing.
        """
        if self._view is None:
            return "\n".join((*self._groups(), "rollcall.history.enable is false: no events."))
        try:
            found = await self._view.events(None, _EVENTS_MAX + 1, (), TimeRange(since_ms))
        except (OSError, Corrupt, KeyError) as fault:
            return "\n".join((*self._groups(), f"The history cannot be read: {fault}"))
        active = {event.group_id for _, event in found}
        lines = list(self._groups(active if since_ms else None))
        if found and lines:
            lines.append("")
        if len(found) > _EVENTS_MAX:
            lines.append(f"(the last {_EVENTS_MAX} events; older ones are left out)")
        lines += [_event(event) for _, event in reversed(found[:_EVENTS_MAX])]
        return "\n".join(lines)

    def _groups(self, only: AbstractSet[str] | None = None) -> Iterator[str]:
        groups = sorted(self._daemon.coordinator.groups(), key=lambda group: group.group_id)
        if only is not None:
            groups = [group for group in groups if group.group_id in only]
        for group in groups[:_GROUPS_MAX]:
            yield from self._group(group)
        if len(groups) > _GROUPS_MAX:
            yield f"({len(groups) - _GROUPS_MAX} more groups)"

    def _group(self, group: AnyGroupView) -> Iterator[str]:
        count = len(group.members)
        members = "1 member" if count == 1 else f"{count} members"
        yield f"Group {group.group_id}: {group.state}, generation {generation_of(group)}, {members}"
        waiting = None if self._view is None else self._view.waiting(group.group_id)
        if waiting is not None:
            for line in format_wait(waiting, self._daemon.clock.now().wall_ms):
                yield f"  {line}"


def _event(event: HistoryEntry) -> str:
    what = f"{ENTRY_NAMES[type(event)]}: {format_entry(event)}"
    return f"{instant(event.at_ms)}  {event.group_id}  {what}"

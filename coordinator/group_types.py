"""Group types: what shared code calls of each group type, in one place.

There is one type so far, so each name here is the classic function itself. A second type turns a
name into a function that dispatches on the group, command or event; the unions in events.py,
commands.py and below make mypy name every place that has to know the new type. The other such
places: restore.py (by record type), shard.py (the turns of each API), coordinator.py (`handlers`).
See docs/adr for the layout.
"""

from coordinator.classic.apply import apply_classic_event, cancel_timers, check_timers
from coordinator.classic.decisions import decide
from coordinator.classic.evolve import mark_dead
from coordinator.classic.group import ClassicGroup
from coordinator.classic.group_view import ClassicGroupView
from coordinator.classic.image import classic_group_of, plain_classic_group
from coordinator.classic.load_and_unload import refuse_parked, start_after_load

AnyGroup = ClassicGroup
AnyGroupView = ClassicGroupView

new_group = ClassicGroup
"""For `GroupCreated`, and for offsets whose group has no record: (group id, created at, ms)."""

apply_event = apply_classic_event
plain_of = plain_classic_group
group_of_plain = classic_group_of

__all__ = [
    "AnyGroup",
    "AnyGroupView",
    "apply_event",
    "cancel_timers",
    "check_timers",
    "decide",
    "group_of_plain",
    "mark_dead",
    "new_group",
    "plain_of",
    "refuse_parked",
    "start_after_load",
]

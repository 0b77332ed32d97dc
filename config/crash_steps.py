"""Crash steps: the steps of a rebalance that `rollcall.crash.at` can name, and that of a start.

Apart from broker/fail_points.py, which acts on them, because the table of keys needs the names and
every command reads that table: no command has to import the coordinator for it.
"""

from enum import StrEnum
from typing import Final

NO_CRASH: Final = "never"
LOADING: Final = "loading"
"""For `rollcall drill` alone: the first partition of a start is loaded, others are not."""


class Step(StrEnum):
    """In the order of a rebalance; the last two are the same again for the assignments."""

    REBALANCE_BEGUN = "rebalance-begun"  # all members are to be told, none was
    SOME_NOTIFIED = "some-told"  # one heartbeat was answered with REBALANCE_IN_PROGRESS
    ALL_NOTIFIED = "all-told"  # all of them were, at the same moment: none has rejoined
    SOME_JOINED = "some-joined"  # one member has rejoined and waits for the others
    GENERATION_STORED = "generation-stored"  # no join was answered
    SOME_JOINS_ANSWERED = "some-joins-answered"  # one was
    ASSIGNMENT_STORED = "assignment-stored"  # no sync was answered
    SOME_SYNCS_ANSWERED = "some-syncs-answered"  # one was

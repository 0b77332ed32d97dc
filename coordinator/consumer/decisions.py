# ruff: noqa: ARG001
"""Consumer group decisions: the table from consumer group commands to the functions of decide/."""

from coordinator.consumer.commands import ConsumerCommand
from coordinator.consumer.context import ConsumerContext
from coordinator.consumer.group_view import ConsumerGroupView
from coordinator.outcome import Outcome
from seams.now import Now


def decide_consumer(
    group: ConsumerGroupView | None, command: ConsumerCommand, now: Now, context: ConsumerContext
) -> Outcome:
    raise AssertionError(f"{type(command).__name__} is not served yet")

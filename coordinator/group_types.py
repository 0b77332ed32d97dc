"""Group types: what shared code calls of each group type, in one place.

Each function dispatches on the group, the command or the event; the unions in events.py,
commands.py and below make mypy name every place that has to know a new type. The other such places:
restore.py (by record type), shard.py (the turns of each API), coordinator.py (`handlers`).
See docs/adr for the layout.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol, cast, get_args

from coordinator.classic.apply import apply_classic_event, cancel_timers, check_timers
from coordinator.classic.commands import ClassicCommand
from coordinator.classic.decisions import decide
from coordinator.classic.events import ClassicEvent
from coordinator.classic.evolve import mark_dead
from coordinator.classic.group import ClassicGroup
from coordinator.classic.group_view import ClassicGroupView
from coordinator.classic.image import classic_group_of, plain_classic_group
from coordinator.classic.load_and_unload import refuse_parked, start_after_load
from coordinator.commands import Command, Op
from coordinator.consumer.apply import (
    apply_consumer_event,
    cancel_consumer_timers,
    check_consumer_timers,
)
from coordinator.consumer.commands import ConsumerCommand
from coordinator.consumer.decisions import decide_consumer
from coordinator.consumer.events import ConsumerEvent
from coordinator.consumer.group import ConsumerGroup
from coordinator.consumer.group_view import ConsumerGroupView
from coordinator.consumer.image import (
    consumer_group_of,
    is_plain_consumer_group,
    plain_consumer_group,
)
from coordinator.consumer.load_and_unload import start_consumer_after_load
from coordinator.decision_context import DecisionContext
from coordinator.events import TypedEvent
from coordinator.group import GroupType
from coordinator.migration.decisions import decide_at_classic_group, decide_at_consumer_group
from coordinator.migration.downgrade import downgrade_after_removal
from coordinator.outcome import Outcome, Reply
from coordinator.settings import GroupSettings
from protocol.names import ErrorCode, GroupId
from seams.group_configs import GroupConfigs
from seams.now import Now

_CONSUMER_COMMANDS: Final[frozenset[type]] = frozenset(get_args(ConsumerCommand))

AnyGroup = ClassicGroup | ConsumerGroup
AnyGroupView = ClassicGroupView | ConsumerGroupView


def as_classic(group: AnyGroupView | None) -> ClassicGroupView | None:
    """The group if it is a classic one."""
    return group if isinstance(group, ClassicGroup) else None


def as_consumer(group: AnyGroupView | None) -> ConsumerGroupView | None:
    """The group if it is a consumer group."""
    return group if isinstance(group, ConsumerGroup) else None


def generation_of(group: AnyGroupView) -> int:
    """What counts its rebalances: the generation, or the group epoch."""
    classic, consumers = as_classic(group), as_consumer(group)
    if classic is not None:
        return classic.generation_id
    assert consumers is not None
    return consumers.epoch


class GroupTimers(Protocol):
    """The part of the group store that schedules ops and cancels them."""

    def schedule(self, op: Op) -> None: ...
    def cancel(self, key: Hashable) -> None: ...


class StartAfterLoad(NamedTuple):
    """What a group that was loaded needs: ops to schedule, and a command to carry out, if any."""

    ops: Sequence[Op]
    command: Command | None


def new_group(group_id: GroupId, at_ms: int, group_type: GroupType = GroupType.CLASSIC) -> AnyGroup:
    """A group without members. `at_ms`: since when it is there (Unix epoch)."""
    if group_type is GroupType.CLASSIC:
        return ClassicGroup(group_id, at_ms)
    return ConsumerGroup(group_id, at_ms)


def decide_turn(
    group: AnyGroup | None, command: Command, now: Now, context: DecisionContext
) -> Outcome:
    """What one command leads to."""
    if type(command) in _CONSUMER_COMMANDS:  # cheaper than isinstance of a union
        of_consumers = cast("ConsumerCommand", command)
        if isinstance(group, ClassicGroup):
            return decide_at_classic_group(group, of_consumers, now, context.consumer)
        outcome = decide_consumer(group, of_consumers, now, context.consumer)
        if group is None or not group.classic_member_count:
            return outcome
        return downgrade_after_removal(group, outcome, now, context.consumer)
    of_classic = cast("ClassicCommand", command)
    if isinstance(group, ConsumerGroup):
        return decide_at_consumer_group(group, of_classic, now, context.consumer)
    return decide(group, of_classic, now, context.settings, context.new_member_id)


def apply_event(group: AnyGroup, event: TypedEvent, timers: GroupTimers) -> None:
    """Write an event of the group's type into it, and keep its timers."""
    if isinstance(group, ClassicGroup):
        apply_classic_event(group, cast("ClassicEvent", event), timers)
    else:
        apply_consumer_event(group, cast("ConsumerEvent", event), timers)


def end_group(group: AnyGroup, at_ms: int, timers: GroupTimers) -> None:
    """The group was deleted or converted. Ops and decisions that still hold it see that."""
    if isinstance(group, ClassicGroup):
        cancel_timers(group, timers)
        mark_dead(group, at_ms)
    else:
        cancel_consumer_timers(group, timers)
        group.mark_dead()


def check_group_timers(group: AnyGroup, watching: Callable[[Hashable], bool]) -> None:
    """Assert that each deadline has its op; called by tests and the simulator."""
    if isinstance(group, ClassicGroup):
        check_timers(group, watching)
    else:
        check_consumer_timers(group, watching)


def started_after_load(
    group: AnyGroup, now: Now, settings: GroupSettings, configs: GroupConfigs
) -> StartAfterLoad:
    if isinstance(group, ClassicGroup):
        return StartAfterLoad(*start_after_load(group, now, settings))
    session_timeout_ms = configs.session_timeout_ms(group.group_id)
    return StartAfterLoad(start_consumer_after_load(group, now, session_timeout_ms), None)


def parked_refusals(group: AnyGroup, error_code: ErrorCode) -> Iterator[Reply]:
    """The answers to its parked requests. A consumer group parks none."""
    if isinstance(group, ClassicGroup):
        yield from refuse_parked(group, error_code)


def plain_of(group: AnyGroup) -> object:
    """What a snapshot keeps of a group: plain values that msgpack takes."""
    if isinstance(group, ClassicGroup):
        return plain_classic_group(group)
    return plain_consumer_group(group)


def group_of_plain(group_id: GroupId, plain: object) -> AnyGroup:
    """The group that `plain_of` was asked about."""
    if is_plain_consumer_group(plain):
        return consumer_group_of(group_id, plain)
    return classic_group_of(group_id, plain)

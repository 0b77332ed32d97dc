"""On purpose: how the fuzz of consumer groups leaves out what differs from Kafka on purpose.

docs/differences.md tells each of these. The daemon under comparison does some as Kafka does
(`do_as_kafka`), so that the steps after them are compared. Steps that cannot be answered as by
Kafka are not taken (`is_left_out`).
"""

from collections.abc import Callable, Collection, Sequence
from types import ModuleType
from typing import Any

from coordinator.consumer.assignors import java_order
from coordinator.migration import replaced_member, upgrade
from protocol.messages.consumer_group_describe import DescribedConsumerGroup
from protocol.names import ErrorCode, MemberId, TopicId

Fields = dict[str, Any]
"""What a step of the fuzz sends."""

_BUCKETS = 16
"""Of a `HashMap` or `HashSet` of up to 12 entries."""


def do_as_kafka() -> None:
    """Migration between the protocols: partitions that a member may still read go to others."""
    _replace(upgrade, "_owned", _assigned)
    _replace(upgrade, "_needs_target", _never)
    _replace(replaced_member, "_are_others_reconciled", _always)


def _replace(module: ModuleType, name: str, as_kafka: Callable[..., Any]) -> None:
    assert callable(getattr(module, name))
    setattr(module, name, as_kafka)


def _assigned(members: Sequence[Any], _state: object) -> Any:
    return upgrade._exclusive((found.member.member_id, found.assigned) for found in members)


def _never(*_: object) -> bool:
    return False


def _always(*_: object) -> bool:
    return True


def is_left_out(
    op: str, fields: Fields, member_id: MemberId, group: DescribedConsumerGroup
) -> bool:
    """Whether a step of this member is answered in another way; `group` is as it is before it."""
    if group.error_code is not ErrorCode.NONE:
        return False
    if op == "join":
        return _is_join_left_out(fields, member_id, group)
    return op == "beat" and _is_beat_left_out(fields, member_id, group)


def is_refused_upgrade(op: str, fields: Fields, group: DescribedConsumerGroup) -> bool:
    """Of a classic group that has sent broken metadata: Kafka answers those that wait in it."""
    return op == "beat" and fields["epoch"] == 0 and group.error_code is not ErrorCode.NONE


def _is_join_left_out(fields: Fields, member_id: MemberId, group: DescribedConsumerGroup) -> bool:
    if group.group_state == "Empty":  # Kafka forgets the group.
        return member_id != ""
    instances = {member.member_id: member.instance_id for member in group.members}
    instance = fields.get("instance_id")
    is_held = instance is not None and instance in instances.values()
    has_topics = bool(fields["protocols"] and fields["protocols"][0][1])
    is_due = group.group_epoch > group.assignment_epoch
    return is_due and not (has_topics or is_held or member_id in instances)


def _is_beat_left_out(fields: Fields, member_id: MemberId, group: DescribedConsumerGroup) -> bool:
    instances = {member.member_id: member.instance_id for member in group.members}
    instance = fields.get("instance")
    is_held = instance is not None and instance in instances.values()
    joins = fields["epoch"] == 0
    if joins and member_id in instances and instance is not None and not is_held:
        return True  # Kafka knows the old instance id as well, and no target of the new one.
    if group.group_epoch <= group.assignment_epoch:
        return False
    # Kafka takes the subscriptions for equal, or not, as they were before this heartbeat.
    is_new = joins and member_id not in instances and not is_held
    return bool(fields.get("regex")) or (is_new and not fields.get("topics"))


def share_a_bucket(topic_ids: Collection[TopicId], member_ids: Collection[MemberId]) -> bool:
    """Whether the order of some ids in Kafka's maps depends on the past: docs/assignors.md."""
    buckets = _BUCKETS - 1
    of_topics = {java_order._topic_spread(topic_id) & buckets for topic_id in topic_ids}
    of_members = {java_order._hashes(member_id)[0] & buckets for member_id in member_ids}
    return len(of_topics) < len(topic_ids) or len(of_members) < len(member_ids)

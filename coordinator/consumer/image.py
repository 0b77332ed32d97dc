# ruff: noqa: ARG001
"""Consumer image: a consumer group in plain values, as a snapshot keeps it, and back."""

from coordinator.consumer.group import ConsumerGroup
from protocol.names import GroupId


def plain_consumer_group(group: ConsumerGroup) -> object:
    """What msgpack takes: a list of plain values and lists of these."""
    raise NotImplementedError


def is_plain_consumer_group(plain: object) -> bool:
    """Whether these values were made by `plain_consumer_group`."""
    return False


def consumer_group_of(group_id: GroupId, plain: object) -> ConsumerGroup:
    """The group that `plain_consumer_group` was asked about."""
    raise NotImplementedError

"""Decision context: what decisions about groups of all types are made with, as one value."""

from typing import NamedTuple

from coordinator.classic.decide.join_group import NewMemberId
from coordinator.consumer.context import ConsumerContext
from coordinator.settings import GroupSettings


class DecisionContext(NamedTuple):
    """`new_member_id` makes the ids of classic members."""

    settings: GroupSettings
    new_member_id: NewMemberId
    consumer: ConsumerContext

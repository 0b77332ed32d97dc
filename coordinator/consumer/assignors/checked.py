"""Checked assignor: contains the mistakes of an assignor that is not our own.

An assignor that fails, or assigns what cannot be, must not harm the group: its target assignment
stays as it is, and the reason names the assignor. Kafka differs: it takes over any result, so one
that gives a partition to two members keeps the second waiting forever.
"""

from collections.abc import Mapping

from coordinator.consumer.assignors.assignor import (
    Assignment,
    Assignor,
    AssignorFailed,
    AssignorInput,
    Partitions,
)
from protocol.names import MemberId, TopicId


class CheckedAssignor:
    """Calls another assignor; its result is complete, exclusive and made of our own types."""

    def __init__(self, assignor: Assignor) -> None:
        self._assignor = assignor

    @property
    def name(self) -> str:
        return self._assignor.name

    def assign(self, given: AssignorInput) -> Mapping[MemberId, Assignment]:
        try:
            target = self._assignor.assign(given)
            return _checked(given, target)
        except AssignorFailed as refused:
            raise AssignorFailed(f"{self.name}: {refused}") from refused
        except Exception as error:
            raise AssignorFailed(f"{self.name}: {type(error).__name__}: {error}") from error


def _checked(
    given: AssignorInput, target: Mapping[MemberId, Assignment]
) -> dict[MemberId, Assignment]:
    owned: dict[TopicId, set[int]] = {}
    checked: dict[MemberId, Assignment] = {}
    for member_id, assigned in target.items():
        member = given.members.get(member_id)
        if member is None:
            raise AssignorFailed(f"Member {member_id} is not in the group.")
        partitions = {topic_id: frozenset(held) for topic_id, held in assigned.items() if held}
        checked[member_id] = partitions
        for topic_id, held in partitions.items():
            if topic_id not in member.subscribed_topic_ids:
                raise AssignorFailed(f"Member {member_id} does not subscribe to topic {topic_id}.")
            _check_partitions(given, topic_id, held, owned.setdefault(topic_id, set()))
    return checked


def _check_partitions(
    given: AssignorInput, topic_id: TopicId, held: Partitions, owned: set[int]
) -> None:
    count = given.topics[topic_id].partitions
    for partition in held:
        if type(partition) is not int or not 0 <= partition < count:
            raise AssignorFailed(f"Topic {topic_id} has no partition {partition!r}.")
    twice = held & owned
    if twice:
        raise AssignorFailed(f"Partition {min(twice)} of topic {topic_id} is assigned twice.")
    owned |= held

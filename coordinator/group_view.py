"""Group view: what shared code may ask of a group of any type. Read-only.

offsets/ and the APIs over all types (ListGroups, DeleteGroups) see groups through this protocol, so
they need no group type. Each type implements it: `ClassicGroup` in classic/group.py.
Kafka's counterpart: the interface `Group`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from coordinator.events import Event
from coordinator.group import CommittedOffset, GroupType
from protocol.names import (
    ErrorCode,
    GenerationId,
    GroupId,
    GroupInstanceId,
    GroupState,
    MemberId,
    TopicId,
    TopicName,
)
from seams.now import Now
from storage.api import RecordPair


class OffsetExpiration(NamedTuple):
    """From when on the retention of a group's offsets counts (Kafka: OffsetExpirationCondition).

    -1: from each offset's own commit. Else from this moment for all of them (Unix epoch, ms).
    """

    since_ms: int


FROM_EACH_COMMIT: Final = OffsetExpiration(-1)


class GroupView(Protocol):
    @property
    def group_id(self) -> GroupId: ...
    @property
    def group_type(self) -> GroupType: ...
    @property
    def state(self) -> GroupState: ...
    @property
    def protocol_type(self) -> str | None: ...
    @property
    def members(self) -> Mapping[MemberId, object]: ...
    @property
    def offsets(self) -> Mapping[TopicName, Mapping[int, CommittedOffset]]: ...

    def is_subscribed_to(self, topic: TopicName) -> bool:
        """Do its members read this topic now, as far as anybody can know?"""

    def validate_offset_commit(
        self,
        member_id: MemberId,
        group_instance_id: GroupInstanceId | None,
        generation_id: GenerationId,
        api_version: int,
        /,
    ) -> ErrorCode:
        """May this member commit in this generation or epoch? NONE if it may."""

    def validate_txn_offset_commit(
        self,
        member_id: MemberId,
        group_instance_id: GroupInstanceId | None,
        generation_id: GenerationId,
        /,
    ) -> ErrorCode:
        """May a producer commit for this member in a transaction? -1, "" and None: for none."""

    def validate_earlier_commit(
        self,
        member_id: MemberId,
        generation_id: GenerationId,
        partitions: Iterable[tuple[TopicId, Iterable[int]]],
        /,
    ) -> ErrorCode:
        """Asked if it is in another generation or epoch: may it for these partitions?"""

    def validate_offset_fetch(self, member_id: MemberId | None, member_epoch: int, /) -> ErrorCode:
        """May this member fetch in this epoch? Asked if a request names one."""

    def commit_accepted(self, member_id: MemberId, now: Now, /) -> Sequence[Event]:
        """What an accepted commit changes for its member: in a classic group, its session."""

    def commit_refused(
        self,
        member_id: MemberId,
        group_instance_id: GroupInstanceId | None,
        error_code: ErrorCode,
        now: Now,
        /,
    ) -> Sequence[Event]:
        """What a refused commit shows of its member: that another one has its instance id."""

    def validate_offset_delete(self) -> ErrorCode:
        """May offsets be deleted, apart from those of topics that it is subscribed to?"""

    def validate_delete(self) -> ErrorCode:
        """May the whole group be deleted?"""

    def offset_expiration(self) -> OffsetExpiration | None:
        """How its offsets expire as it is now; None if they do not."""

    def tombstones(self) -> Sequence[RecordPair]:
        """The records that end the group in the log, without those of its offsets."""

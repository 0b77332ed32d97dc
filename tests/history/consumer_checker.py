"""Consumer history checker: whether the entries of a consumer group agree with the group.

Epochs rise by one, members own as many partitions as their entries add up to, rebalances begin and
end by turns, and durations are those of the instants.
"""

from collections.abc import Iterable

from coordinator.consumer.group import ConsumerGroup
from history.causes import End, WaitEnd
from history.consumer_entries import (
    GroupConvertedEntry,
    GroupEpochBumpedEntry,
    PartitionsAssignedEntry,
    RevocationEndedEntry,
    RevocationRequestedEntry,
    TargetAssignmentUpdatedEntry,
)
from history.entries import (
    GroupCreatedEntry,
    GroupEmptiedEntry,
    HistoryEntry,
    MemberAddedEntry,
    MembersRemovedEntry,
    Rebalance,
    RebalanceBegunEntry,
    RebalanceEndedEntry,
    StaticMemberReplacedEntry,
)
from protocol.names import GroupState


class ConsumerHistoryChecker:
    """Of one group that is never of another type. `apply` takes its entries in their order."""

    def __init__(self) -> None:
        self.epoch = 1
        self.target_epoch = 1
        self.owned: dict[str, int] = {}  # by member: how many partitions
        self.asked: dict[str, int] = {}  # since when, of those that are to give some back
        self.running: RebalanceBegunEntry | None = None
        self.rebalances: list[Rebalance] = []
        self.at_ms = 0

    def apply(self, entries: Iterable[HistoryEntry]) -> None:
        for entry in entries:
            assert entry.at_ms >= self.at_ms
            self.at_ms = entry.at_ms
            self._apply(entry)

    def _apply(self, entry: HistoryEntry) -> None:
        match entry:
            case GroupCreatedEntry():
                self.epoch = self.target_epoch = 1
                assert not self.owned
            case MemberAddedEntry():
                assert entry.member.member_id not in self.owned
                self.owned[entry.member.member_id] = 0
            case MembersRemovedEntry():
                for gone in entry.members:
                    assert self.owned.pop(gone.member.member_id) == gone.partitions
                    assert gone.member.member_id not in self.asked
            case StaticMemberReplacedEntry():
                assert self.owned.pop(entry.old_member_id) == entry.partitions
                self.owned[entry.member.member_id] = entry.partitions
            case GroupEpochBumpedEntry():
                assert entry.epoch == self.epoch + 1
                assert entry.causes
                assert self.running is not None
                assert entry.members == len(self.owned)
                self.epoch = entry.epoch
            case TargetAssignmentUpdatedEntry():
                assert self.target_epoch < entry.epoch <= self.epoch
                self.target_epoch = entry.epoch
            case RevocationRequestedEntry():
                assert entry.target_epoch == self.target_epoch
                self.asked[entry.member.member_id] = entry.at_ms
            case RevocationEndedEntry():
                self._revoked(entry)
            case PartitionsAssignedEntry():
                count = len(entry.handed_over) + entry.handed_over_left_out
                self.owned[entry.member.member_id] += count
            case RebalanceBegunEntry():
                assert self.running is None
                assert entry.generation == self.epoch
                self.running = entry
            case RebalanceEndedEntry():
                self._ended(entry.rebalance)
            case GroupEmptiedEntry():
                assert not self.owned
            case GroupConvertedEntry():
                raise AssertionError("another type")
            case _:
                pass

    def _revoked(self, entry: RevocationEndedEntry) -> None:
        since_ms = self.asked.pop(entry.member.member_id, None)
        if entry.waited_ms is not None:
            assert since_ms is not None
            assert entry.waited_ms == entry.at_ms - since_ms
        if entry.end is WaitEnd.REVOKED:
            self.owned[entry.member.member_id] -= entry.partitions
            assert self.owned[entry.member.member_id] >= 0

    def _ended(self, rebalance: Rebalance) -> None:
        assert self.running is not None
        assert rebalance.began_at_ms == self.running.at_ms
        assert rebalance.duration_ms is not None
        if rebalance.end is not End.INTERRUPTED:
            assert rebalance.generation_after == self.epoch
            assert rebalance.duration_ms == self.at_ms - rebalance.began_at_ms
            assert rebalance.members_after == len(self.owned)
        if rebalance.end is End.STABLE:
            assert self.target_epoch == self.epoch
            assert not self.asked
        self.running = None
        self.rebalances.append(rebalance)

    def compare(self, group: ConsumerGroup) -> None:
        """The group is as its entries have it."""
        assert self.epoch == group.epoch
        assert self.target_epoch == group.assignment_epoch or not group.members
        assert self.owned == {
            member_id: sum(
                len(partitions)
                for owned in (member.current.assigned, member.current.pending_revocation)
                for partitions in owned.values()
            )
            for member_id, member in group.members.items()
        }
        is_stable = group.state in (GroupState.STABLE, GroupState.EMPTY)
        if self.running is None and not is_stable:
            # Without a new epoch: a static member left for a while.
            assert any(member.current.has_left_for_a_while for member in group.members.values())
        else:
            assert (self.running is None) is is_stable

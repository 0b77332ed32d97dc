"""Group base: what groups of all types share, above all the offsets committed under a group id.

A group type (classic; KIP-848 adds consumer) has a package of its own with its members, states and
decisions. It extends `Group`, the mutable part that offsets/ and the shard write, and implements
`GroupView` (group_view.py), what shared code may ask of a group. Kafka's counterpart: the interface
`Group`.
"""

from coordinator.locks import GroupLock
from coordinator.offsets.committed_offsets import OffsetsByTopic
from protocol.names import GroupId


class Group:
    """The base of every group type. Its methods for shared code are those of `GroupView`."""

    __slots__ = ("group_id", "lock", "offsets", "offsets_position", "position")

    def __init__(self, group_id: GroupId) -> None:
        self.group_id = group_id
        self.lock = GroupLock()
        self.offsets: OffsetsByTopic = {}
        # Answers about membership wait for `position`, answers about offsets for both: what a
        # client has seen must be there after a crash.
        self.position = 0
        self.offsets_position = 0

"""Protocol selection: the protocol with the most votes among those that all members offer.

Each member votes for the first of its own list that every other one offers as well.
Kafka's counterpart: `ClassicGroup.selectProtocol`.
"""

from collections.abc import Sequence

from coordinator.classic.events import Protocols
from coordinator.classic.group_view import ClassicGroupView
from seams.java_hash import hash_map_order


def choose_of_group(group: ClassicGroupView) -> str:
    """The choice of all members. The group counts what they offer; most often all share one."""
    size = len(group.members)
    shared = [name for name, count in group.protocol_counts.items() if count == size]
    if len(shared) == 1:
        return shared[0]
    return choose_protocol([member.protocols for member in group.members.values()])


def choose_protocol(offers: Sequence[Protocols]) -> str:
    """A tie goes to the one that Java's HashMap names first: Kafka would choose the same."""
    candidates = {name for name, _ in offers[0]}
    for protocols in offers[1:]:
        candidates &= {name for name, _ in protocols}
    assert candidates, "a member was let in that shares no protocol with the others"
    votes: dict[str, int] = {}
    for protocols in offers:
        vote = next(name for name, _ in protocols if name in candidates)
        votes[vote] = votes.get(vote, 0) + 1
    if len(votes) == 1:
        return next(iter(votes))
    return max(hash_map_order(list(votes)), key=votes.__getitem__)

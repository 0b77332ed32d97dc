"""Groups of a test's daemon: how one is now, and the end of a member's session."""

from broker.daemon import Daemon
from broker.history_log.view import HistoryView
from coordinator.group_types import AnyGroupView, as_classic, as_consumer, generation_of
from history.text.rebalance_text import format_wait
from protocol.names import GroupId, GroupState, MemberId
from testing.refusal import bad_value, not_now

MemberFacts = dict[str, str | None]


class GroupsControl:
    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        history = daemon.history
        self._view = None
        if history is not None:
            self._view = HistoryView(history, daemon.coordinator, daemon.clock)

    def describe(self, group_id: str) -> dict[str, object]:
        """One that does not exist is Dead and has no members, as Kafka's DescribeGroups says."""
        group = self._daemon.coordinator.group(GroupId(group_id))
        if group is None:
            return {
                "state": str(GroupState.DEAD), "generation": -1, "members": [], "waits": [],
            }  # fmt: skip
        return {
            "state": str(group.state),
            "generation": generation_of(group),
            "members": members_of(group),
            "waits": self._waits(group_id),
        }

    def _waits(self, group_id: str) -> list[str]:
        waiting = None if self._view is None else self._view.waiting(group_id)
        now_ms = self._daemon.clock.now().wall_ms
        return [] if waiting is None else list(map(str, format_wait(waiting, now_ms)))

    def expire(self, group_id: str, name: str) -> None:
        """`name` is a member id, a group.instance.id, or the client id of one member."""
        coordinator = self._daemon.coordinator
        group = coordinator.group(GroupId(group_id))
        if group is None:
            known = ", ".join(sorted(each.group_id for each in coordinator.groups()))
            raise bad_value(f"there is no group {group_id}; there are: {known or 'none'}")
        member_id = _member_id(group, name)
        coordinator.expire_session(group.group_id, member_id, self._daemon.clock.now())
        now = coordinator.group(GroupId(group_id))
        if now is not None and member_id in now.members:
            words = f"member {member_id} of group {group_id} waits for an answer of the coordinator"
            raise not_now(f"{words}: its session does not run ({now.state})")


def members_of(group: AnyGroupView) -> list[MemberFacts]:
    """Of a group of any type, in the order of their ids."""
    classic, consumers = as_classic(group), as_consumer(group)
    found: list[MemberFacts] = []
    if classic is not None:
        found = [
            {
                "member_id": each.member_id,
                "client_id": each.client_id,
                "instance_id": each.group_instance_id,
            }
            for each in classic.members.values()
        ]
    elif consumers is not None:
        found = [
            {
                "member_id": each.member_id,
                "client_id": each.metadata.client_id,
                "instance_id": each.metadata.instance_id,
            }
            for each in consumers.members.values()
        ]
    return sorted(found, key=lambda member: str(member["member_id"]))


def _member_id(group: AnyGroupView, name: str) -> MemberId:
    members = members_of(group)
    classic = as_classic(group)
    if classic is not None and name in classic.pending_member_ids:
        return MemberId(name)
    for key in ("member_id", "instance_id", "client_id"):
        found = [str(member["member_id"]) for member in members if member[key] == name]
        if len(found) == 1:
            return MemberId(found[0])
        if found:
            raise bad_value(
                f"{len(found)} members of group {group.group_id} have the client id {name}: "
                f"name one of {', '.join(found)}"
            )
    there = ", ".join(str(member["member_id"]) for member in members) or "none"
    raise bad_value(f"group {group.group_id} has no member {name}; it has: {there}")

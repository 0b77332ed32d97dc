"""Group states: docs/group-states.md, the answer to each request in each state of a group.

The table is measured: every request is sent to a group in every state, in the tests' `World` with
Kafka's own settings, and the answers are recorded. The diagram comes from transitions.py.
`make docs` writes the file; a test compares it.
"""

from collections.abc import Callable
from pathlib import Path
from textwrap import wrap
from typing import Final

from coordinator.classic.transitions import LEGAL_MOVES
from protocol.messages.delete_groups import DeleteGroupsRequest
from protocol.messages.describe_groups import DescribeGroupsRequest
from protocol.messages.list_groups import ListGroupsRequest
from protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from protocol.names import ErrorCode, GroupId, GroupState, TopicName
from tests.memory_log import MemoryLog
from tests.world import Asked, World, subscription

PATH: Final = Path(__file__).with_name("group-states.md")

LEADER: Final = "leader"
FOLLOWER: Final = "follower"
STATIC: Final = "static"
G: Final = GroupId("g")
WIDTH: Final = 100

OFFER: Final = (("range", subscription("u")),)


class Stage:
    """A world in which group "g" is in the state that a column is about."""

    def __init__(self, column: str) -> None:
        self.world = World()
        self.world.topics.counts[TopicName("u")] = 1
        self.ids = {LEADER: "leader", FOLLOWER: "follower", STATIC: "static"}
        self.column = column
        self._set()

    def _set(self) -> None:
        world = self.world
        match self.column:
            case "no such group":
                return
            case "loading" | "not ours":
                world.coordinator.resign(0, world.now)
                if self.column == "loading":
                    world.coordinator.begin_load(0, MemoryLog())
                return
            case GroupState.EMPTY:
                world.join("g")
                return
        answers = world.given_joined("g", instances=[None, None, "i"], protocols=OFFER)
        leader, *others = answers
        static = world.group().static_members["i"]  # type: ignore[index]
        follower = next(a.member_id for a in others if a.member_id != static)
        self.ids = {LEADER: leader.member_id, FOLLOWER: follower, STATIC: static}
        if self.column == GroupState.COMPLETING_REBALANCE:
            return
        world.sync_all("g", answers)
        match self.column:
            case GroupState.PREPARING_REBALANCE:
                world.join("g", version=3, protocols=OFFER)
            case GroupState.DEAD:
                # Only ever seen by what still held the group when it was deleted.
                world.group().state = GroupState.DEAD
                world.check = lambda: None  # type: ignore[method-assign]

    @property
    def generation_id(self) -> int:
        group = self.world.coordinator.group(G)
        return 0 if group is None else group.generation_id


Ask = Callable[[Stage], Asked]
OTHER_OFFER: Final = (*OFFER, ("sticky", b""))


def delete_offsets(stage: Stage, topic: str) -> Asked:
    partitions = [OffsetDeleteRequestPartition(0)]
    request = OffsetDeleteRequest(G, [OffsetDeleteRequestTopic(TopicName(topic), partitions)])
    return stage.world.ask(request, version=0)


ROWS: Final[dict[str, Ask]] = {
    "JoinGroup without an id, v4+": lambda s: s.world.join("g", protocols=OFFER),
    "JoinGroup without an id, v0-v3": lambda s: s.world.join("g", version=3, protocols=OFFER),
    "JoinGroup of an instance that is known": lambda s: s.world.join(
        "g", instance_id="i", protocols=OFFER
    ),
    "JoinGroup of a new instance": lambda s: s.world.join("g", instance_id="j", protocols=OFFER),
    "JoinGroup of the leader": lambda s: s.world.join("g", s.ids[LEADER], protocols=OFFER),
    "JoinGroup of a follower, same offer": lambda s: s.world.join(
        "g", s.ids[FOLLOWER], protocols=OFFER
    ),
    "JoinGroup of a follower, other offer": lambda s: s.world.join(
        "g", s.ids[FOLLOWER], protocols=OTHER_OFFER
    ),
    "JoinGroup of an unknown id": lambda s: s.world.join("g", "stranger"),
    "JoinGroup under a replaced id": lambda s: s.world.join("g", "old", instance_id="i"),
    "JoinGroup of another protocol type": lambda s: s.world.join("g", protocol_type="connect"),
    "JoinGroup without protocols": lambda s: s.world.join("g", protocols=()),
    "SyncGroup of the leader": lambda s: s.world.sync("g", s.ids[LEADER], s.generation_id),
    "SyncGroup of a follower": lambda s: s.world.sync("g", s.ids[FOLLOWER], s.generation_id),
    "SyncGroup in another generation": lambda s: s.world.sync("g", s.ids[LEADER], 9),
    "SyncGroup of an unknown id": lambda s: s.world.sync("g", "stranger", s.generation_id),
    "SyncGroup under a replaced id": lambda s: s.world.sync(
        "g", "old", s.generation_id, instance_id="i"
    ),
    "SyncGroup of another protocol": lambda s: s.world.sync(
        "g", s.ids[LEADER], s.generation_id, protocol_name="sticky"
    ),
    "Heartbeat": lambda s: s.world.beat("g", s.ids[LEADER], s.generation_id),
    "Heartbeat in another generation": lambda s: s.world.beat("g", s.ids[LEADER], 9),
    "Heartbeat of an unknown id": lambda s: s.world.beat("g", "stranger", s.generation_id),
    "Heartbeat under a replaced id": lambda s: s.world.beat("g", "old", s.generation_id, "i"),
    "LeaveGroup": lambda s: s.world.leave("g", s.ids[FOLLOWER]),
    "LeaveGroup by instance": lambda s: s.world.leave("g", ("", "i")),
    "LeaveGroup of an unknown id": lambda s: s.world.leave("g", "stranger"),
    "LeaveGroup under a replaced id": lambda s: s.world.leave("g", ("old", "i")),
    "OffsetCommit": lambda s: s.world.committing("g", s.ids[LEADER], s.generation_id),
    "OffsetCommit in another generation, v9": lambda s: s.world.committing(
        "g", s.ids[LEADER], 9, version=9
    ),
    "OffsetCommit in another generation, v8": lambda s: s.world.committing(
        "g", s.ids[LEADER], 9, version=8
    ),
    "OffsetCommit of an unknown id": lambda s: s.world.committing("g", "stranger", s.generation_id),
    "OffsetCommit without a group's id or generation": lambda s: s.world.committing("g"),
    "OffsetFetch": lambda s: s.world.ask(
        OffsetFetchRequest(groups=[OffsetFetchRequestGroup(G, topics=None)]), version=9
    ),
    "OffsetDelete of a topic that is read": lambda s: delete_offsets(s, "u"),
    "OffsetDelete of another topic": lambda s: delete_offsets(s, "t"),
    "DescribeGroups, v6": lambda s: s.world.ask(DescribeGroupsRequest([G]), version=6),
    "DescribeGroups, v5": lambda s: s.world.ask(DescribeGroupsRequest([G]), version=5),
    "DeleteGroups": lambda s: s.world.ask(DeleteGroupsRequest([G]), version=2),
    "ListGroups": lambda s: s.world.ask(ListGroupsRequest(), version=5),
}

COLUMNS: Final = ("no such group", *LEGAL_MOVES, "loading", "not ours")


def cell(ask: Ask, column: str) -> str:
    """The answer, and the state that the group is in then if it is another one."""
    stage = Stage(column)
    asked = ask(stage)
    said = "waits" if asked.waits else f"{_error(asked).name}"
    group = stage.world.coordinator.group(G)
    after = "no such group" if group is None else group.state.value
    if column in ("loading", "not ours", after):
        return said
    return f"{said} → {after}"


def _error(asked: Asked) -> ErrorCode:
    """The most telling error of an answer: of the whole, or else of its first part."""
    response: object = asked.response
    while True:
        error_code = getattr(response, "error_code", ErrorCode.NONE)
        assert isinstance(error_code, ErrorCode)
        if error_code is not ErrorCode.NONE:
            return error_code
        for parts in ("members", "groups", "results", "topics", "partitions"):
            inside = getattr(response, parts, ())
            if inside:
                response = inside[0]
                break
        else:
            return ErrorCode.NONE


def document() -> str:
    lines = [
        "# Group states, and the answers in each state",
        "",
        "Generated by `docs/make_group_states.py` from the code; `make docs` updates it.",
        "",
        "## Transitions",
        "",
        "```mermaid",
        "stateDiagram-v2",
        "    [*] --> Empty",
        *(
            f"    {before.value} --> {after.value}"
            for before, afters in LEGAL_MOVES.items()
            for after in LEGAL_MOVES
            if after in afters
        ),
        "    Dead --> [*]",
        "```",
        "",
        "| from | to |",
        "|---|---|",
        *(
            f"| {before.value} | {', '.join(s.value for s in LEGAL_MOVES if s in afters) or '-'} |"
            for before, afters in LEGAL_MOVES.items()
        ),
        "",
        "## Answers",
        "",
        *wrap(
            "The group has the protocol type `consumer` and subscribes to topic `u`. If it has "
            "members, they are a leader, a follower and the static member `i`. PreparingRebalance "
            "was started by the JoinGroup of a fourth member. *waits*: the request is parked until "
            "the requests of other members arrive. An arrow shows the new state of the group. The "
            "settings are Kafka's; [differences.md](differences.md) lists what Rollcall does "
            "differently. A Dead group is being deleted, and clients never see one; its column "
            "shows what the decisions would answer.",
            WIDTH,
        ),
        "",
        f"| request | {' | '.join(COLUMNS)} |",
        f"|---|{'---|' * len(COLUMNS)}",
        *(
            f"| {name} | {' | '.join(cell(ask, column) for column in COLUMNS)} |"
            for name, ask in ROWS.items()
        ),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    PATH.write_text(document())

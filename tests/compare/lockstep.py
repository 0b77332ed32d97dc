"""Lockstep: sends the same request to two brokers and compares their answers.

A step is data, so that a sequence of steps can be kept, played again and shortened. `@x` stands for
the member id that client x was given, `t0` for the scenario's topic of this name, and `~` for the
scenario's name.
"""

import time
from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple
from uuid import UUID

from protocol.consumer_protocol import read_assignment
from protocol.messages import Request, Response
from protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    HeartbeatTopicPartitions,
)
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.offset_fetch import OffsetFetchResponse
from protocol.messages.sync_group import SyncGroupResponse
from protocol.names import GenerationId, GroupInstanceId, MemberId, TopicId, TopicName
from protocol.primitives import Unwritable
from tests.compare.client import Client
from tests.compare.given_ids import give
from tests.compare.on_purpose import (
    Fields,
    is_left_out,
    is_refused_upgrade,
    share_a_bucket,
)
from tests.compare.scenarios.consumer_migration import assigned, subscribed
from tests.compare.script import Script

CLIENTS: Final = "abxyz"

UNKNOWN_TOPIC: Final = TopicId("11111111-2222-3333-4444-555555555555")

PARKED_AFTER_S: Final = 0.1
"""How long the answer to a request that may be parked is waited for."""

PARKED_WITHIN_S: Final = 2.0
"""How long a busy Kafka may take until it shows a new member whose request is parked."""

RESOLVED_WITHIN_S: Final = 0.4
"""How long a regular expression may take. Nothing tells when one without topics is resolved."""

RESOLVED_AGAIN_AFTER_S: Final = 9.0
"""Expressions are resolved again from ten seconds on: with which step depends on the machine."""

EXPIRED_WITHIN_S: Final = 0.2
"""How long an expiry may take once a member gave a rebalance timeout that ends at once."""

Owned = Sequence[tuple[str, Sequence[int]]]


class Step(NamedTuple):
    client: str
    op: str
    fields: Fields


class Side(Script):
    """One broker's part of the play."""

    def __init__(self, name: str, port: int) -> None:
        super().__init__(name, port, lambda: None)
        self.ids: dict[str, TopicId] = {}
        self.newest: Response | None = None

    def topic_id(self, name: str) -> TopicId:
        return self.ids.get(name, UNKNOWN_TOPIC)

    def named(self, name: str) -> TopicName:
        return TopicName(name.replace("~", self.name))

    def send(
        self, client: Client, request: Request, version: int, group_id: Any
    ) -> Response | None:
        """As in `Script`, but what was answered a little later was not parked."""
        self.say(client, request, version)
        self._barrier(group_id)
        self._wait(client)
        answer = None
        if client.wire.has_answer():
            answer = self._hear(client)
        else:
            self.transcript.append(f"{client.name}  waits")
            assert client.waiting is not None
            client.waiting = type(client.waiting)(client.waiting.response_class, version, group_id)
        self._hear_others(client)
        return answer

    def _hear_others(self, speaker: Client | None) -> None:
        for client in self._clients.values():
            if client is not speaker and client.waiting is not None:
                self._wait(client)
        super()._hear_others(speaker)

    def _wait(self, client: Client) -> None:
        until = time.monotonic() + PARKED_AFTER_S
        while not client.wire.has_answer() and time.monotonic() < until:
            time.sleep(0.002)

    def _write_answer(self, client: Client, answer: Response, version: int) -> None:
        """Topics of an assignment and committed partitions are in the order of a hash map."""
        if isinstance(answer, SyncGroupResponse) and len(answer.assignment) > 2:
            content = read_assignment(bytes(answer.assignment))
            parts = [(part.topic, part.partitions) for part in content.assigned_partitions]
            shown = f"{sorted(parts)} {content.user_data!r}".encode()
            answer = SyncGroupResponse(
                error_code=answer.error_code,
                protocol_type=answer.protocol_type,
                protocol_name=answer.protocol_name,
                assignment=shown,
            )
        if isinstance(answer, OffsetFetchResponse):
            for topic in (*answer.topics, *(t for group in answer.groups for t in group.topics)):
                topic.partitions = sorted(topic.partitions, key=lambda p: p.partition_index)
        super()._write_answer(client, answer, version)

    def member_ids(self) -> set[str]:
        return {member.member_id for member in self.describe().groups[0].members}

    def forget_requests(self) -> None:
        """The connections are gone, and the answers with them."""
        for client in self._clients.values():
            client.waiting = None


class Pair:
    """The same play at Kafka and at the daemon, whose random ids are Kafka's."""

    def __init__(self, name: str, kafka: int, ours: int, ids: Path) -> None:
        self.name = name
        self.kafka, self.ours = Side(name, kafka), Side(name, ours)
        self._ids = ids
        self._compared = [0, 0]
        self._member_ids: set[MemberId] = set()
        self._has_other_ids = False
        self._has_no_time = False
        self._has_broken_metadata = False
        self._first_regex_at: float | None = None
        self._closed_at: float | None = None
        self.steps: list[Step] = []
        self.left_out = 0
        """Steps that were not taken because their answers differ on purpose."""

    def take(self, step: Step) -> list[str]:
        """Returns the lines that differ; nothing means that both answer alike."""
        if self._is_left_out(step):
            self.left_out += 1
            return []
        self.steps.append(step)
        client = self.kafka.known_client(step.client)
        self.ours.known_client(step.client)
        before = client.member_id
        try:
            self._run(self.kafka, step)
        except Unwritable:  # the version has no such field
            del self.kafka.transcript[self._compared[0] :]
            return []
        self._give_members(step, client, before)
        self._run(self.ours, step)
        for name in CLIENTS:
            ids = {side.known_client(name).member_id for side in (self.kafka, self.ours)}
            self._member_ids |= ids
            self._has_other_ids |= len(ids) > 1
        if step.fields.get("regex"):
            self._first_regex_at = self._first_regex_at or time.monotonic()
            time.sleep(RESOLVED_WITHIN_S)
        self._has_broken_metadata |= "is_broken" in step.fields
        self._has_no_time |= step.fields.get("rebalance_ms", 1) <= 0
        if self._has_no_time:
            time.sleep(EXPIRED_WITHIN_S)
        return self.difference()

    def _is_left_out(self, step: Step) -> bool:
        if step.op not in ("beat", "join") or step.fields.get("group", "~") != "~":
            return False
        client = self.ours.known_client(step.client)
        member_id = _member(self.ours, client, step.fields.get("member"))
        described = self.ours.describe_consumers()
        if self._has_broken_metadata and is_refused_upgrade(step.op, step.fields, described):
            return True
        return is_left_out(step.op, step.fields, member_id, described)

    def is_unclear(self) -> bool:
        """Whether a difference may come of ids that share a bucket of Kafka's maps, or of time.

        A busy Kafka may tell the daemon too late which id it made.
        """
        began_at = self._first_regex_at
        took_s = 0.0 if began_at is None else (self._closed_at or time.monotonic()) - began_at
        return (
            self._has_other_ids
            or took_s > RESOLVED_AGAIN_AFTER_S
            or share_a_bucket(self.kafka.topics, self._member_ids - {MemberId("")})
        )

    def difference(self) -> list[str]:
        new = []
        for index, side in enumerate((self.kafka, self.ours)):
            new.append(side.transcript[self._compared[index] :])
            self._compared[index] = len(side.transcript)
        if new[0] == new[1]:
            return []
        return [*(f"kafka {line}" for line in new[0]), *(f"ours  {line}" for line in new[1])]

    def restarted(self) -> list[str]:
        """Both brokers were started again: connect, and look whether they say the same."""
        self.steps.append(Step("-", "restart", {}))
        for side in (self.kafka, self.ours):
            side.restart_broker()
            side.forget_requests()
        return self.difference()

    def close(self) -> None:
        self._closed_at = time.monotonic()
        self.kafka.close()
        self.ours.close()

    def topics_made(self, name: str) -> None:
        full = self.kafka.named(f"~.{name}")
        give(self._ids, topics=[str(self.kafka.ids[full])])

    def _run(self, side: Side, step: Step) -> None:
        fields = dict(step.fields)
        if step.op == "create":
            if side is self.ours:
                self.topics_made(fields["topic"])
            _create(side, **fields)
            return
        client = side.known_client(step.client)
        OPS[step.op](side, client, **fields)

    def _give_members(self, step: Step, client: Client, before: str) -> None:
        """Have the daemon make the same member id, if Kafka has made one."""
        made = {client.member_id} - {before}
        if client.waiting is not None:
            made = self.kafka.member_ids() - self.ours.member_ids()
            has_new = step.op == "join" and not _member(self.kafka, client, step.fields["member"])
            until = time.monotonic() + PARKED_WITHIN_S
            while has_new and not made and time.monotonic() < until:
                made = self.kafka.member_ids() - self.ours.member_ids()
        found = [_uuid(member_id) for member_id in made]
        give(self._ids, members=[str(found_id) for found_id in found if found_id is not None])


def _uuid(member_id: str) -> UUID | None:
    try:
        return UUID(member_id[-36:])
    except ValueError:
        pass
    try:
        return UUID(bytes=urlsafe_b64decode(member_id + "==")) if len(member_id) == 22 else None
    except ValueError:
        return None


# ---------------------------------------------------------------- what a step sends


def _member(side: Side, client: Client, member: str | None) -> MemberId:
    if member is None:
        return client.consumer_id
    if member.startswith("@"):
        return side.known_client(member[1:]).member_id
    return MemberId(member)


def _topic(side: Side, name: str) -> TopicName:
    return side.named(f"~.{name}")


def _instance(instance: str | None) -> GroupInstanceId | None:
    return None if instance is None else GroupInstanceId(instance)


def _create(side: Side, topic: str, partitions: int) -> None:
    name = side.topic(topic, partitions)
    topic_id = side.topic_metadata(name).topic_id
    side.ids[name] = topic_id
    side.topics[topic_id] = name
    side.await_metadata()


def _grow(side: Side, _client: Client, topic: str, partitions: int) -> None:
    assert _topic(side, topic) in side.ids
    side.grow_topic(_topic(side, topic), partitions)


def _drop(side: Side, _client: Client, topic: str) -> None:
    side.delete_topic(_topic(side, topic))


def _beat(
    side: Side,
    client: Client,
    epoch: int,
    member: str | None = None,
    instance: str | None = None,
    rack: str | None = None,
    rebalance_ms: int = -1,
    topics: Sequence[str] | None = None,
    regex: str | None = None,
    assignor: str | None = None,
    owned: Owned | None = None,
    version: int = 1,
    group: str = "~",
) -> None:
    owning = None
    if owned is not None:
        owning = [
            HeartbeatTopicPartitions(side.topic_id(_topic(side, name)), list(partitions))
            for name, partitions in owned
        ]
    request = ConsumerGroupHeartbeatRequest(
        group_id=client._group(side.named(group)),
        member_id=_member(side, client, member),
        member_epoch=epoch,
        instance_id=_instance(instance),
        rack_id=rack,
        rebalance_timeout_ms=rebalance_ms,
        subscribed_topic_names=None if topics is None else [_topic(side, t) for t in topics],
        subscribed_topic_regex=(
            None if regex is None or version < 1 else regex.replace("~", side.name)
        ),
        server_assignor=assignor,
        topic_partitions=owning,
    )
    client.ask(request, version)


def _join(
    side: Side,
    client: Client,
    protocols: Sequence[tuple[str, Sequence[str], Owned]],
    member: str | None = None,
    **options: Any,
) -> None:
    offered = [
        (
            name,
            subscribed(
                *(_topic(side, topic) for topic in topics),
                owned={_topic(side, topic): list(parts) for topic, parts in owned},
            ),
        )
        for name, topics, owned in protocols
    ]
    if options.pop("is_broken", False):
        offered = [(name, data[:7]) for name, data in offered]
    client.join(
        member_id=_member(side, client, member), protocols=offered, may_wait=True, **options
    )


def _sync(
    side: Side,
    client: Client,
    assignments: Sequence[tuple[str, str, Sequence[int]]] = (),
    member: str | None = None,
    **options: Any,
) -> None:
    given: dict[Client | str, bytes] = {
        _member(side, client, name): assigned(_topic(side, topic), *partitions)
        for name, topic, partitions in assignments
    }
    client.sync(given, member_id=_member(side, client, member), may_wait=True, **options)


def _classic_beat(side: Side, client: Client, member: str | None = None, **options: Any) -> None:
    client.beat(member_id=_member(side, client, member), **options)


def _leave(
    side: Side, client: Client, members: Sequence[tuple[str, str | None]], version: int = 5
) -> None:
    leaving = [(_member(side, client, member), instance) for member, instance in members]
    client.leave(*leaving, version=version)


def _commit(
    side: Side,
    client: Client,
    offsets: Sequence[tuple[str, Mapping[int, int]]],
    generation: int,
    member: str | None = None,
    instance: str | None = None,
    version: int = 9,
) -> None:
    topics = []
    for topic, of_topic in offsets:
        name = _topic(side, topic)
        parts = [OffsetCommitRequestPartition(index, offset) for index, offset in of_topic.items()]
        of_name = OffsetCommitRequestTopic(name, partitions=parts)
        if version >= 10:
            of_name.topic_id = side.topic_id(name)
        topics.append(of_name)
    request = OffsetCommitRequest(
        side.group,
        GenerationId(generation),
        _member(side, client, member),
        _instance(instance),
        -1,
        topics,
    )
    client.ask(request, version)


def _fetch(
    side: Side,
    client: Client,
    topics: Mapping[str, Sequence[int]] | None,
    member: str | None,
    epoch: int,
    version: int = 9,
) -> None:
    client.fetch_offsets(
        None if topics is None else {_topic(side, t): list(p) for t, p in topics.items()},
        member_id=None if member is None else _member(side, client, member),
        member_epoch=epoch,
        version=version,
    )


def _delete_offsets(side: Side, client: Client, topics: Mapping[str, Sequence[int]]) -> None:
    client.delete_offsets({_topic(side, t): list(p) for t, p in topics.items()})


def _describe_many(side: Side, client: Client, groups: Sequence[str], *, operations: bool) -> None:
    client.describe_consumers(*map(side.named, groups), operations=operations)
    client.describe(*map(side.named, groups), operations=operations)


OPS: Final[Mapping[str, Callable[..., None]]] = {
    "grow": _grow,
    "drop": _drop,
    "beat": _beat,
    "join": _join,
    "sync": _sync,
    "classic_beat": _classic_beat,
    "leave": _leave,
    "commit": _commit,
    "fetch": _fetch,
    "delete_offsets": _delete_offsets,
    "describe": lambda _side, client: client.describe_consumers(),
    "describe_many": _describe_many,
    "describe_0": lambda _side, client: client.describe_consumers(version=0),
    "describe_classic": lambda _side, client, version=6: client.describe(version=version),
    "list": lambda _side, client, **options: client.list_groups(**options),
    "delete_group": lambda _side, client: client.delete_groups(),
    "pause": lambda side, _client, ms: side.pause_ms(ms),
}

"""Random requests of consumer groups: mostly what a client would send next, sometimes not.

The choices depend on the seed and on Kafka's answers.
"""

import random
from collections.abc import Callable
from typing import Any, Final

from protocol.consumer_protocol import read_assignment
from protocol.messages import Response
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from protocol.messages.join_group import JoinGroupResponse
from protocol.messages.sync_group import SyncGroupResponse
from protocol.names import ErrorCode
from tests.compare.client import Client
from tests.compare.lockstep import CLIENTS, Pair, Step
from tests.compare.on_purpose import Fields

TOPICS: Final = ("t0", "t1", "t2")
MINUTES_MS: Final = 300_000

Parts = list[tuple[str, list[int]]]


class Member:
    """A client as it sees itself."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.epoch = 0
        self.is_classic = name in "xyz"
        self.instance: str | None = None
        self.assigned: Parts = []
        self.owned: Parts = []
        self.seen: Response | None = None

    def hear(self, client: Client, pair: Pair) -> None:
        answer = client.last
        if answer is self.seen or answer is None:
            return
        self.seen = answer
        if isinstance(answer, ConsumerGroupHeartbeatResponse):
            self._hear_heartbeat(answer, pair)
        elif isinstance(answer, JoinGroupResponse):
            if answer.error_code is ErrorCode.NONE:
                self.epoch = answer.generation_id
        elif isinstance(answer, SyncGroupResponse) and answer.assignment:
            self.assigned = self.owned = _assignment(bytes(answer.assignment))

    def _hear_heartbeat(self, answer: ConsumerGroupHeartbeatResponse, pair: Pair) -> None:
        if answer.error_code is not ErrorCode.NONE:
            if answer.error_code in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID):
                self.forget()
            return
        self.epoch = max(answer.member_epoch, 0)
        if answer.assignment is not None:
            self.assigned = [
                (pair.kafka.topics[part.topic_id].rsplit(".", 1)[-1], sorted(part.partitions))
                for part in answer.assignment.topic_partitions
            ]

    def forget(self) -> None:
        self.epoch = 0
        self.assigned = []
        self.owned = []


def _assignment(data: bytes) -> Parts:
    parts = read_assignment(data).assigned_partitions
    return sorted((part.topic.rsplit(".", 1)[-1], sorted(part.partitions)) for part in parts)


class RandomRequests:
    """`next_step` chooses; `learn` takes in what Kafka answered."""

    def __init__(self, pair: Pair, seed: int, *, restarts: bool) -> None:
        self.pair = pair
        self.random = random.Random(seed)
        # After a restart no expression is sent: Kafka resolves them later (docs/differences.md).
        self.restarts = restarts
        # Expressions are resolved at most every ten seconds: only in plays that are shorter.
        self.with_regex = seed % 3 == 0 and not restarts
        self.wrong = self.random.choice((0.02, 0.1, 0.25))
        self.classic = self.random.choice((0.0, 0.3, 0.6))
        self.assignor = self.random.choice(("uniform", "range", None))
        self.sizes = {
            name: self.random.randint(1, 5) for name in TOPICS[: self.random.randint(1, 3)]
        }
        self.members = {name: Member(name) for name in CLIENTS}
        self.members["b"].instance = "ib"
        if self.random.random() < 0.3:
            self.members["y"].instance = "iy"

    def setup(self) -> list[Step]:
        return [
            Step("a", "create", {"topic": name, "partitions": count})
            for name, count in self.sizes.items()
        ]

    def learn(self) -> None:
        for name, member in self.members.items():
            member.hear(self.pair.kafka.known_client(name), self.pair)

    def next_step(self) -> Step:
        client = self.pair.kafka.known_client
        free = [name for name in CLIENTS if client(name).waiting is None]
        member = self.members[self.random.choice(free or "z")]
        if self.random.random() < 0.05:
            member.is_classic = not member.is_classic
        if self.random.random() < 0.12:
            return self._side_step(member)
        is_classic = member.is_classic and self.random.random() < self.classic + 0.3
        step = self._classic_step(member) if is_classic else self._consumer_step(member)
        return self._spoilt(step) if self.random.random() < self.wrong else step

    # ------------------------------------------------------------ consumers

    def _consumer_step(self, member: Member) -> Step:
        if member.epoch <= 0 and self.random.random() < 0.8:
            return self._consumer_join(member)
        steps: list[tuple[int, Callable[[Member], Step]]] = [
            (34, self._acknowledge),
            (10, self._beat),
            (8, self._give_back_some),
            (6, self._other_epoch),
            (5, self._consumer_join),
            (8, lambda m: self._away(m, -1)),
            (5, lambda m: self._away(m, -2)),
            (8, lambda m: self._beat(m, **self._subscription())),
            (4, self._full),
            (9, self._commit),
            (4, self._fetch),
        ]
        (chosen,) = self.random.choices([s for _, s in steps], [w for w, _ in steps])
        return chosen(member)

    def _beat(self, of: Member, **fields: Any) -> Step:
        given: Fields = {"epoch": of.epoch, "member": self._id_of(of), **fields}
        if of.instance is not None:
            given.setdefault("instance", of.instance)
        return Step(of.name, "beat", given)

    def _consumer_join(self, member: Member) -> Step:
        member.owned = []
        fields: Fields = {
            "epoch": 0,
            "rebalance_ms": MINUTES_MS,
            "owned": [],
            "assignor": self.assignor,
            **self._subscription(),
        }
        if fields.get("topics") is None and fields.get("regex") is None:
            fields["topics"] = []
        if self.random.random() < 0.1:
            fields["rack"] = self.random.choice(("r1", "r2"))
        if self.random.random() < 0.1:
            fields["version"] = 0
            fields["member"] = self.random.choice(("", member.name))
        return self._beat(member, **fields)

    def _subscription(self) -> Fields:
        if self.with_regex and self.random.random() < 0.4:
            regex = self.random.choice((r"~\.t.*", r"~\.t[01]", r"~\.t2", ".*nothing", ""))
            topics = self.random.choice((None, None, [], [self.random.choice(TOPICS)]))
            return {"regex": regex, "topics": topics}
        return {"topics": self._some_topics()}

    def _some_topics(self) -> list[str]:
        if self.random.random() < 0.06:
            return []
        known = list(self.sizes) or ["t0"]
        if self.random.random() < 0.1:
            known = list(TOPICS)
        if self.random.random() < 0.5:
            return known
        return self.random.sample(known, self.random.randint(1, len(known)))

    def _acknowledge(self, member: Member) -> Step:
        member.owned = [(topic, list(parts)) for topic, parts in member.assigned]
        return self._beat(member, owned=member.owned)

    def _give_back_some(self, member: Member) -> Step:
        kept = [
            (topic, [part for part in parts if self.random.random() < 0.6])
            for topic, parts in member.owned
        ]
        member.owned = [(topic, parts) for topic, parts in kept if parts]
        return self._beat(member, owned=member.owned)

    def _other_epoch(self, member: Member) -> Step:
        epoch = member.epoch + self.random.choice((-3, -2, -1, -1, -1, 1, 2))
        owned = self.random.choice((None, member.owned, member.assigned, []))
        return self._beat(member, epoch=epoch, owned=owned)

    def _away(self, member: Member, epoch: int) -> Step:
        step = self._beat(member, epoch=epoch)
        member.forget()
        return step

    def _full(self, member: Member) -> Step:
        return self._beat(
            member,
            owned=self.random.choice((member.owned, member.assigned)),
            rebalance_ms=self.random.choice((MINUTES_MS, MINUTES_MS + 1)),
            assignor=self.random.choice((self.assignor, "range", "uniform")),
            rack=self.random.choice((None, "r1")),
            **self._subscription(),
        )

    # ------------------------------------------------------------ offsets, for both

    def _commit(self, member: Member) -> Step:
        generation = member.epoch + self.random.choice((0, 0, 0, 0, -1, -2, 1))
        topics = self.random.sample(TOPICS, self.random.randint(1, 2))
        offsets = [
            (
                topic,
                {
                    self.random.randrange(self.sizes.get(topic, 1) + 1): self.random.randrange(90)
                    for _ in range(2)
                },
            )
            for topic in topics
        ]
        fields: Fields = {
            "offsets": offsets,
            "generation": max(generation, -1),
            "member": self._id_of(member),
            "version": self.random.choice((9, 9, 10, 8)),
        }
        if self.random.random() < 0.15:
            fields.update(member="", generation=-1)
        if member.instance and self.random.random() < 0.5:
            fields["instance"] = member.instance
        return Step(member.name, "commit", fields)

    def _fetch(self, member: Member) -> Step:
        epoch = member.epoch + self.random.choice((0, 0, 0, -1, 1))
        topics = {topic: list(range(size)) for topic, size in self.sizes.items()} or None
        return Step(
            member.name,
            "fetch",
            {
                "topics": self.random.choice((topics, topics, None)),
                "member": self._id_of(member),
                "epoch": max(epoch, -1),
                "version": self.random.choice((9, 9, 10)),
            },
        )

    def _id_of(self, member: Member) -> str:
        has_id = self.pair.kafka.known_client(member.name).member_id
        return "@" + member.name if has_id else member.name

    # ------------------------------------------------------------ classic members

    def _classic_step(self, member: Member) -> Step:
        if member.epoch <= 0 and self.random.random() < 0.8:
            return self._join(member)
        steps: list[tuple[int, Callable[[Member], Step]]] = [
            (30, self._join),
            (28, self._sync),
            (22, self._classic_beat),
            (7, self._leave),
            (9, self._commit),
            (3, self._fetch),
        ]
        (chosen,) = self.random.choices([s for _, s in steps], [w for w, _ in steps])
        return chosen(member)

    def _static(self, member: Member) -> Fields:
        return {} if member.instance is None else {"instance_id": member.instance}

    def _join(self, member: Member) -> Step:
        names = ["range", "cooperative-sticky"] if self.random.random() < 0.3 else ["range"]
        topics = self._some_topics()
        owned = member.owned if self.random.random() < 0.7 else []
        identity = "@" + member.name
        if self.random.random() < 0.15:
            identity = self.random.choice(("", member.name))
        return Step(
            member.name,
            "join",
            {
                "protocols": [(name, topics, owned) for name in names],
                "member": identity,
                "version": self.random.choice((9, 9, 9, 5)),
                **self._static(member),
            },
        )

    def _sync(self, member: Member) -> Step:
        classic = [m for m in self.members.values() if m.is_classic]
        topic = self.random.choice(list(self.sizes) or ["t0"])
        parts = list(range(self.sizes.get(topic, 1)))
        given = [
            ("@" + other.name, topic, parts[index :: len(classic)])
            for index, other in enumerate(classic)
        ]
        fields: Fields = {
            "assignments": given,
            "generation_id": member.epoch,
            "member": "@" + member.name,
            **self._static(member),
        }
        return Step(member.name, "sync", fields)

    def _classic_beat(self, member: Member) -> Step:
        fields: Fields = {"generation_id": member.epoch, "member": "@" + member.name}
        return Step(member.name, "classic_beat", {**fields, **self._static(member)})

    def _leave(self, member: Member) -> Step:
        leaving = [("@" + member.name, self.random.choice((None, member.instance)))]
        if member.instance and self.random.random() < 0.5:
            leaving = [("", member.instance)]
        if self.random.random() < 0.2:
            other = self.members[self.random.choice(CLIENTS)]
            leaving.append((self._id_of(other), other.instance))
        member.forget()
        return Step(member.name, "leave", {"members": leaving})

    # ------------------------------------------------------------ others

    def _side_step(self, member: Member) -> Step:
        topic = self.random.choice(list(self.sizes) or ["t0"])
        kind = self.random.choice(
            ["describe"] * 6 + ["describe_0", "describe_classic", "describe_classic", "list"]
            + ["delete_group", "delete_offsets", "grow", "grow", "create", "drop", "describe_many"]
        )  # fmt: skip
        if kind == "delete_offsets":
            return Step(member.name, kind, {"topics": {topic: [0, 1]}})
        if kind == "describe_classic":
            return Step(member.name, kind, {"version": self.random.choice((5, 6))})
        if kind == "list":
            fields: Fields = {
                "types": self.random.choice(
                    ([], ["consumer"], ["classic"], ["Consumer"], ["none"])
                ),
                "states": self.random.choice(([], [], ["stable"], ["Empty"], ["none"])),
            }
            return Step(member.name, kind, fields)
        if kind == "describe_many":
            groups = [self.random.choice(_GROUPS) for _ in range(3)]
            fields = {"groups": groups, "operations": self.random.random() < 0.5}
            return Step(member.name, kind, fields)
        if kind == "create":
            missing = [name for name in TOPICS if name not in self.sizes]
            if missing:
                self.sizes[missing[0]] = self.random.randint(1, 4)
                size = self.sizes[missing[0]]
                return Step(member.name, kind, {"topic": missing[0], "partitions": size})
        elif kind == "drop" and topic in self.sizes:
            del self.sizes[topic]
            return Step(member.name, kind, {"topic": topic})
        elif kind == "grow" and self.sizes.get(topic, 9) < 6:
            self.sizes[topic] += 1
            return Step(member.name, kind, {"topic": topic, "partitions": self.sizes[topic]})
        return Step(member.name, kind if kind.startswith("de") else "describe", {})

    # ------------------------------------------------------------ wrong ones

    def _spoilt(self, step: Step) -> Step:
        """One field is not what the client should send."""
        wrong = _WRONG.get(step.op)
        if wrong is None:
            return step
        name = self.random.choice(list(wrong))
        if name == "regex" and self.restarts:
            return step
        fields = {**step.fields, name: self.random.choice(wrong[name])}
        if step.op == "fetch" and fields["member"] is None:
            # With an epoch Kafka answers UNKNOWN_SERVER_ERROR: docs/differences.md has it.
            fields["epoch"] = -1
        return Step(step.client, step.op, fields)


_IDS: Final = ("", "stranger", "@a", "@b", "@x", "@y", "b", " ", "\u00e9", "\x00")
_INSTANCES: Final = (None, "ib", "iy", "in", "", " ", "\u00e9")
_GROUPS: Final = ("~", "none", "", "~.none")

_WRONG: Final[dict[str, Fields]] = {
    "beat": {
        "epoch": (0, -1, -2, -3, 1, 2, 99, 2**31 - 1, -(2**31)),
        "member": _IDS,
        "instance": _INSTANCES,
        "rack": ("", "r1", " ", None),
        "rebalance_ms": (-1, 0, -2, 1000 * 900, 2**31 - 1),
        "topics": (None, [], ["t0", "t0"], ["none"], ["t2", "t1", "t0"], [""], ["none", "t0"]),
        "regex": ("[", "", "(?!x)", r"~\.t.*", None, "*", " ", "none", r"~\.t0|~\.t1"),
        "assignor": ("none", "", "range", "uniform", None),
        "owned": (
            None, [], [("none", [0])], [("t0", [-1])], [("t0", [0, 0])], [("t0", [99])],
            [("t0", [0]), ("t0", [1])], [("t0", [])], [("t1", [0])], [("t0", [0, 1, 2])],
            [("t0", [2, 1, 0])], [("t0", []), ("t0", [0])], [("t0", [2**31 - 1])],
        ),
        "version": (0, 1),
    },
    "join": {
        "member": _IDS,
        "instance_id": _INSTANCES,
        "protocols": (
            [], [("", ["t0"], [])],
            [("roundrobin", ["t0"], [])], [("range", [], [])], [("range", ["none"], [])],
            [("range", ["t0"], [("t0", [0, 0])])], [("range", ["t0"], [("none", [0])])],
            [("cooperative-sticky", ["t0", "t1"], [("t0", [0])])],
        ),
        "protocol_type": ("", "connect"),
        "session_ms": (0, -1, 1_800_001),
        "rebalance_ms": (0, -1, -2),
        "version": (0, 1, 2, 3, 4, 6, 7, 9),
        "is_broken": (True,),
    },
    "sync": {
        "member": _IDS,
        "instance_id": _INSTANCES,
        "generation_id": (-1, 0, 1, 2, 99),
        "protocol_type": (None, "", "connect"),
        "protocol_name": (None, "", "uniform", "none"),
        "version": (0, 1, 2, 3, 4, 5),
    },
    "classic_beat": {
        "member": _IDS,
        "instance_id": _INSTANCES,
        "generation_id": (-1, 0, 1, 2, 99),
        "version": (0, 1, 2, 3, 4),
    },
    "leave": {
        "members": (
            [("@a", None)], [("@b", "ib")], [("", "ib")], [("@x", None), ("@x", None)],
            [("@a", "ib")], [("stranger", "iy")], [("@a", None), ("@b", None), ("@x", None)],
            [("", None)], [("@a", "")], [("", "in")], [("", "ib"), ("@b", None)],
            [("", "ib"), ("", "ib")],
        ),
        "version": (0, 1, 2, 3, 4, 5),
    },
    "commit": {
        "member": _IDS,
        "instance": _INSTANCES,
        "generation": (-1, 0, 1, 2, 99),
        "version": (2, 3, 4, 5, 6, 7, 8, 9, 10),
        "offsets": (
            [("none", {0: 1})], [("t0", {-1: 3})], [("t0", {0: -1})], [],
            [("t0", {0: 1}), ("t0", {0: 2})],
        ),
    },
    "fetch": {
        "member": (None, *_IDS),
        "epoch": (-1, 0, 1, 2, 99, -2),
        "topics": ({}, None, {"none": [0]}, {"t0": [0, 0, 99, -1]}),
        "version": (1, 2, 3, 5, 7, 8, 9, 10),
    },
}  # fmt: skip

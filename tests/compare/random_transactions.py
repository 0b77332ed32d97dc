"""Random transactions: steps of several producers over a few partitions and groups.

A step is data, so that a sequence of steps can be kept, played again and shortened. What depends on
the broker is named relatively: the producer id and epoch of a client, and the next sequence of a
partition. `a` and `b` are producers of one transactional id, `c` of another one; `d` is idempotent.

Left out is where Kafka has a fault: an epoch that is too high in a transaction makes the next good
batch fail (its verification keeps the lowest sequence that was tried), and DeleteRecords into a
batch of an open transaction leaves a last stable offset below the start of the log.
"""

import random
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from protocol.names import ProducerId
from tests.compare.batches import a_batch
from tests.compare.client import Client
from tests.compare.scenarios.transactions_admin import listed, mark
from tests.compare.script import Script

IDS: Final = {"a": ".1", "b": ".1", "c": ".2"}
"""Client -> its transactional id, behind the name of the play."""

TOPICS: Final = {"t0": 3, "t1": 1}
GROUPS: Final = (".g0", ".g1")
STRANGE_PID: Final = 5_000_000

Fields = dict[str, Any]


class Step(NamedTuple):
    client: str
    op: str
    fields: Fields


class RandomTransactions:
    """Makes up the steps of one play."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        styles = ("old", "new", "new", "mixed")
        of_ids = {txn: self.random.choice(styles) for txn in sorted(set(IDS.values()))}
        self.styles = {name: of_ids[txn] for name, txn in IDS.items()}

    def setup(self) -> list[Step]:
        return [Step(name, "init", {}) for name in ("a", "c", "d")]

    def next_step(self) -> Step:
        name = self.random.choices("abcd", (40, 8, 30, 15))[0]
        if name == "d":
            return self._choose(name, _IDEMPOTENT)
        return self._choose(name, _TRANSACTIONAL)

    def _choose(self, name: str, steps: "Mapping[str, tuple[int, Make]]") -> Step:
        (op,) = self.random.choices(list(steps), [weight for weight, _ in steps.values()])
        return Step(name, op.partition(" ")[0], steps[op][1](self, name))

    # What is chosen for a step

    def is_new(self, name: str) -> bool:
        style = self.styles[name]
        return style == "new" or (style == "mixed" and self.random.random() < 0.5)

    def place(self) -> tuple[str, int]:
        topic = self.random.choice(list(TOPICS))
        return topic, self.random.randrange(TOPICS[topic])

    def epoch(self, *, may_be_ahead: bool) -> int:
        """Behind the client's own one; rarely in front of it."""
        ahead = (-1,) if may_be_ahead else ()
        return self.random.choice((0,) * 25 + (1, 1) + ahead)

    def none(self, _name: str) -> Fields:
        return {}

    def init(self, name: str) -> Fields:
        version = self.random.choice((0, 1, 3, 4, 5, 5))
        return {"version": version, "again": version >= 3 and self.random.random() < 0.7,
                "behind": self.epoch(may_be_ahead=True)}  # fmt: skip

    def add(self, name: str) -> Fields:
        topics: dict[str, list[int]] = {}
        for _ in range(self.random.randint(1, 3)):
            topic, partition = self.place()
            if partition not in topics.setdefault(topic, []):
                topics[topic].append(partition)
        if self.random.random() < 0.05:
            topics["nowhere"] = [0]
        return {"topics": topics, "behind": self.epoch(may_be_ahead=True),
                "version": self.random.randrange(4)}  # fmt: skip

    def add_offsets(self, name: str) -> Fields:
        return {"group": self.random.choice(GROUPS), "behind": self.epoch(may_be_ahead=True),
                "version": self.random.randrange(5)}  # fmt: skip

    def end(self, name: str) -> Fields:
        version = 5 if self.is_new(name) else self.random.randrange(5)
        behind = self.epoch(may_be_ahead=True)
        if version == 5 and self.styles[name] != "new":
            behind = min(behind, 0)  # after an end of the first version: docs/differences.md
        return {"commit": self.random.random() < 0.6, "behind": behind, "version": version}

    def send(self, name: str) -> Fields:
        topic, partition = self.place()
        new = self.random.choice((12, 12, 13))
        return {"topic": topic, "partition": partition, "count": self.random.randint(1, 3),
                "skip": self.random.choice((0,) * 14 + (-1, -2, 1)),
                "behind": self.epoch(may_be_ahead=False),
                "version": new if self.is_new(name) else self.random.choice((9, 10, 11, 11)),
                "txn": self.random.choice((None,) * 30 + ("", ".unknown"))}  # fmt: skip

    def send_idempotent(self, name: str) -> Fields:
        topic, partition = self.place()
        return {"topic": topic, "partition": partition, "count": self.random.randint(1, 3),
                "skip": self.random.choice((0,) * 8 + (-1, -2, -3, -7, 1)),
                "behind": self.epoch(may_be_ahead=True),
                "version": self.random.choice((9, 12))}  # fmt: skip

    def commit(self, name: str) -> Fields:
        topic, partition = self.place()
        version = 5 if self.is_new(name) else self.random.randrange(5)
        generations = (-1,) * 9 + (0,) if version >= 3 else (-1,)
        return {"topic": topic, "partition": partition, "offset": self.random.randrange(90),
                "group": self.random.choice(GROUPS), "behind": self.epoch(may_be_ahead=False),
                "generation": self.random.choice(generations), "version": version}  # fmt: skip

    def read(self, name: str) -> Fields:
        topic, partition = self.place()
        isolation = self.random.choice((0, 1, 1))
        # Of a fetch of few bytes Kafka lists more aborted transactions than are needed.
        few_bytes = 1_000_000 if isolation else 1
        return {"topic": topic, "partition": partition, "isolation": isolation,
                "offset": self.random.choice((0, 0, 0, 1, 3, 5, 8)),
                "max_bytes": self.random.choice((few_bytes, 1_000_000, 1_000_000))}  # fmt: skip

    def list_offset(self, name: str) -> Fields:
        topic, partition = self.place()
        return {"topic": topic, "partition": partition, "isolation": self.random.choice((0, 1)),
                "timestamp": self.random.choice((-1, -1, -2, -3, 0))}  # fmt: skip

    def plain_commit(self, name: str) -> Fields:
        topic, partition = self.place()
        return {"topic": topic, "partition": partition, "offset": self.random.randrange(90),
                "group": self.random.choice(GROUPS)}  # fmt: skip

    def group(self, name: str) -> Fields:
        return {"group": self.random.choice(GROUPS), "stable": self.random.random() < 0.6}

    def placed(self, name: str) -> Fields:
        topic, partition = self.place()
        return {"topic": topic, "partition": partition}

    def states(self, name: str) -> Fields:
        return {"states": self.random.choice(([], ["Ongoing"], ["Empty", "CompleteCommit"]))}


Make = Callable[[RandomTransactions, str], Fields]

_READS: Final[dict[str, tuple[int, Make]]] = {
    "read": (7, RandomTransactions.read),
    "list_offset": (4, RandomTransactions.list_offset),
    "describe": (4, RandomTransactions.none),
    "producers": (3, RandomTransactions.none),
    "fetch_offsets": (4, RandomTransactions.group),
    "list": (1, RandomTransactions.states),
}

_TRANSACTIONAL: Final[dict[str, tuple[int, Make]]] = {
    "init": (7, RandomTransactions.init),
    "add": (13, RandomTransactions.add),
    "add_offsets": (4, RandomTransactions.add_offsets),
    "end": (17, RandomTransactions.end),
    "send": (32, RandomTransactions.send),
    "commit": (9, RandomTransactions.commit),
    "hang": (1, RandomTransactions.placed),
    **_READS,
}

_IDEMPOTENT: Final[dict[str, tuple[int, Make]]] = {
    "send_idempotent": (30, RandomTransactions.send_idempotent),
    "plain": (6, RandomTransactions.placed),
    "plain_commit": (5, RandomTransactions.plain_commit),
    "delete_offsets": (2, RandomTransactions.plain_commit),
    "delete_group": (1, RandomTransactions.group),
    **_READS,
}


# ---------------------------------------------------------------- what a step sends


def take(script: Script, step: Step) -> None:
    """Carry out one step at one broker."""
    client = script.known_client(step.client)
    OPS[step.op](script, client, **step.fields)


def _txn(script: Script, client: Client) -> str:
    return script.name + IDS.get(client.name, "")


def _topic(script: Script, name: str) -> str:
    return f"{script.name}.{name}"


def _init(
    script: Script, client: Client, again: bool = False, behind: int = 0, version: int = 5
) -> None:
    if client.name not in IDS:
        client.init_idempotent()
    elif again and client.producer_id >= 0:
        epoch = client.producer_epoch - behind
        client.init_again(txn=_txn(script, client), epoch=epoch, version=version)
    else:
        client.init(txn=_txn(script, client), version=version)


def _add(
    script: Script, client: Client, topics: Mapping[str, list[int]], behind: int, version: int
) -> None:
    named = {_topic(script, name): partitions for name, partitions in topics.items()}
    epoch = client.producer_epoch - behind
    client.add(named, txn=_txn(script, client), epoch=epoch, version=version)


def _add_offsets(script: Script, client: Client, group: str, behind: int, version: int) -> None:
    epoch = client.producer_epoch - behind
    client.add_offsets(
        group_id=script.name + group, txn=_txn(script, client), epoch=epoch, version=version
    )


def _end(script: Script, client: Client, commit: bool, behind: int, version: int) -> None:
    epoch = client.producer_epoch - behind
    client.end(commit, txn=_txn(script, client), epoch=epoch, version=version)


def _send(
    script: Script,
    client: Client,
    topic: str,
    partition: int,
    count: int,
    skip: int,
    behind: int,
    version: int,
    txn: str | None = None,
) -> None:
    name = _topic(script, topic)
    sequence = max(client.sequences.get((name, partition), 0) + skip, 0)
    is_transactional = client.name in IDS
    transactional_id = _txn(script, client) if txn is None else txn and script.name + txn
    client.send_records(
        name,
        *(b"%d" % (sequence + number) for number in range(count)),
        partition=partition,
        is_transactional=is_transactional,
        txn=transactional_id if is_transactional else None,
        epoch=max(client.producer_epoch - behind, 0),
        sequence=sequence,
        pid=max(client.producer_id, 0) or ProducerId(STRANGE_PID),
        version=version,
    )


def _commit(
    script: Script,
    client: Client,
    topic: str,
    partition: int,
    offset: int,
    group: str,
    behind: int,
    generation: int,
    version: int,
) -> None:
    client.commit_in_txn(
        {_topic(script, topic): {partition: offset}},
        group_id=script.name + group,
        txn=_txn(script, client),
        epoch=client.producer_epoch - behind,
        generation_id=generation,
        version=version,
    )


def _read(
    script: Script,
    client: Client,
    topic: str,
    partition: int,
    isolation: int,
    offset: int,
    max_bytes: int,
) -> None:
    client.read(
        _topic(script, topic),
        offset,
        partition=partition,
        isolation=isolation,
        max_bytes=max_bytes,
    )


def _list_offset(script: Script, client: Client, topic: str, **options: Any) -> None:
    client.list_offset(_topic(script, topic), **options)


def _plain_commit(
    script: Script, client: Client, topic: str, partition: int, offset: int, group: str
) -> None:
    name = _topic(script, topic)
    client.commit_simply(name, {partition: offset}, group_id=script.name + group)


def _delete_offsets(
    script: Script, client: Client, topic: str, partition: int, offset: int, group: str
) -> None:
    client.delete_offsets({_topic(script, topic): [partition]}, group_id=script.name + group)


def _fetch_offsets(script: Script, client: Client, group: str, stable: bool) -> None:
    asked = {_topic(script, name): list(range(count)) for name, count in TOPICS.items()}
    client.fetch_offsets(asked, group_id=script.name + group, require_stable=stable)


def _hang(script: Script, client: Client, topic: str, partition: int) -> None:
    """Abort what is open here, as a tool aborts a hanging transaction."""
    pid = client.producer_id if client.producer_id >= 0 else STRANGE_PID
    mark(client, _topic(script, topic), partition, pid=pid, epoch=max(client.producer_epoch, 0))


def _plain(script: Script, client: Client, topic: str, partition: int) -> None:
    client.ask_produce(
        {_topic(script, topic): {partition: a_batch(b"plain", at_ms=script.given_ms)}}
    )


OPS: Final[Mapping[str, Callable[..., None]]] = {
    "init": _init,
    "add": _add,
    "add_offsets": _add_offsets,
    "end": _end,
    "send": _send,
    "send_idempotent": _send,
    "commit": _commit,
    "hang": _hang,
    "read": _read,
    "list_offset": _list_offset,
    "describe": lambda script, client: client.describe_txn(
        *(script.name + suffix for suffix in sorted(set(IDS.values())))
    ),
    "producers": lambda script, client: client.describe_producers(
        {_topic(script, name): list(range(count)) for name, count in TOPICS.items()}
    ),
    "fetch_offsets": _fetch_offsets,
    "list": lambda _script, client, states: listed(client, states=states),
    "plain": _plain,
    "plain_commit": _plain_commit,
    "delete_offsets": _delete_offsets,
    "delete_group": lambda script, client, group, stable: client.delete_groups(script.name + group),
}

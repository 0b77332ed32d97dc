"""Assignors: how long does a target assignment of a large group take? Median and best, in ms.

    .venv/bin/python -m bench.assignors [--libs DIR] [--case TEXT]
        [--members N --topics N --partitions N]

With --libs, the libs directory of a Kafka 4.3.1, Kafka's own classes assign the same groups beside
ours (needs Java), and the results are compared. One core, no I/O: what the coordinator adds (the
records of the changed members) is not in it.

Cases: `homogeneous`, where all members subscribe to all topics; `buckets`, where a fifth of the
members subscribe to a fifth of the topics, as in Kafka's own benchmark of heterogeneous groups;
`overlapping`, where each member subscribes to a fifth of the topics by chance. Each is assigned
initially, and again after a member joined, after one left, and with nothing changed.
"""

import argparse
import gc
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter_ns
from typing import NamedTuple
from uuid import UUID

from msgspec.structs import replace

from coordinator.consumer.assignors.assignor import (
    Assignment,
    Assignor,
    AssignorInput,
    AssignorMember,
    AssignorTopic,
)
from coordinator.consumer.assignors.range_assignor import RangeAssignor
from coordinator.consumer.assignors.uniform import UniformAssignor
from protocol.names import MemberId, TopicId
from tests.coordinator.consumer.assignors.kafka_assignors import KafkaAssignors, without_empty

BUCKETS = 5
REPEATS = 20
JAVA_WARM_UP = 60
"""Java compiles what runs often: its first calls are many times slower."""

Subscriptions = Callable[[int], frozenset[TopicId]]


class Case(NamedTuple):
    assignor: Assignor
    name: str
    given: AssignorInput


def main() -> None:
    parser = argparse.ArgumentParser(description="Times the built-in assignors.")
    parser.add_argument("--libs", type=Path)
    parser.add_argument("--case", default="", help="only cases with this in their name")
    parser.add_argument("--members", type=int, default=1000)
    parser.add_argument("--topics", type=int, default=1000)
    parser.add_argument("--partitions", type=int, default=50_000)
    chosen = parser.parse_args()
    print(f"{'':42}{'median':>8}{'best':>8}" + f"{'Kafka':>10}{'best':>8}" * bool(chosen.libs))
    cases = [
        case
        for case in _cases(chosen.members, chosen.topics, chosen.partitions)
        if chosen.case in _title(case)
    ]
    if chosen.libs is None:
        for case in cases:
            print(f"{_title(case)}{_columns(_times(case))}")
        return
    with KafkaAssignors(chosen.libs, "-Xmx2g") as kafka:
        for case in cases:
            answer = kafka.assign(case.assignor.name, case.given, JAVA_WARM_UP + REPEATS)
            same = answer.target == without_empty(case.assignor.assign(case.given))
            print(
                f"{_title(case)}{_columns(_times(case))}  {_columns(answer.nanos[JAVA_WARM_UP:])}"
                f"  {'same result' if same else 'ANOTHER RESULT'}"
            )


def _cases(members: int, topics: int, partitions: int) -> Iterator[Case]:
    random = Random("assignors")
    topic_ids = [UUID(int=random.getrandbits(128)) for _ in range(topics)]
    described = {topic_id: AssignorTopic(partitions // topics, None) for topic_id in topic_ids}
    everything = frozenset(topic_ids)
    buckets = [frozenset(topic_ids[number::BUCKETS]) for number in range(BUCKETS)]
    drawn = [
        frozenset(random.sample(topic_ids, max(1, topics // BUCKETS))) for _ in range(members + 1)
    ]
    member_ids = [MemberId(str(UUID(int=random.getrandbits(128)))) for _ in range(members + 1)]
    kinds: dict[str, Subscriptions] = {
        "homogeneous": lambda _: everything,
        "buckets": lambda member: buckets[member % BUCKETS],
        "overlapping": lambda member: drawn[member],
    }
    for assignor in (UniformAssignor(), RangeAssignor()):
        for kind, subscription in kinds.items():
            group = {
                member_id: AssignorMember(None, None, subscription(member), {})
                for member, member_id in enumerate(member_ids)
            }
            joining = member_ids[-1]
            is_homogeneous = kind == "homogeneous"
            started = AssignorInput(_without(group, joining), described, is_homogeneous)
            assigned = _with_target(assignor, started)
            joined = replace(assigned, members={**assigned.members, joining: group[joining]})
            left = replace(assigned, members=_without(assigned.members, member_ids[members // 2]))
            yield Case(assignor, f"{kind}, initial", started)
            yield Case(assignor, f"{kind}, a member joins", joined)
            yield Case(assignor, f"{kind}, a member leaves", left)
            yield Case(assignor, f"{kind}, unchanged", assigned)


def _without(
    members: Mapping[MemberId, AssignorMember], gone: MemberId
) -> dict[MemberId, AssignorMember]:
    return {member_id: member for member_id, member in members.items() if member_id != gone}


def _with_target(assignor: Assignor, given: AssignorInput) -> AssignorInput:
    target = assignor.assign(given)
    nothing: Assignment = {}
    return replace(
        given,
        members={
            member_id: replace(member, assigned=target.get(member_id, nothing))
            for member_id, member in given.members.items()
        },
    )


def _times(case: Case) -> list[int]:
    times = []
    for _ in range(REPEATS):
        gc.collect()
        start = perf_counter_ns()
        target = case.assignor.assign(case.given)
        times.append(perf_counter_ns() - start)
        del target
    return times


def _title(case: Case) -> str:
    return f"{case.assignor.name + ', ' + case.name:42}"


def _columns(nanos: list[int]) -> str:
    return f"{median(nanos) / 1e6:8.1f}{min(nanos) / 1e6:8.1f}"


if __name__ == "__main__":
    main()

"""Kafka's own assignors, asked through Java: to record their results and to compare the speed."""

import json
import subprocess
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from coordinator.consumer.assignors.assignor import Assignment, AssignorInput
from protocol.names import MemberId

_ASSIGNER = Path(__file__).parent / "golden" / "Assigner.java"


class Answer(NamedTuple):
    target: dict[MemberId, Assignment] | None
    """Without members and topics that have nothing. None if the assignor refuses."""
    nanos: list[int]


class KafkaAssignors:
    """A Java process; `libs` is the libs directory of a Kafka 4.3.1."""

    def __init__(self, libs: Path, *options: str) -> None:
        self._process = subprocess.Popen(
            ["java", *options, "-cp", f"{libs}/*", _ASSIGNER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()

    def assign(self, assignor: str, given: AssignorInput, times: int = 1) -> Answer:
        assert self._process.stdin
        assert self._process.stdout
        topic_ids = sorted(
            {topic_id for member in given.members.values() for topic_id in member.assigned}
            | {topic_id for m in given.members.values() for topic_id in m.subscribed_topic_ids}
            | given.topics.keys()
        )
        places = {topic_id: place for place, topic_id in enumerate(topic_ids)}
        subscriptions = list({m.subscribed_topic_ids: None for m in given.members.values()})
        numbers = {subscription: number for number, subscription in enumerate(subscriptions)}
        question = {
            "assignor": assignor,
            "homogeneous": given.is_homogeneous,
            "times": times,
            "topics": [
                [
                    urlsafe_b64encode(topic_id.bytes).decode().rstrip("="),
                    None if topic is None else topic.partitions,
                    [] if topic is None else [sorted(of) for of in topic.racks or ()],
                ]
                for topic_id in topic_ids
                for topic in (given.topics.get(topic_id),)
            ],
            "subscriptions": [sorted(places[id_] for id_ in ids) for ids in subscriptions],
            "members": [
                [
                    member_id,
                    member.rack_id,
                    member.instance_id,
                    numbers[member.subscribed_topic_ids],
                    sorted([places[id_], sorted(held)] for id_, held in member.assigned.items()),
                ]
                for member_id, member in sorted(given.members.items())
            ],
        }
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        if "refused" in answer:
            return Answer(None, [])
        target = {
            MemberId(member_id): {
                topic_ids[int(place)]: frozenset(held) for place, held in topics.items() if held
            }
            for member_id, topics in answer["members"].items()
        }
        return Answer(without_empty(target), answer["nanos"])


def without_empty(target: Mapping[MemberId, Assignment]) -> dict[MemberId, Assignment]:
    return {member_id: assigned for member_id, assigned in target.items() if assigned}

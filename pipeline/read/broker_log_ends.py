"""Broker log ends: asks a broker for the ends and the starts of its logs.

Kafka's own Admin does it, with the options of the source (security, timeouts): topics are described
first, which says at once which ones are gone, forbidden or without a leader; then their leaders are
asked, all at the same time (ListOffsets, latest and earliest). Each partition has its own answer:
one that fails leaves the others as they are.
"""

from collections.abc import Collection, Mapping
from typing import Final

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError

from pipeline.progress import epoch_ms
from pipeline.read.brokers import Broker, NoBroker
from pipeline.read.log_ends import BROKER, LogEndReading, LogPlace, MeasuredLog

_WHY: Final[Mapping[str, str]] = {
    "UnknownTopicOrPartitionException": "topic deleted",
    "UnknownTopicIdException": "topic deleted",
    "TopicAuthorizationException": "no right to describe the topic",
    "TimeoutException": "no answer in time",
    "LeaderNotAvailableException": "no leader",
    "NotLeaderOrFollowerException": "no leader",
}
"""By the simple name of Kafka's exception."""


def measure_broker(broker: Broker) -> LogEndReading:
    """Of all partitions that the broker lists. Never raises NoBroker: then all is unknown."""
    try:
        with broker.admin() as admin:
            measured = _measured(broker.java, admin)
    except NoBroker as fault:
        said = str(fault)
        return LogEndReading(BROKER, epoch_ms(), {}, lambda topics: dict.fromkeys(topics, said))
    # Afterwards: all commits that were read are older, and so is each of the answers.
    now_ms = epoch_ms()
    rows = {
        place: MeasuredLog(*place, now_ms, start, end, BROKER, problem)
        for place, (start, end, problem) in measured.items()
    }
    return LogEndReading(BROKER, now_ms, rows, lambda topics: why_not_listed(broker, topics))


def why_not_listed(broker: Broker, topics: Collection[str]) -> Mapping[str, str]:
    """A broker lists no topic that was deleted, or that we may not see."""
    try:
        with broker.admin() as admin:
            _, problems = _described(broker.java, admin, topics)
    except NoBroker as fault:
        return dict.fromkeys(topics, str(fault))
    # Listed by now: it was created meanwhile.
    return {topic: problems.get(topic, "created after it was measured") for topic in topics}


_Offsets = tuple[int | None, int | None, str | None]
"""Start, end, and why one of them is None."""


def _measured(java: JavaObject, admin: JavaObject) -> dict[LogPlace, _Offsets]:
    options = java.org.apache.kafka.clients.admin.ListTopicsOptions().listInternal(True)  # noqa: FBT003
    leaders, _ = _described(java, admin, list(admin.listTopics(options).names().get()))
    partition = java.org.apache.kafka.common.TopicPartition
    specs = java.org.apache.kafka.clients.admin.OffsetSpec
    found: dict[LogPlace, _Offsets] = {}
    asked: dict[LogPlace, JavaObject] = {}
    latest, earliest = java.java.util.HashMap(), java.java.util.HashMap()
    for place, has_leader in leaders.items():
        if not has_leader:
            found[place] = None, None, "no leader"
            continue
        asked[place] = partition(*place)
        latest.put(asked[place], specs.latest())
        earliest.put(asked[place], specs.earliest())
    if asked:
        ends, starts = admin.listOffsets(latest), admin.listOffsets(earliest)
        for place, key in asked.items():
            end, problem = _answer(ends.partitionResult(key))
            start, second = _answer(starts.partitionResult(key))
            found[place] = start, end, problem or second
    return found


def _answer(future: JavaObject) -> tuple[int | None, str | None]:
    try:
        offset = int(future.get().offset())
    except Py4JJavaError as fault:
        return None, reason_of(fault)
    return (offset, None) if offset >= 0 else (None, "no such offset")


def _described(
    java: JavaObject, admin: JavaObject, topics: Collection[str]
) -> tuple[dict[LogPlace, bool], dict[str, str]]:
    """(whether partitions have a leader, why topics cannot be described)"""
    if not topics:
        return {}, {}
    names = java.java.util.ArrayList()
    for topic in topics:
        names.add(topic)
    leaders: dict[LogPlace, bool] = {}
    problems: dict[str, str] = {}
    answers = admin.describeTopics(names).topicNameValues()
    for topic in topics:
        try:
            partitions = answers.get(topic).get().partitions()
        except Py4JJavaError as fault:
            problems[topic] = reason_of(fault)
            continue
        for partition in partitions:
            leader = partition.leader()
            leaders[topic, int(partition.partition())] = leader is not None and not leader.isEmpty()
    return leaders, problems


def reason_of(fault: Py4JJavaError) -> str:
    """In a few words, or in Kafka's."""
    thrown = fault.java_exception
    cause = thrown.getCause() or thrown
    return _WHY.get(cause.getClass().getSimpleName()) or str(cause.toString())

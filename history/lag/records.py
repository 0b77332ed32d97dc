"""Lag samples in `__group_lag`: key and value of a record, versioned, in msgpack.

A record has the samples of one group and one topic: the commits that a round of the sampler found
new, or, once in a while, all commits of the windows (`whole`), so that a start reads the tail only.
Any Kafka client can read them. The key is the group id alone, as in `__group_history`, so that a
reader can select groups without decoding values. Readers skip unknown versions.

    key    the group id, UTF-8
    value  {v: 1, topic: name, at: ms, whole: bool, partitions: [[n, [[at_ms, offset, lag], ...]]],
            ends: [[n, log end offset], ...]}

`ends` has the partitions whose new commit is beyond the end of the log: their lag is 0, and so does
not say where the log ends.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

import msgpack

from history.lag.window import SampledCommit

SAMPLE_VERSION: Final = 1

COMMIT_NUMBER_MIN: Final = -(1 << 63)
COMMIT_NUMBER_MAX: Final = (1 << 63) - 1
"""The range of a number in a window."""


class UnreadableSample(Exception):
    """These bytes are not a sample of a known version."""


class Sample(NamedTuple):
    group_id: str
    topic: str
    at_ms: int
    whole: bool
    partitions: Mapping[int, Sequence[SampledCommit]]
    topic_id: str = ""  # older versions do not write it
    ends: Mapping[int, int] = MappingProxyType({})  # of logs that end before the commit

    @property
    def ends_the_group(self) -> bool:
        """The group was deleted: earlier samples do not count for a new group of this name."""
        return self.whole and not self.topic


def of_deleted_group(group_id: str, at_ms: int) -> Sample:
    return Sample(group_id, "", at_ms, whole=True, partitions={})


def encode_sample(sample: Sample) -> tuple[bytes, bytes]:
    """Key and value."""
    partitions = [
        [partition, [list(commit) for commit in commits]]
        for partition, commits in sample.partitions.items()
    ]
    value = msgpack.packb(
        {
            "v": SAMPLE_VERSION,
            "topic": sample.topic,
            "at": sample.at_ms,
            "whole": sample.whole,
            "partitions": partitions,
            **({"topic_id": sample.topic_id} if sample.topic_id else {}),
            **({"ends": [list(end) for end in sample.ends.items()]} if sample.ends else {}),
        }
    )
    assert isinstance(value, bytes)
    return sample.group_id.encode(), value


def decode_sample(key: bytes | None, value: bytes | None) -> Sample:
    """Raises UnreadableSample."""
    if key is None or value is None:
        raise UnreadableSample("a sample has a key and a value")
    try:
        group_id = key.decode()
        value_map: object = msgpack.unpackb(value)
    except (ValueError, msgpack.UnpackException) as fault:
        raise UnreadableSample(str(fault)) from None
    match value_map:
        case {
            "v": 1,
            "topic": str(topic),
            "at": int(at_ms),
            "whole": bool(whole),
            "partitions": list(listed),
        }:
            partitions = dict(_partition(entry) for entry in listed)
            said = value_map if isinstance(value_map, dict) else {}
            topic_id = str(said.get("topic_id", ""))
            ends = _ends(said.get("ends", []))
            return Sample(group_id, topic, at_ms, whole, partitions, topic_id, ends)
    raise UnreadableSample(f"not a sample of version {SAMPLE_VERSION}")


def _partition(listed: object) -> tuple[int, list[SampledCommit]]:
    match listed:
        case [int(partition), list(commits)]:
            return partition, [_commit(commit) for commit in commits]
    raise UnreadableSample("not a partition's commits")


def _ends(listed: object) -> dict[int, int]:
    match listed:
        case list(ends):
            return dict(_end(entry) for entry in ends)
    raise UnreadableSample("not the ends of logs")


def _end(listed: object) -> tuple[int, int]:
    match listed:
        case [int(partition), int(end)] if 0 <= end <= COMMIT_NUMBER_MAX:
            return partition, end
    raise UnreadableSample("not the end of a log")


def _commit(listed: object) -> SampledCommit:
    match listed:
        case [int(at_ms), int(offset), int(lag)]:
            if all(
                COMMIT_NUMBER_MIN <= number <= COMMIT_NUMBER_MAX for number in (at_ms, offset, lag)
            ):
                return SampledCommit(at_ms, offset, lag)
    raise UnreadableSample("not a commit")

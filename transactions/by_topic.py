"""Partitions by topic: the order in which records and responses list them."""

from collections.abc import Collection, Iterator
from itertools import groupby
from operator import itemgetter

from protocol.names import TopicName
from storage.api import TopicPartition


def by_topic(partitions: Collection[TopicPartition]) -> Iterator[tuple[TopicName, list[int]]]:
    for topic, group in groupby(sorted(partitions), itemgetter(0)):
        yield TopicName(topic), [partition for _, partition in group]

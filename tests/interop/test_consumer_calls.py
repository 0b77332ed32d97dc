"""Consumer calls: unmodified consumers get what each of their calls promises.

One consumer of each library at a time, told step by step what to do: assign, seek, pause, resume,
look up offsets by time, and every way to commit. Where another consumer has to agree, it is of
librdkafka, so that no library is only asked about itself.
"""

import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.broker.daemon import Daemon
from tests.interop.conftest import FIRST_TIMESTAMP_MS, GivenTopic, produce
from tests.interop.group import EACH_LIBRARY, TIMEOUT_S, Failed, Obedient, consumers
from tests.interop.members.client import Options

pytestmark = EACH_LIBRARY


def committed(bootstrap: str, topic: str, group: str, partition: int = 0) -> int | None:
    """What librdkafka is told, asked by a consumer that is no member."""
    from confluent_kafka import OFFSET_INVALID, Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    (found,) = consumer.committed([TopicPartition(topic, partition)], timeout=60)
    consumer.close()
    return None if found.offset == OFFSET_INVALID else found.offset


def test_assign_reads_without_a_group(
    shared_daemon: Daemon, given_topic: GivenTopic, library: str
) -> None:
    topic = given_topic(2, 40)
    with consumers() as (_, start):
        consumer = start("c", library, Options(shared_daemon.bootstrap, topic))

        consumer("assign", [1])

        assert consumer.read_messages(20) == {1: list(range(20))}
        consumer.stop()


def test_assign_commits_and_begins_there_again_without_being_a_member(
    shared_daemon: Daemon, given_topic: GivenTopic, library: str
) -> None:
    topic = given_topic(2, 40)
    options = Options(shared_daemon.bootstrap, topic, group=f"assigned-{topic}")
    with consumers() as (_, start):
        first = start("first", library, options)
        first("assign", [0])
        assert first("committed", 0) is None
        first.read_messages(20)
        first("commit", {0: 7}, "so far")
        assert first("committed", 0) in ([7, "so far"], [7, None])  # aiokafka keeps it to itself
        first.stop()

        second = start("second", library, options)
        second("assign", [0, 1])
        read = second.read_messages(33)
        assert read == {0: list(range(7, 20)), 1: list(range(20))}
        second.stop()
    assert committed(shared_daemon.bootstrap, topic, f"assigned-{topic}") == 7


def test_seek_goes_back_and_forth(
    shared_daemon: Daemon, given_topic: GivenTopic, library: str
) -> None:
    topic = given_topic(1, 30)
    with consumers() as (_, start):
        consumer = start("c", library, Options(shared_daemon.bootstrap, topic))
        consumer("assign", [0])
        assert consumer.read_messages(30) == {0: list(range(30))}

        consumer("seek", 0, 25)
        assert consumer.read_messages(5) == {0: list(range(25, 30))}
        consumer("seek", 0, 0)
        assert consumer.read_messages(30) == {0: list(range(30))}
        consumer.stop()


def test_a_paused_partition_is_not_read_and_loses_nothing(
    shared_daemon: Daemon, given_topic: GivenTopic, library: str
) -> None:
    topic = given_topic(2, 600)
    with consumers() as (_, start):
        consumer = start("c", library, Options(shared_daemon.bootstrap, topic))
        consumer("assign", [0, 1])
        consumer("pause", [0])

        # It may have been on its way already, but not all of it; the other one is read to its end.
        before = consumer.read(lambda read: len(read.get(1, ())) == 300)
        assert len(before.get(0, ())) < 300

        consumer("resume", [0])
        rest = 300 - len(before.get(0, ()))
        after = consumer.read_messages(rest)
        assert before.get(0, []) + after[0] == list(range(300))
        assert 1 not in after
        consumer.stop()


def test_offsets_are_found_by_time(
    shared_daemon: Daemon, given_topic: GivenTopic, library: str
) -> None:
    topic = given_topic(2, 20)  # partition 0 has the even seconds
    with consumers() as (_, start):
        consumer = start("c", library, Options(shared_daemon.bootstrap, topic))
        consumer("assign", [0])

        def found(seconds: float) -> object:
            return consumer("offset_for_time", 0, FIRST_TIMESTAMP_MS + int(seconds * 1_000))

        assert found(-1_000) == 0
        assert found(6) == 3
        assert found(6.5) == 4
        assert found(18) == 9
        assert found(18.001) is None
        consumer.stop()


def given_member(start, library: str, options: Options) -> Obedient:
    """A member of a group that has its partitions and has read nothing yet."""
    member: Obedient = start("m", library, options)
    member("subscribe")
    return member


def read_on(member: Obedient, options: Options, newest: int, fact: Callable[[], bool]) -> int:
    """It reads new messages, one by one, until this holds; the number of the next one."""
    deadline = time.monotonic() + TIMEOUT_S
    while not fact():
        assert time.monotonic() < deadline, f"in vain {newest} messages were read"
        produce(options.bootstrap, options.topic, 1, range(newest, newest + 1))
        newest += 1
        member.poll()
    return newest


def test_a_member_commits_and_waits_for_the_answer(
    shared_daemon: Daemon, given_topic: GivenTopic, library: str
) -> None:
    topic = given_topic(1, 30)
    options = Options(shared_daemon.bootstrap, topic, group=f"sync-{topic}")
    with consumers() as (_, start):
        member = given_member(start, library, options)
        member.read_messages(30)

        # In batches of its own making, then all that was read.
        for offset in (10, 20):
            member("commit", {0: offset}, "")
            assert committed(shared_daemon.bootstrap, topic, options.group) == offset
        member("commit", None, "")
        assert committed(shared_daemon.bootstrap, topic, options.group) == 30
        member.stop()


def test_a_member_commits_and_is_called_back(
    shared_daemon: Daemon, given_topic: GivenTopic, library: str
) -> None:
    topic = given_topic(1, 30)
    options = Options(shared_daemon.bootstrap, topic, group=f"async-{topic}")
    with consumers() as (witness, start):
        member = given_member(start, library, options)
        member.read_messages(30)

        for offset in (10, 20, 25):  # sent without waiting, answered in order
            member("commit_async", {0: offset})
        read_on(member, options, 30, lambda: len(witness.said("m", "async commit")) == 3)

        assert [fact["error"] for fact in witness.said("m", "async commit")] == [None] * 3
        assert committed(shared_daemon.bootstrap, topic, options.group) == 25
        member.stop()


def test_a_member_commits_by_itself_as_it_reads_and_when_it_closes(
    shared_daemon: Daemon, given_topic: GivenTopic, library: str
) -> None:
    topic = given_topic(1, 30)
    options = Options(shared_daemon.bootstrap, topic, group=f"auto-{topic}", auto_commit_ms=100)
    with consumers() as (_, start):
        member = given_member(start, library, options)
        member.read_messages(30)
        newest = read_on(
            member,
            options,
            30,
            lambda: (committed(shared_daemon.bootstrap, topic, options.group) or 0) >= 30,
        )
        member.stop()

        # The next one would do so an hour later; it says how far it came when it leaves.
        lazy = Options(shared_daemon.bootstrap, topic, options.group, auto_commit_ms=3_600_000)
        second = start("second", library, lazy)
        second("subscribe")
        produce(shared_daemon.bootstrap, topic, 1, range(newest, newest + 10))
        second.read(lambda read: newest + 9 in read.get(0, ()))
        second("commit", {0: 3}, "")
        assert committed(shared_daemon.bootstrap, topic, options.group) == 3
        second.stop()
    assert committed(shared_daemon.bootstrap, topic, options.group) == newest + 10


def test_a_member_that_was_replaced_while_it_stalled_cannot_commit(
    shared_daemon: Daemon, given_topic: GivenTopic, library: str
) -> None:
    topic = given_topic(1, 30)
    options = Options(
        shared_daemon.bootstrap, topic, group=f"zombie-{topic}", session_timeout_ms=3_000
    )
    with consumers() as (_, start):
        # Given a member that reads, is stopped by its machine, and is given up.
        stalled = given_member(start, library, options)
        stalled.read_messages(30)
        stalled.stall()
        heir = start("heir", "confluent", replace(options, session_timeout_ms=30_000))
        heir("subscribe")
        heir.read_messages(30)
        heir("commit", {0: 30}, "")

        # When it goes on and commits what it had read, then it is refused, and nothing is undone.
        stalled.go_on()
        with pytest.raises(Failed):
            stalled("commit", {0: 3}, "")
        assert committed(shared_daemon.bootstrap, topic, options.group) == 30
        heir.stop()

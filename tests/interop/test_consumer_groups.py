"""Consumer groups (KIP-848): unmodified consumers that come, leave, die and restart.

Members of `group.protocol=consumer`, as processes: they read, commit after each batch, and say what
they were given and had to give back. What must hold is read from two sides: what the members say,
and what `__consumer_offsets` holds.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import pytest

from tests.broker.daemon import Daemon
from tests.conftest import StartDaemon
from tests.interop.consumer_groups import (
    EACH_CONSUMER,
    LIBRARIES,
    LONG_ONLY,
    MISSED_AFTER_MS,
    SETTINGS,
    Topic,
    check_commits,
    check_one_owner,
    given_members,
    given_topic,
    options_of,
    set_session_timeout,
    stop_all,
    times_read,
    wait_for_messages,
    wait_for_share,
)
from tests.interop.group import FRANZ_GO, Witness, members
from tests.interop.offsets_log import check_stored_owners, stored_epochs


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """For tests that do not touch the daemon itself: each has its own topic and group."""
    daemon = Daemon(tmp_path_factory.mktemp("fleet"), SETTINGS)
    daemon.start()
    yield daemon
    daemon.close()


def check_stored(witness: Witness, daemon: Daemon, topic: Topic) -> None:
    """In the offsets topic: epochs rise, no partition has two owners, no commit goes back."""
    group = f"group-of-{topic.name}"
    epochs = stored_epochs(daemon.data_dir, group)
    assert epochs
    assert all(before < after for before, after in pairwise(epochs)), epochs
    assert check_stored_owners(daemon.data_dir, group)
    check_commits(witness, daemon, topic)


def times_moved(witness: Witness) -> int:
    """How often partitions were given to a member or taken from one."""
    return sum(bool(fact.get("partitions")) for _, fact in witness.events)


@EACH_CONSUMER
def test_members_come_and_leave_and_each_message_is_read_once(fleet: Daemon, library: str) -> None:
    topic = given_topic(fleet, 6, 600)
    options = options_of(fleet, topic)
    with members() as (witness, start):
        running = given_members(witness, start, library, topic, options)
        for name in ("m2", "m3"):
            topic.write(300)
            running.append(start(name, library, options))
            wait_for_share(witness, running, topic)
        while len(running) > 1:
            topic.write(300)
            running.pop().stop()
            wait_for_share(witness, running, topic)
        wait_for_messages(witness, topic)
        stop_all(running)

        assert times_read(witness) == topic.messages
        check_one_owner(witness)
    check_stored(witness, fleet, topic)


@LONG_ONLY
@EACH_CONSUMER
def test_three_members_are_restarted_one_after_the_other(fleet: Daemon, library: str) -> None:
    topic = given_topic(fleet, 6, 300)
    options = options_of(fleet, topic)
    with members() as (witness, start):
        running = given_members(witness, start, library, topic, *[options] * 3)

        for n in range(3):
            running.pop(0).stop()
            topic.write(300)
            running.append(start(f"new-{n}", library, options))
            wait_for_share(witness, running, topic)

        wait_for_messages(witness, topic)
        stop_all(running)
        assert times_read(witness) == topic.messages
        check_one_owner(witness)
    check_stored(witness, fleet, topic)


@LONG_ONLY  # new topics are looked for every 10 s
@EACH_CONSUMER
def test_a_regular_expression_finds_topics_also_those_of_later(fleet: Daemon, library: str) -> None:
    first = given_topic(fleet, 2, 20)
    pattern = f"^{first.name}(-later)?$"
    options = replace(options_of(fleet, first), pattern=pattern)
    with members() as (witness, start):
        pair = [start("m1", library, options)]
        wait_for_messages(witness, first)
        pair.append(start("m2", library, options))
        witness.wait_for("two members", lambda: bool(witness.owned("m2")))

        later = Topic(fleet, f"{first.name}-later", 2)
        other = Topic(fleet, f"{first.name}-other", 2)
        other.write(20)
        later.write(20)
        first.write(20)

        wait_for_messages(witness, first, later)
        stop_all(pair)
        topics = {str(partition).rpartition("-")[0] for partition in witness.read}
        assert topics == {first.name, later.name}
        check_one_owner(witness)


# franz-go 1.22 leaves out its instance id when it leaves: Kafka and Rollcall refuse that, and its
# next start waits for the end of the session.
@pytest.mark.parametrize("library", [library for library in LIBRARIES if library != FRANZ_GO])
def test_a_static_member_that_restarts_in_time_has_what_it_had(fleet: Daemon, library: str) -> None:
    topic = given_topic(fleet, 4, 40)
    options = options_of(fleet, topic)
    of_stays, of_goes = (replace(options, instance_id=name) for name in ("a", "b"))
    with members() as (witness, start):
        stays, goes = given_members(witness, start, library, topic, of_stays, of_goes)
        kept, owned = witness.owned("m1"), witness.owned("m2")
        assignments = len(witness.said("m1", "assigned"))

        goes.stop()
        topic.write(40)
        again = start("again", library, of_goes)
        wait_for_messages(witness, topic)

        assert witness.owned("again") == owned
        assert witness.owned("m1") == kept
        assert len(witness.said("m1", "assigned")) == assignments, "the other one was disturbed"
        stop_all([stays, again])
        check_one_owner(witness)
    check_stored(witness, fleet, topic)


@LONG_ONLY
@EACH_CONSUMER
def test_a_static_member_that_restarts_too_late_is_replaced_until_it_comes(
    fleet: Daemon, library: str
) -> None:
    topic = given_topic(fleet, 4, 40)
    options = options_of(fleet, topic)
    set_session_timeout(fleet, f"group-of-{topic.name}", MISSED_AFTER_MS)
    of_stays, of_goes = (replace(options, instance_id=name) for name in ("a", "b"))
    with members() as (witness, start):
        stays, goes = given_members(witness, start, library, topic, of_stays, of_goes)

        goes.stop()
        wait_for_share(witness, [stays], topic)
        topic.write(40)
        wait_for_messages(witness, topic)
        again = start("again", library, of_goes)
        wait_for_share(witness, [stays, again], topic)

        stop_all([stays, again])
        check_one_owner(witness)
    check_stored(witness, fleet, topic)


@EACH_CONSUMER
def test_a_member_that_is_killed_is_replaced(fleet: Daemon, library: str) -> None:
    topic = given_topic(fleet, 4, 40)
    options = options_of(fleet, topic)
    set_session_timeout(fleet, f"group-of-{topic.name}", MISSED_AFTER_MS)
    with members() as (witness, start):
        stays, dies = given_members(witness, start, library, topic, options, options)

        dies.kill()
        topic.write(400)
        wait_for_share(witness, [stays], topic)
        wait_for_messages(witness, topic)
        again = start("again", library, options)
        wait_for_share(witness, [stays, again], topic)

        stop_all([stays, again])
        check_one_owner(witness)
    check_stored(witness, fleet, topic)


@EACH_CONSUMER
def test_members_go_on_after_kill_9_of_the_daemon(start_daemon: StartDaemon, library: str) -> None:
    daemon = start_daemon(SETTINGS)
    topic = given_topic(daemon, 6, 600)
    options = options_of(daemon, topic)
    with members() as (witness, start):
        running = given_members(witness, start, library, topic, *[options] * 3)
        moved = times_moved(witness)
        topic.write(600)

        daemon.kill()
        daemon.start()
        topic.write(600)

        wait_for_messages(witness, topic)
        for member in running:
            member.check_alive()
        assert times_moved(witness) == moved, "partitions moved, as if members had joined anew"
        check_commits(witness, daemon, topic)
        newcomer = start("newcomer", library, options)
        wait_for_share(witness, [*running, newcomer], topic)
        stop_all([*running, newcomer])
        check_one_owner(witness)
    check_stored(witness, daemon, topic)


@LONG_ONLY
@EACH_CONSUMER
def test_a_topic_grows_while_it_is_read(fleet: Daemon, library: str) -> None:
    topic = given_topic(fleet, 2, 40)
    options = options_of(fleet, topic)
    with members() as (witness, start):
        pair = given_members(witness, start, library, topic, options, options)

        topic.grow(6)
        topic.write(120)

        wait_for_share(witness, pair, topic)
        wait_for_messages(witness, topic)
        stop_all(pair)
        assert times_read(witness) == topic.messages
        check_one_owner(witness)
    check_stored(witness, fleet, topic)


@LONG_ONLY
def test_members_of_all_libraries_share_a_group(start_daemon: StartDaemon) -> None:
    daemon = start_daemon(SETTINGS)
    topic = given_topic(daemon, 6, 600)
    options = options_of(daemon, topic)
    set_session_timeout(daemon, f"group-of-{topic.name}", MISSED_AFTER_MS)
    with members() as (witness, start):
        running = [start("first", "confluent", options)]
        wait_for_messages(witness, topic)
        for library in ("java", FRANZ_GO):
            running.append(start(library, library, options))
            topic.write(300)
            wait_for_share(witness, running, topic)

        # When each in turn is killed and replaced by one of another library.
        for library in ("java", FRANZ_GO, "confluent"):
            running.pop(0).kill()
            topic.write(300)
            wait_for_share(witness, running, topic)
            running.append(start(f"second-{library}", library, options))
            wait_for_share(witness, running, topic)

        wait_for_messages(witness, topic)
        stop_all(running)
        check_one_owner(witness)
    check_stored(witness, daemon, topic)

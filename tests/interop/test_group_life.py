"""Life of a group: unmodified consumers that come, leave, stall, die and restart.

Each story is told with the consumers of each library. They run as processes, read, commit after
each batch, and say what they were given and had to give back.
"""

from dataclasses import replace

import pytest

from tests.broker.daemon import Daemon
from tests.interop.conftest import GivenTopic, produce
from tests.interop.group import EACH_LIBRARY, Member, Start, Witness, members
from tests.interop.members.client import Options
from tests.interop.members.store import Store
from tests.interop.offsets_log import stored_commits, stored_generations

SESSION_MS = 4_000  # of a member that is to be missed; the others have the time of a busy machine


def revoked(witness: Witness, member: Member) -> list[list[int]]:
    """What it had to give back, each time; nothing is often said by saying nothing."""
    return [
        sorted(fact["partitions"])
        for fact in witness.said(member.name, "revoked")
        if fact["partitions"]
    ]


def given_pair(
    witness: Witness, start: Start, library: str, options: Options, session_ms: int | None = None
) -> list[Member]:
    """One member that had all four partitions, and one that came to share them.

    The second one's session may be another.
    """
    first = start("first", library, options)
    witness.wait_for("one with all", lambda: witness.share([first], 4))
    of_second = session_ms or options.session_timeout_ms
    second = start("second", library, replace(options, session_timeout_ms=of_second))
    witness.wait_for("two that share", lambda: witness.share([first, second], 4))
    return [first, second]


@EACH_LIBRARY
def test_eager_members_give_everything_back_when_one_comes_or_leaves(
    shared_daemon: Daemon, given_topic: GivenTopic, library: str
) -> None:
    topic = given_topic(4, 40)
    options = Options(shared_daemon.bootstrap, topic, group=f"eager-{topic}")
    with members() as (witness, start):
        first, second = given_pair(witness, start, library, options)
        assert revoked(witness, first) == [[0, 1, 2, 3]]
        kept = witness.owned("first")

        second.stop()

        witness.wait_for("one with all again", lambda: witness.share([first], 4))
        assert revoked(witness, first)[1] == kept
        witness.wait_for("all messages", lambda: witness.messages_read == 40)
        first.stop()


@pytest.mark.parametrize("library", ["confluent", "kafka_python", "java"])  # aiokafka has it not
def test_cooperative_members_give_back_only_what_moves(
    shared_daemon: Daemon, given_topic: GivenTopic, library: str
) -> None:
    topic = given_topic(4, 40)
    options = Options(
        shared_daemon.bootstrap, topic, group=f"coop-{topic}", assignor="cooperative-sticky"
    )
    with members() as (witness, start):
        first, second = given_pair(witness, start, library, options)
        assert revoked(witness, first) == [witness.owned("second")]

        second.stop()

        witness.wait_for("one with all again", lambda: witness.share([first], 4))
        assert len(revoked(witness, first)) == 1, "it gave back what it was to keep"
        witness.wait_for("all messages", lambda: witness.messages_read == 40)
        first.stop()


@EACH_LIBRARY
def test_a_static_member_restarts_without_a_rebalance(
    shared_daemon: Daemon, given_topic: GivenTopic, library: str
) -> None:
    topic = given_topic(4, 40)

    def instance(name: str) -> Options:
        return Options(
            *(shared_daemon.bootstrap, topic, f"static-{topic}"),
            session_timeout_ms=90_000,  # a restart may take its time
            instance_id=name,
        )

    with members() as (witness, start):
        stays = start("stays", library, instance("a"))
        witness.wait_for("one with all", lambda: witness.share([stays], 4))
        goes = start("goes", library, instance("b"))
        witness.wait_for("two that share", lambda: witness.share([stays, goes], 4))
        owned = witness.owned("goes")
        said = len(witness.said("stays", "assigned"))
        witness.wait_for("all messages", lambda: witness.messages_read == 40)

        # When one of them is killed and comes back under the same name.
        goes.kill()
        produce(shared_daemon.bootstrap, topic, 4, range(40, 80))
        again = start("again", library, instance("b"))
        witness.wait_for("what is new", lambda: witness.messages_read == 80)

        # Then it has what it had, and the other one was told nothing.
        assert witness.owned("again") == owned
        assert len(witness.said("stays", "assigned")) == said
        again.stop()
        stays.stop()


@EACH_LIBRARY
def test_a_member_that_stalls_is_replaced_and_comes_back_and_a_dead_one_is_not_missed(
    shared_daemon: Daemon, given_topic: GivenTopic, library: str
) -> None:
    topic = given_topic(4, 40)
    options = Options(shared_daemon.bootstrap, topic, group=f"stall-{topic}")
    with members() as (witness, start):
        first, second = given_pair(witness, start, library, options, SESSION_MS)

        # When one is stopped by its machine for longer than its session.
        second.stall()
        witness.wait_for("one with all", lambda: witness.share([first], 4))
        produce(shared_daemon.bootstrap, topic, 4, range(40, 80))
        witness.wait_for("what is new", lambda: witness.messages_read == 80)

        # Then it finds back by itself once it goes on.
        second.go_on()
        witness.wait_for(
            "the way back",
            lambda: (
                len(witness.said("second", "assigned")) > 1 and witness.share([first, second], 4)
            ),
        )

        # And when it dies, the other one has everything, and knows where to go on.
        second.kill()
        witness.wait_for("one with all once more", lambda: witness.share([first], 4))
        produce(shared_daemon.bootstrap, topic, 4, range(80, 120))
        witness.wait_for("the rest", lambda: witness.messages_read == 120)
        first.stop()


@EACH_LIBRARY
def test_five_members_are_restarted_one_after_the_other(
    shared_daemon: Daemon, given_topic: GivenTopic, library: str
) -> None:
    topic = given_topic(10, 100)
    group = f"rolling-{topic}"
    options = Options(shared_daemon.bootstrap, topic, group, session_timeout_ms=6_000)
    with members() as (witness, start):
        running = [start(f"old-{n}", library, options) for n in range(5)]
        witness.wait_for("five that share", lambda: witness.share(running, 10))

        # When each is stopped, and another one started in its place, while messages come in.
        for n in range(5):
            running.pop(0).stop()
            running.append(start(f"new-{n}", library, options))
            messages = range(100 * (n + 1), 100 * (n + 2))
            produce(shared_daemon.bootstrap, topic, 10, messages)

        # Then the five new ones share the topic, and no message was passed over.
        witness.wait_for("five that share again", lambda: witness.share(running, 10))
        witness.wait_for("all messages", lambda: witness.messages_read == 600)
        for member in running:
            member.check_alive()

    # And the stored records have no generation with two owners, and no commit that went back.
    for generation in stored_generations(shared_daemon.data_dir, group):
        given = [p for member in generation.members for p in member.assigned.get(topic, ())]
        assert len(given) == len(set(given)), f"two owners in generation {generation.number}"
    commits = stored_commits(shared_daemon.data_dir, group)
    assert {partition for _, partition in commits} == set(range(10))
    for offsets in commits.values():
        assert offsets == sorted(offsets)


@EACH_LIBRARY
def test_offsets_kept_outside_with_a_rebalance_listener_see_each_message_once(
    shared_daemon: Daemon, given_topic: GivenTopic, library: str, tmp_path
) -> None:
    topic = given_topic(4, 400)
    path = str(tmp_path / "store.db")
    options = Options(shared_daemon.bootstrap, topic, f"outside-{topic}", store=path)
    with members() as (witness, start):
        first = start("first", library, options)
        witness.wait_for("some messages", lambda: witness.messages_read > 0)

        # When another one comes, dies without a word while both read, and its share goes back.
        second = start("second", library, replace(options, session_timeout_ms=SESSION_MS))
        witness.wait_for("two that share", lambda: witness.share([first, second], 4))
        produce(shared_daemon.bootstrap, topic, 4, range(400, 800))
        witness.wait_for("a message", lambda: bool(witness.said("second", "read")))
        second.kill()
        witness.wait_for("one with all", lambda: witness.share([first], 4))
        produce(shared_daemon.bootstrap, topic, 4, range(800, 1_200))

        # Then each message is in the store, once: a second time would have been an error.
        store = Store(path)
        witness.wait_for("all messages", lambda: len(store.messages()) == 1_200)
        first.check_alive()
        first.stop()
    assert stored_commits(shared_daemon.data_dir, f"outside-{topic}") == {}

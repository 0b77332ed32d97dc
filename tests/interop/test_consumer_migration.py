"""Consumer group migration: rolling upgrades and downgrades of unmodified consumers.

Members of the classic protocol are replaced one by one by members of the consumer protocol, and the
other way round, while messages are written.
"""

from dataclasses import replace

import pytest

from tests.broker.daemon import Daemon
from tests.conftest import StartDaemon
from tests.interop.consumer_groups import (
    LIBRARIES,
    LONG_ONLY,
    SETTINGS,
    check_commits,
    check_one_owner,
    given_members,
    given_topic,
    options_of,
    stop_all,
    wait_for_messages,
    wait_for_share,
)
from tests.interop.group import members
from tests.interop.offsets_log import (
    check_stored_owners,
    stored_epochs,
    stored_generations,
)

CLASSIC, CONSUMER = "classic", "consumer"


UP, DOWN = (CLASSIC, CONSUMER), (CONSUMER, CLASSIC)
CHANGES = [
    pytest.param(library, assignor, way, id=f"{library}-{assignor}-to-{way[1]}")
    for library in LIBRARIES
    for assignor in ("range", "cooperative-sticky")
    for way in (UP, DOWN)
]


def change_protocols(
    daemon: Daemon, library: str, assignor: str, members_max: int, *protocols: str
) -> None:
    """A group of the first protocol is restarted member by member with each of the others."""
    topic = given_topic(daemon, 6, 300)
    options = replace(
        options_of(daemon, topic, protocols[0]), assignor=assignor, heartbeat_interval_ms=100
    )
    with members() as (witness, start):
        running = given_members(witness, start, library, topic, *[options] * members_max)

        for protocol in protocols[1:]:
            for n in range(members_max):
                topic.write(300)
                running.pop(0).stop()
                topic.write(300)
                of_new = replace(options, group_protocol=protocol)
                running.append(start(f"then-{protocol}-{n}", library, of_new))
                wait_for_share(witness, running, topic)

        wait_for_messages(witness, topic)
        stop_all(running)
        check_one_owner(witness)

    group = f"group-of-{topic.name}"
    assert stored_epochs(daemon.data_dir, group), "it never was a consumer group"
    assert stored_generations(daemon.data_dir, group), "it never was a classic group"
    assert check_stored_owners(daemon.data_dir, group)
    check_commits(witness, daemon, topic)


def test_a_group_is_upgraded_and_downgraded_again(start_daemon: StartDaemon) -> None:
    daemon = start_daemon(SETTINGS)
    change_protocols(daemon, "confluent", "range", 2, CLASSIC, CONSUMER, CLASSIC)


@LONG_ONLY
@pytest.mark.parametrize(("library", "assignor", "way"), CHANGES)
def test_a_group_changes_its_protocol_by_a_rolling_restart(
    start_daemon: StartDaemon, library: str, assignor: str, way: tuple[str, str]
) -> None:
    change_protocols(start_daemon(SETTINGS), library, assignor, 3, *way)

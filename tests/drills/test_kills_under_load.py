"""Is every commit that was ever acknowledged still there after kill -9, at whatever moment it came?

Members of a group and consumers without one commit as fast as they are answered; at a moment drawn
from a seed the daemon is killed, started again on the same data, and asked. The load then goes on
where it was. DRILL_KILLS sets how often (`make drill` does it 200 times), DRILL_SEED the moments.
"""

import os
import random
import time

import pytest

from protocol.names import NO_GENERATION
from tests.conftest import StartDaemon
from tests.drills.crowd import Crowd, Place, RawMember, committed_offsets
from tests.interop.conftest import SETTINGS, create_topic
from tests.interop.offsets_log import stored_commits

KILLS = int(os.environ.get("DRILL_KILLS", "10"))
SEED = os.environ.get("DRILL_SEED") or str(random.randrange(1_000_000))

TOPIC = "orders"
MEMBERS = 3
ALONE = 5  # consumers without a group's membership, each with offsets of its own
FLUSH_MS = 6  # about two of the disk's: a kill may come at any moment of one


class Alone(RawMember):
    """Commits without being a member of anything, and never does anything else."""

    def __init__(self, name: str, group: str, topic: str, partition: int) -> None:
        super().__init__(name, group, topic, partition)
        self.place = Place.INSIDE

    def act(self) -> None:
        self._beats_next = False
        super().act()


@pytest.mark.timeout(120 + 5 * KILLS)
@pytest.mark.parametrize(
    ("flush", "kills"),
    [
        pytest.param("commit", KILLS, id="each-commit-fsynced"),
        pytest.param("os", max(KILLS // 3, 1), id="in-the-page-cache"),
    ],
)
def test_no_acknowledged_commit_is_lost(start_daemon: StartDaemon, flush: str, kills: int) -> None:
    print(f"DRILL_SEED={SEED}")
    moments = random.Random(SEED)
    daemon = start_daemon({**SETTINGS, "rollcall.flush": flush})
    create_topic(daemon.bootstrap, TOPIC, MEMBERS + ALONE)
    members = [RawMember(f"m{n}", "billing", TOPIC, n) for n in range(MEMBERS)]
    alone = [Alone(f"a{n}", f"alone-{n}", TOPIC, MEMBERS + n) for n in range(ALONE)]
    crowd = Crowd(daemon.port, [*members, *alone])
    crowd.go_on_until(
        lambda: (
            len({m.generation for m in members} - {NO_GENERATION}) == 1
            and all(m.acknowledged_offset for m in crowd.members)
        ),
        "a group of three, and commits by all",
    )
    generation = members[0].generation
    for member in members:
        member.errors.clear()  # those of finding together

    for _ in range(kills):
        crowd.commit(moments.randrange(8, 400))
        time.sleep(moments.uniform(0, FLUSH_MS / 1000))  # the moment of the kill, within a flush
        daemon.kill()
        crowd.hear_the_last()
        daemon.start()

        for member in crowd.members:
            (committed,) = committed_offsets(daemon.port, member.group, TOPIC, [member.partition])
            assert member.acknowledged_offset <= committed <= member.sent_offset, member.name

    # The members went on through all of it in the generation that they had.
    crowd.finish()
    assert all(m.acknowledged_offset == m.sent_offset for m in crowd.members)
    assert [(m.generation, m.errors) for m in members] == [(generation, [])] * MEMBERS
    daemon.stop()
    for member in crowd.members:
        offsets = stored_commits(daemon.data_dir, member.group)[TOPIC, member.partition]
        assert offsets == sorted(set(offsets)), "a commit went back, or was stored twice"
        assert offsets[-1] == member.acknowledged_offset

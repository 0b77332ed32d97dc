"""Causes with real clients: `rollcall why` names the injected cause, and misses no rebalance.

One group of each library's consumers lives through everything that can make it rebalance. A tap on
the wire notes every generation that any member was given; a poller that looks every 15 seconds
would have missed some of them.
"""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewPartitions

from tests.broker.daemon import Daemon
from tests.interop.conftest import SETTINGS, create_topic
from tests.interop.group import EACH_LIBRARY, TIMEOUT_S, Witness
from tests.interop.kafka_tools import require_kafka_tools
from tests.interop.members.client import LIBRARIES
from tests.interop.members.settings import Settings
from tests.interop.raw_member import RawMember
from tests.interop.wire_tap import WireTap

SCRIPT = Path(__file__).parent / "members" / "steered.py"
# Both are waited for, and no busy machine should take a process away for as long.
SESSION_MS = 5_000
REBALANCE_MS = 8_000
assert LIBRARIES == ("confluent", "kafka_python", "aiokafka", "java")


class Steered:
    """A library's consumer that polls by itself and takes orders."""

    def __init__(self, witness: Witness, library: str, settings: Settings) -> None:
        self.name = settings.client_id
        self._witness = witness
        if library == "java":
            tools = require_kafka_tools()
            jvm = tools.java.resolve().parents[1] / "lib" / "server" / "libjvm.so"
            settings = replace(settings, jars=tuple(map(str, tools.jars)), jvm=str(jvm))
        self.process = subprocess.Popen(
            [sys.executable, str(SCRIPT), library, settings.to_json()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._witness.hear(self.name, line)
        self._witness.note()

    def order(self, word: str, *arguments: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([word, *arguments]) + "\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


class Scene:
    """A daemon behind a tap, a group, and its history."""

    def __init__(self, daemon: Daemon, tap: WireTap, library: str) -> None:
        self.daemon = daemon
        self.tap = tap
        self.library = library
        self.group = "observed"
        self.topic = "read"
        self.witness = Witness()
        self.members: list[Steered] = []

    def start(
        self,
        client_id: str,
        *,
        topics: tuple[str, ...] = ("read",),
        instance_id: str | None = None,
        session_ms: int = SESSION_MS,
    ) -> Steered:
        settings = Settings(
            self.tap.address,
            list(topics),
            self.group,
            client_id,
            session_ms,
            REBALANCE_MS,
            instance_id=instance_id,
        )
        member = Steered(self.witness, self.library, settings)
        self.members.append(member)
        return member

    def raw(self, client_id: str, rebalance_timeout_ms: int = 1_000) -> RawMember:
        """A group waits as long as its most patient member asks for."""
        address, topic = self.tap.address, self.topic
        return RawMember(address, self.group, client_id, topic, rebalance_timeout_ms)

    def rebalances(self) -> list[dict]:
        status, body = self.daemon.get(f"/api/rebalances?group={self.group}&limit=200")
        return json.loads(body)["rebalances"] if status == 200 else []

    def waiting(self) -> dict | None:
        status, body = self.daemon.get(f"/api/rebalances?group={self.group}&limit=1")
        return json.loads(body)["waiting"] if status == 200 else None

    def waits_for(self, client_id: str) -> bool:
        """For this member, and for nobody else any more."""
        waits = self.waiting()
        return waits is not None and [m["client_id"] for m in waits["members"]] == [client_id]

    def until(self, what: str, fact: Callable[[], bool]) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while not fact():
            seen = [
                (
                    rebalance["cause"],
                    rebalance["trigger"]["client_id"],
                    rebalance["generation_after"],
                )
                for rebalance in self.rebalances()
            ]
            assert time.monotonic() < deadline, f"waited in vain for {what}; told: {seen}"
            time.sleep(0.05)

    def expect(self, cause: str, client_id: str | None, since: int) -> dict:
        """The first rebalance after the `since`-th: it is over, and this is what began it.

        A leader may have looked at its metadata once more in between, as kafka-python's does after
        its first join: such a rebalance is named as what it is, and passed over here.
        """
        self.until(f"the end of a rebalance ({cause})", lambda: self._over(since))
        first = self.rebalances()[::-1][since]
        named = (first["cause"], first["trigger"]["client_id"])
        if named == ("leader_rejoined", "first") != (cause, client_id):
            return self.expect(cause, client_id, since + 1)
        assert named == (cause, client_id)
        self.until(
            "a stable group",
            lambda: self.waiting() is None and self.rebalances()[0]["duration_ms"] is not None,
        )
        return first

    def _over(self, since: int) -> bool:
        rebalances = self.rebalances()[::-1]
        return len(rebalances) > since and rebalances[since]["duration_ms"] is not None

    @property
    def count(self) -> int:
        return len(self.rebalances())


@contextmanager
def scene(tmp_path: Path, library: str) -> Iterator[Scene]:
    tap = WireTap()
    daemon = Daemon(tmp_path, {**SETTINGS, "rollcall.log.level": "warning"})
    daemon.arguments = ["--advertise", tap.address]
    daemon.start()
    tap.target = (daemon.host, daemon.port)
    group = Scene(daemon, tap, library)
    create_topic(tap.address, "read", 4)
    create_topic(tap.address, "also", 1)
    try:
        yield group
    finally:
        for member in group.members:
            if member.process.poll() is None:
                member.kill()
        daemon.close()
        tap.close()


@EACH_LIBRARY
def test_twelve_causes_are_named_right_and_no_rebalance_is_missed(
    tmp_path: Path, library: str
) -> None:
    with scene(tmp_path, library) as group:
        members_come_and_change(group)
        members_are_lost(group)
        members_make_the_others_wait(group)
        the_daemon_is_killed(group)
        the_leader_wants_another_assignment(group)
        every_rebalance_was_recorded(group)


def members_come_and_change(group: Scene) -> None:
    group.start("first", topics=("read", "also"), session_ms=10_000)
    group.expect("member_joined", "first", 0)

    since = group.count
    second = group.start("second")
    recorded = group.expect("member_joined", "second", since)
    assert [wait["client_id"] for wait in recorded["waited_for"]] == ["first"]
    assert (recorded["members_before"], recorded["members_after"]) == (1, 2)
    assert recorded["partitions_moved"] == 2

    since = group.count
    admin = AdminClient({"bootstrap.servers": group.tap.address})
    admin.create_partitions([NewPartitions("read", 5)])["read"].result(60)
    group.until("a rebalance for the new partition", lambda: group.count > since)
    recorded = group.rebalances()[::-1][since]
    assert recorded["cause"] == "partitions_changed"
    assert recorded["trigger"]["client_id"] in ("first", "second")  # any member may notice it first
    group.until("the end of it", lambda: group.waiting() is None)

    since = group.count
    second.order("subscribe", ["read", "also"])
    group.expect("subscription_changed", "second", since)


def members_are_lost(group: Scene) -> None:
    first, second = group.members
    since = group.count
    second.kill()
    recorded = group.expect("session_expired", "second", since)
    # Two of its partitions at least, for a whole session: nobody read them meanwhile.
    assert recorded["unowned_partition_seconds"] >= 2 * SESSION_MS / 1000

    since = group.count
    static = group.start("static", instance_id="s-1", session_ms=30_000)
    group.expect("member_joined", "static", since)
    since = group.count
    static.kill()
    again = group.start("static", instance_id="s-1", session_ms=30_000)
    recorded = group.expect("static_member_replaced", "static", since)
    assert recorded["trigger"]["group_instance_id"] == "s-1"
    group.until("its assignment", lambda: bool(group.witness.said("static", "assigned")))

    again.kill()
    since = group.count
    group.raw("an-operator").remove_instance("s-1")
    recorded = group.expect("operator", "an-operator", since)
    assert recorded["trigger"]["group_instance_id"] == "s-1"
    assert first.process.poll() is None


def members_make_the_others_wait(group: Scene) -> None:
    stuck = group.raw("stuck")
    since = group.count
    stuck.enter()
    group.expect("member_joined", "stuck", since)
    since = group.count
    other = group.raw("other")
    other.enter()  # the stuck one does not rejoin
    recorded = group.expect("rebalance_timeout", "stuck", since)
    ends = {wait["client_id"]: wait["how_it_ended"] for wait in recorded["waited_for"]}
    assert ends == {"first": "rejoined", "stuck": "dropped"}
    assert recorded["duration_ms"] >= REBALANCE_MS

    since = group.count
    other.leave("it has done its work")
    group.expect("member_left", "other", since)

    since = group.count
    silent = group.raw("silent")
    silent.begin_join()
    silent.end_join()  # and never fetches its assignment
    group.until("its end", lambda: group.count > since + 1)
    recorded = group.expect("sync_timeout", "silent", since + 1)
    assert (recorded["members_before"], recorded["members_after"]) == (2, 1)


def the_daemon_is_killed(group: Scene) -> None:
    # Nobody has to notice a restart between two rebalances, though Java's leader rejoins for it.
    since = group.count
    group.daemon.kill()
    group.daemon.start()
    kept = group.expect("coordinator_moved", None, since)
    assert kept["generation_before"] == kept["generation_after"]
    since = group.count
    stuck = group.raw("stuck", rebalance_timeout_ms=60_000)
    stuck.enter()
    recorded = group.rebalances()[::-1][since:]
    assert {rebalance["cause"] for rebalance in recorded} <= {"member_joined", "coordinator_moved"}
    group.until("a stable group", lambda: group.waiting() is None)

    # A restart in the middle of a rebalance costs another one.
    stuck.hang_up()
    since = group.count
    late = group.raw("late")
    late.begin_join()
    group.until("all to wait for the stuck one", lambda: group.waits_for("stuck"))
    group.daemon.kill()
    late.hang_up()
    group.daemon.start()
    group.until("the first one to begin anew", lambda: group.waits_for("stuck"))
    stuck.begin_join()
    stuck.end_join()
    stuck.sync()
    group.until("the end of it", lambda: group.waiting() is None)
    cut_off, moved, after = group.rebalances()[::-1][since : since + 3]
    assert (cut_off["cause"], cut_off["trigger"]["client_id"]) == ("member_joined", "late")
    assert cut_off["generation_before"] == cut_off["generation_after"]
    assert {wait["how_it_ended"] for wait in cut_off["waited_for"]} <= {"rejoined", "interrupted"}
    assert moved["cause"] == after["cause"] == "coordinator_moved"
    assert after["generation_after"] > after["generation_before"]

    since = group.count
    stuck.leave("no more")
    group.expect("member_left", "stuck", since)


def the_leader_wants_another_assignment(group: Scene) -> None:
    first = group.members[0]
    if group.library != "confluent":  # librdkafka has no word for it
        since = group.count
        first.order("rejoin")
        group.expect("leader_rejoined", "first", since)
        since = group.count
        first.order("close")
        group.expect("member_left", "first", since)
        return
    since = group.count
    first.order("close")
    group.expect("member_left", "first", since)
    leader = group.raw("leader")
    leader.enter()
    group.start("last")
    group.until("the join of another", lambda: group.waiting() is not None)
    leader.begin_join()
    leader.end_join()
    leader.sync()
    group.until("a stable group", lambda: group.waiting() is None)
    since = group.count
    leader.begin_join()
    leader.end_join()
    leader.sync()
    group.expect("leader_rejoined", "leader", since)


def every_rebalance_was_recorded(group: Scene) -> None:
    rebalances = group.rebalances()
    changes = [r for r in rebalances if r["generation_after"] != r["generation_before"]]
    led_to = [r["generation_after"] for r in changes]
    assert sorted(set(led_to)) == sorted(led_to), "a generation has two causes"
    on_the_wire = group.tap.generations
    assert on_the_wire <= set(led_to), "a rebalance was missed"
    # What was on no wire: generations that the last member left behind.
    emptied = {r["generation_after"] for r in changes if r["members_after"] == 0}
    assert set(led_to) - on_the_wire <= emptied
    # How many of them such a poller sees depends on the machine; on none it sees all.
    assert group.tap.seen_by_a_poller(15) < on_the_wire
    printed = subprocess.run(
        [
            str(Path(sys.executable).with_name("rollcall")),
            *("why", group.group, "--admin", group.daemon.admin, "--json", "--limit", "200"),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(printed.stdout) == rebalances

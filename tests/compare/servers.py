"""Brokers under comparison: which ones, with which settings, and how they are started.

Both get the same properties. A profile is one set of settings and so one broker process: most
scenarios share the plain one. Whatever is named here must be known to Kafka; Rollcall's own keys
stand apart: they turn off what it would do better than Kafka (docs/differences.md).
"""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Barrier
from typing import Final, Protocol

_EVERYWHERE: Final = {
    # One network and one handler thread: requests are taken in the order in which they arrive.
    "num.network.threads": "1",
    "num.io.threads": "1",
    "group.coordinator.threads": "1",
    "offsets.topic.num.partitions": "3",
    "group.min.session.timeout.ms": "1",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
    "num.partitions": "2",
}

_CONSUMERS: Final = {
    **_EVERYWHERE,
    # One batch for each write, and an assignment with every new group epoch.
    "group.coordinator.append.linger.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
}

_ACLS: Final = {
    **_EVERYWHERE,
    "auto.create.topics.enable": "true",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    # So that the scenario can make its own ACLs, and the broker can talk to itself before them.
    "allow.everyone.if.no.acl.found": "true",
}

_TRANSACTIONS: Final = {**_EVERYWHERE, "transaction.state.log.num.partitions": "3"}

PROFILES: Final[Mapping[str, Mapping[str, str]]] = {
    "plain": _EVERYWHERE,
    "delayed": {**_EVERYWHERE, "group.initial.rebalance.delay.ms": "700"},
    "small groups": {**_EVERYWHERE, "group.max.size": "2"},
    "forgetful": {**_EVERYWHERE, "offsets.retention.check.interval.ms": "200"},
    "broker configs": _EVERYWHERE,
    "client quotas": _EVERYWHERE,
    "short lives": {
        **_EVERYWHERE,
        "log.retention.check.interval.ms": "100",
        "log.initial.task.delay.ms": "100",
    },
    "creative": {**_EVERYWHERE, "auto.create.topics.enable": "true"},
    "consumers": _CONSUMERS,
    "consumers assigned later": {**_CONSUMERS, "group.consumer.assignment.interval.ms": "1000"},
    "consumers assigned once": {
        **_CONSUMERS,
        "group.consumer.assignment.interval.ms": "3600000",
        "group.consumer.max.assignment.interval.ms": "3600000",
    },
    "consumers of short sessions": {
        **_CONSUMERS,
        "group.consumer.min.session.timeout.ms": "1",
        "group.consumer.session.timeout.ms": "1500",
        "group.consumer.heartbeat.interval.ms": "500",
        "group.consumer.min.heartbeat.interval.ms": "500",
    },
    "consumers and restarts": _CONSUMERS,
    "small consumer groups": {**_CONSUMERS, "group.consumer.max.size": "2"},
    "small classic groups": {**_CONSUMERS, "group.max.size": "1"},
    "only upgrades": {**_CONSUMERS, "group.consumer.migration.policy": "upgrade"},
    "only downgrades": {**_CONSUMERS, "group.consumer.migration.policy": "downgrade"},
    "no migration": {**_CONSUMERS, "group.consumer.migration.policy": "disabled"},
    "only classic groups": {**_CONSUMERS, "group.coordinator.rebalance.protocols": "classic"},
    "acls": _ACLS,
    "transactions": _TRANSACTIONS,
    "transactions with acls": {**_ACLS, **_TRANSACTIONS},
    "transactions with short lives": {
        **_TRANSACTIONS,
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
        "transaction.remove.expired.transaction.cleanup.interval.ms": "100",
        "transactional.id.expiration.ms": "1500",
    },
    "transactions and restarts": _TRANSACTIONS,
}

TRANSACTIONAL: Final = frozenset(name for name in PROFILES if name.startswith("transactions"))
"""The profiles whose scenarios need a transaction coordinator from the first step on."""

RESTARTED: Final = frozenset({"consumers and restarts", "transactions and restarts"})
"""The profiles whose scenarios restart the broker, each of them once."""

RESTART_WITHIN_S: Final = 60.0

EXACTLY_KAFKA: Final = {
    "rollcall.forgive.slow.member": "false",
    "rollcall.rebalance.on.partition.change": "false",
    "rollcall.log.join.linger.ms": "0",  # the lines are read at once
}


class Restartable(Protocol):
    """The broker as a scenario sees it."""

    @property
    def port(self) -> int: ...

    def restart(self) -> None: ...


class SharedRestart:
    """One restart for many scenarios: the last of them that asks for it restarts the broker."""

    def __init__(self, broker: Restartable, scenarios: int) -> None:
        self.port = broker.port
        self._meeting = Barrier(scenarios, broker.restart, timeout=RESTART_WITHIN_S)

    def restart(self) -> None:
        self._meeting.wait()

    def give_up(self) -> None:
        """A scenario failed and will not ask any more."""
        self._meeting.abort()


class Broker:
    """A running broker; `stop` and `start` are those of its kind, on the same folder."""

    def __init__(self, start: Callable[[int], int], stop: Callable[[], None], port: int) -> None:
        self._start = start
        self._stop = stop
        self.port = start(port)

    def restart(self) -> None:
        self._stop()
        self._start(self.port)

    def stop(self) -> None:
        self._stop()


@contextmanager
def rollcall(profile: str, folder: Path) -> Iterator[Broker]:
    """Run our daemon with its data in the folder, on a port of its choice."""
    settings = {**PROFILES[profile], **EXACTLY_KAFKA}
    daemons: list[subprocess.Popen[bytes]] = []

    def start(port: int) -> int:
        command = [
            str(Path(sys.executable).with_name("rollcall")), "serve",
            "--data-dir", str(folder / "data"),
            "--listen", f"127.0.0.1:{port}", "--admin", "127.0.0.1:0",
        ]  # fmt: skip
        for key, value in settings.items():
            command += ["--set", f"{key}={value}"]
        with (folder / "stderr.log").open("ab") as log:
            daemons.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log))
        return port_from(daemons[-1], folder / "stderr.log")

    def stop() -> None:
        daemon = daemons[-1]
        daemon.terminate()
        try:
            daemon.wait(10)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()
        assert daemon.stdout is not None
        daemon.stdout.close()

    broker = Broker(start, stop, 0)
    try:
        yield broker
    finally:
        broker.stop()


def port_from(daemon: "subprocess.Popen[bytes]", log: Path) -> int:
    """Read the line that says where it listens."""
    assert daemon.stdout is not None
    for line in daemon.stdout:
        if match := re.search(rb"127\.0\.0\.1:(\d+)", line):
            return int(match[1])
    raise AssertionError(f"the daemon did not start: {log.read_text()[-2000:]}")


@contextmanager
def kafka(
    profile: str, folder: Path, driver: str, port: int, more: Mapping[str, str] | None = None
) -> Iterator[Broker]:
    """Run a real Kafka by a driver script: `DRIVER start DIR PORT k=v...` and `DRIVER stop DIR`."""
    properties = {**PROFILES[profile], **(more or {})}
    settings = [f"{key}={value}" for key, value in properties.items()]

    def start(port: int) -> int:
        # Kafka's log of the last start would tell the driver that it serves already.
        (folder / "server.log").unlink(missing_ok=True)
        subprocess.run([driver, "start", folder, str(port), *settings], check=True)
        return port

    def stop() -> None:
        subprocess.run([driver, "stop", folder], check=True)

    broker = Broker(start, stop, port)
    try:
        yield broker
    finally:
        broker.stop()

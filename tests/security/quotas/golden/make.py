"""Golden quotas: records for how long Kafka 4.3.1's own classes throttle random clients.

    python -m tests.security.quotas.golden.make LIBS

LIBS is the libs directory of a Kafka 4.3.1. Needs Java and JPype; the tests need neither: they do
the same (`random_use.py`) and compare with `throttles.txt`. It has a line for each seed, with a
result for each step that has one: a throttle in milliseconds, `!` before it where a mutation is
refused, and `=` before what a client may fetch at once.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jpype

from security.quotas.limits import ABSENT, DEFAULT_ENTITY
from tests.security.quotas.random_use import SEEDS, AskWindow, SetQuota, Use, steps

GOLDEN = Path(__file__).parent / "throttles.txt"


class Kafka:
    """Its quota managers, at a time that the caller sets."""

    def __init__(self) -> None:
        self.now_ms = 0
        at = jpype.JPackage("org").apache.kafka
        self._at = at
        clock = jpype.JProxy("org.apache.kafka.common.utils.Time", inst=self)
        metrics = at.common.metrics.Metrics(clock)
        config = at.server.config.ClientQuotaManagerConfig()
        none = jpype.JClass("java.util.Optional").empty()
        quota = at.server.quota
        requests = jpype.JClass("kafka.server.ClientRequestQuotaManager")
        self._managers = {
            "produce": quota.ClientQuotaManager(
                config, metrics, quota.QuotaType.PRODUCE, clock, "", none
            ),
            "request": requests(config, metrics, clock, "", none),
            "strict": quota.ControllerMutationQuotaManager(config, metrics, clock, "", none),
        }
        self._managers["permissive"] = self._managers["strict"]

    # `Time`, as far as the managers call it. The names are Java's.

    def milliseconds(self) -> Any:
        return jpype.JLong(self.now_ms)

    def nanoseconds(self) -> Any:
        return jpype.JLong(self.now_ms * 1_000_000)

    def hiResClockMs(self) -> Any:
        return jpype.JLong(self.now_ms)

    def close(self) -> None:
        for manager in {id(each): each for each in self._managers.values()}.values():
            manager.shutdown()

    def set_quota(self, step: SetQuota) -> None:
        quotas = self._at.server.quota.ClientQuotaManager
        optional = jpype.JClass("java.util.Optional")
        user, client_id = step.entity

        def part(name: str | None, default: Any, of_name: Any) -> Any:
            if name == ABSENT:
                return optional.empty()
            return optional.of(default if name is DEFAULT_ENTITY else of_name(name))

        bound = optional.empty()
        if step.bound is not None:
            bound = optional.of(self._at.common.metrics.Quota(step.bound, True))
        self._managers[step.kind].updateQuota(
            part(user, quotas.DEFAULT_USER_ENTITY, quotas.UserEntity),
            part(client_id, quotas.DEFAULT_USER_CLIENT_ID, quotas.ClientIdEntity),
            bound,
        )

    def use(self, step: Use) -> str:
        manager = self._managers[step.kind]
        session = self._session(step.user)
        if step.value < 0:
            if manager.quotasEnabled():
                manager.unrecordQuotaSensor(session, step.client_id, -step.value, self.now_ms)
            return ""
        if step.kind in ("produce", "request"):
            return str(
                manager.maybeRecordAndGetThrottleTimeMs(
                    session, step.client_id, step.value, jpype.JLong(self.now_ms)
                )
            )
        new = {"strict": manager.newStrictQuotaFor, "permissive": manager.newPermissiveQuotaFor}
        quota = new[step.kind](session, jpype.JString(step.client_id))
        refused = ""
        try:
            quota.record(step.value)
        except self._at.common.errors.ThrottlingQuotaExceededException:
            refused = "!"
        return f"{refused}{quota.throttleTime()}"

    def ask_window(self, step: AskWindow) -> str:
        window = self._managers["produce"].maxValueInQuotaWindow(
            self._session(step.user), step.client_id
        )
        return f"={float(window).hex()}"

    def _session(self, user: str) -> Any:
        principal = self._at.common.security.auth.KafkaPrincipal("User", user)
        address = jpype.JClass("java.net.InetAddress").getLoopbackAddress()
        return self._at.network.Session(principal, address)


def main(libs: Path) -> None:
    jpype.startJVM("-Dorg.slf4j.simpleLogger.defaultLogLevel=off", classpath=[f"{libs}/*"])
    GOLDEN.write_text("".join(f"{seed} {' '.join(_recorded(seed))}\n" for seed in SEEDS))


def _recorded(seed: int) -> Iterator[str]:
    kafka = Kafka()
    for now_ms, step in steps(seed):
        kafka.now_ms = now_ms
        match step:
            case SetQuota():
                kafka.set_quota(step)
            case Use():
                yield kafka.use(step) or "-"
            case AskWindow():
                yield kafka.ask_window(step)
    kafka.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Kafka's numbers: random clients are throttled as long as by Kafka's own classes."""

from pathlib import Path

import pytest

from security.quotas.client_quotas import ClientQuota, MutationQuota
from security.quotas.limits import ClientEntity, client_limits
from security.quotas.rate import QuotaWindow
from tests.security.quotas.random_use import AskWindow, SetQuota, Step, Use, steps

GOLDEN = Path(__file__).parent / "golden" / "throttles.txt"
WINDOW = QuotaWindow()
RECORDED = {
    int(seed): results
    for seed, *results in (line.split() for line in GOLDEN.read_text().splitlines())
}


class Quotas:
    """One of each kind."""

    def __init__(self) -> None:
        self.produce = ClientQuota(WINDOW, 1_000)
        self.request = ClientQuota(WINDOW, 1_000, throttle_max_ms=WINDOW.size_ms)
        self.mutation = MutationQuota(WINDOW, 1_000)
        self.bounds: dict[str, dict[ClientEntity, float]] = {}

    def set_quota(self, step: SetQuota) -> None:
        bounds = self.bounds.setdefault(step.kind, {})
        if step.bound is None:
            bounds.pop(step.entity, None)
        else:
            bounds[step.entity] = step.bound
        quotas = {"produce": self.produce, "request": self.request, "strict": self.mutation}
        quotas[step.kind].use(client_limits(dict(bounds)))

    def use(self, step: Use, now_ms: int) -> str:
        user, client_id, value = step.user, step.client_id, step.value
        if step.kind in ("strict", "permissive"):
            is_allowed, throttle_ms = self.mutation.record(
                user, client_id, value, now_ms, is_strict=step.kind == "strict"
            )
            return f"{'' if is_allowed else '!'}{throttle_ms}"
        quota = self.produce if step.kind == "produce" else self.request
        if value < 0:
            quota.record_unchecked(user, client_id, value, now_ms)
            return "-"
        return str(quota.record(user, client_id, value, now_ms))

    def result(self, now_ms: int, step: Step) -> str | None:
        match step:
            case SetQuota():
                self.set_quota(step)
                return None
            case Use():
                return self.use(step, now_ms)
            case AskWindow():
                most = self.produce.max_in_window(step.user, step.client_id, now_ms)
                return f"={most}"


@pytest.mark.parametrize("seed", sorted(RECORDED))
def test_clients_are_throttled_as_by_kafka(seed: int) -> None:
    quotas = Quotas()

    results = [quotas.result(now_ms, step) for now_ms, step in steps(seed)]

    shown = [result for result in results if result is not None]
    assert shown == [_in_our_form(result) for result in RECORDED[seed]]


def test_the_recording_has_throttles_and_refusals() -> None:
    results = [result for line in RECORDED.values() for result in line]
    assert sum(result.isdigit() and result != "0" for result in results) > 300
    assert sum(result.startswith("!") for result in results) > 50


def _in_our_form(result: str) -> str:
    """Where Kafka has no limit it has the greatest double."""
    if not result.startswith("="):
        return result
    most = float.fromhex(result[1:])
    return f"={'inf' if most > 1e300 else most}"

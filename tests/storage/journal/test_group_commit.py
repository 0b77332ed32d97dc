"""Group commit: when a flush starts. The loop's passes by hand, the flusher in its own thread."""

import threading
from collections.abc import Callable
from time import monotonic
from typing import cast

import pytest

from storage.journal.group_commit import ADAPTIVE, GroupCommit
from storage.journal.group_writer import GroupWriter

TIMEOUT_S = 60
HOUR_MS = 3_600_000


class Loop:
    """Passes over the sockets, one by one."""

    def __init__(self) -> None:
        self.calls: list[Callable[[], None]] = []

    def defer(self, call: Callable[[], None]) -> None:
        self.calls.append(call)

    def end_pass(self) -> None:
        calls, self.calls = self.calls, []
        for call in calls:
            call()


class Rig:
    """A loop, a queue, and a flusher that does one thing at a time."""

    def __init__(self, linger_ms: int = ADAPTIVE) -> None:
        self.queue: list[str] = []
        self.is_urgent = False
        self.loop = Loop()
        self.group_commit = GroupCommit(linger_ms, self.queue, lambda: self.is_urgent)
        self.group_commit.defer = self.loop.defer

    def be_patient(self) -> None:
        """A flusher that is not woken waits for longer than any test."""
        self.group_commit._linger_s = HOUR_MS / 1000

    def enqueue(self, entry: str) -> None:
        self.queue.append(entry)
        self.group_commit.queued()

    def flusher(self, do: Callable[[], object]) -> threading.Thread:
        thread = threading.Thread(target=do, daemon=True)
        thread.start()
        return thread

    def wait_until_it_sleeps(self) -> None:
        pause = threading.Event()
        deadline = monotonic() + TIMEOUT_S
        while not self.group_commit._sleepers:
            assert monotonic() < deadline
            pause.wait(0.001)


def ends(thread: threading.Thread) -> bool:
    thread.join(TIMEOUT_S)
    return not thread.is_alive()


def test_the_flusher_is_woken_after_the_first_pass_that_brings_nothing() -> None:
    rig = Rig()
    rig.be_patient()
    flusher = rig.flusher(lambda: rig.group_commit.sleep_until_work(None))
    rig.wait_until_it_sleeps()
    rig.enqueue("a")
    for more in ("b", "c"):
        rig.loop.end_pass()
        assert len(rig.loop.calls) == 1, "another pass"
        rig.enqueue(more)
        assert len(rig.loop.calls) == 1, "one question at a time"
    rig.loop.end_pass()
    assert flusher.is_alive()
    rig.loop.end_pass()  # nothing came
    assert not rig.loop.calls
    assert ends(flusher)


def test_a_flusher_that_was_woken_does_not_linger_again() -> None:
    rig = Rig()
    rig.be_patient()
    rig.enqueue("a")
    rig.loop.end_pass()
    rig.loop.end_pass()
    assert ends(rig.flusher(rig.group_commit.linger))


def test_after_a_flush_the_group_is_open_until_the_loop_has_read_every_request() -> None:
    rig = Rig()
    rig.be_patient()
    rig.queue.append("came during the flush")
    rig.group_commit.open()
    flusher = rig.flusher(rig.group_commit.linger)
    rig.wait_until_it_sleeps()
    rig.group_commit.queued()  # its answers are out
    rig.loop.end_pass()
    rig.enqueue("what they led to")
    rig.loop.end_pass()
    assert flusher.is_alive()
    rig.loop.end_pass()
    assert ends(flusher)


def test_during_a_flush_nobody_is_woken() -> None:
    rig = Rig()
    rig.enqueue("a")
    rig.loop.end_pass()
    rig.loop.end_pass()
    rig.group_commit.linger()
    rig.enqueue("b")
    assert not rig.loop.calls


def test_a_loop_that_always_has_more_is_not_waited_for() -> None:
    rig = Rig()
    rig.queue.append("a")
    assert ends(rig.flusher(rig.group_commit.linger))


def test_a_loop_that_always_has_more_calls_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig()
    now_s = 0.0
    monkeypatch.setattr("storage.journal.group_commit.perf_counter", lambda: now_s)
    rig.enqueue("a")
    for _ in range(3):
        rig.loop.end_pass()
        rig.enqueue("more")
        now_s += 0.001
    rig.loop.end_pass()
    assert not rig.loop.calls


def test_without_linger_one_pass_is_enough_and_a_flush_follows_the_other() -> None:
    rig = Rig(linger_ms=0)
    flusher = rig.flusher(lambda: rig.group_commit.sleep_until_work(None))
    rig.wait_until_it_sleeps()
    rig.enqueue("a")
    rig.loop.end_pass()
    assert not rig.loop.calls
    assert ends(flusher)
    rig.group_commit.open()
    assert ends(rig.flusher(rig.group_commit.linger))


def test_a_fixed_linger_is_kept_whatever_the_loop_says_but_for_urgent_work() -> None:
    rig = Rig(linger_ms=HOUR_MS)
    rig.enqueue("a")
    rig.loop.end_pass()
    flusher = rig.flusher(rig.group_commit.linger)
    rig.wait_until_it_sleeps()
    rig.enqueue("b")
    assert not rig.loop.calls
    assert flusher.is_alive()
    rig.is_urgent = True
    rig.group_commit.wake()
    assert ends(flusher)


@pytest.mark.parametrize("linger_ms", [ADAPTIVE, HOUR_MS])
def test_urgent_work_from_before_is_not_slept_over(linger_ms: int) -> None:
    rig = Rig(linger_ms)
    rig.is_urgent = True
    assert ends(rig.flusher(rig.group_commit.linger))
    assert ends(rig.flusher(lambda: rig.group_commit.sleep_until_work(None)))


def test_what_was_queued_before_a_rest_is_not_slept_over() -> None:
    rig = Rig()
    rig.enqueue("a")
    rig.loop.end_pass()
    rig.loop.end_pass()
    assert ends(rig.flusher(lambda: rig.group_commit.sleep_until_work(None)))


def test_a_rest_that_nobody_ends_says_so() -> None:
    assert not Rig().group_commit.sleep_until_work(0.001)


class WokenLate:
    """A group writer that another thread wakes just before the flusher rests in it."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self.wake_group = wake
        self.is_woken = False

    def wake(self) -> None:
        self.is_woken = True

    def forget_wake(self) -> None:
        self.wake_group()
        self.is_woken = False

    def wait(self, _timeout_s: float) -> bool:
        return self.is_woken


@pytest.mark.parametrize("is_in_c", [True, False])
def test_a_flusher_that_is_woken_just_before_its_rest_does_not_sleep_behind_a_closed_group(
    is_in_c: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkpoint that ends at once: its thread wakes the flusher, and leaves it no work."""
    rig = Rig()
    late = [rig.group_commit.wake]

    def wake_late() -> None:
        if late:
            late.pop()()

    if is_in_c:
        rig.group_commit.rest_in(cast("GroupWriter", WokenLate(wake_late)))
    else:
        new_lock = threading.Lock

        def lock() -> threading.Lock:
            wake_late()
            return new_lock()

        monkeypatch.setattr(threading, "Lock", lock)

    rested = rig.group_commit.sleep_until_work(0.001)
    assert not late

    assert rested  # it looks around, and rests again
    assert not rig.group_commit.sleep_until_work(0.001)
    rig.enqueue("later")
    assert len(rig.loop.calls) == 1


def test_a_posted_flush_that_has_ended_leaves_the_group_open() -> None:
    rig = Rig()

    def post() -> bool:
        rig.queue.clear()
        rig.group_commit.open()  # another thread has written and reported it
        return True

    rig.group_commit.post = post
    rig.enqueue("a")
    rig.loop.end_pass()
    rig.loop.end_pass()
    assert not rig.queue
    rig.enqueue("b")
    assert len(rig.loop.calls) == 1

"""Process numbers: beside what prometheus-client's own collector says of this process."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from prometheus_client import ProcessCollector

from broker.loop.process import descriptor_limit
from broker.metrics import process_numbers
from broker.metrics.process_numbers import count_descriptors, read_process_numbers

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")


@pytest.fixture
def of_library() -> dict[str, float]:
    return {m.name: m.samples[0].value for m in ProcessCollector(registry=None).collect()}


@pytest.fixture
def many_descriptors() -> Iterator[int]:
    with ExitStack() as files:
        for _ in range(50):
            files.enter_context(Path(os.devnull).open("rb"))
        yield 50


def test_numbers_are_those_of_the_library(of_library: dict[str, float]) -> None:
    numbers = read_process_numbers()
    assert numbers is not None
    assert numbers.started_s == pytest.approx(of_library["process_start_time_seconds"])
    assert numbers.cpu_s == pytest.approx(of_library["process_cpu_seconds"], abs=0.1)
    virtual, resident = (
        of_library[f"process_{kind}_memory_bytes"] for kind in ("virtual", "resident")
    )
    assert numbers.virtual_bytes == pytest.approx(virtual, rel=0.05)
    assert numbers.resident_bytes == pytest.approx(resident, rel=0.05)
    assert descriptor_limit() == of_library["process_max_fds"]


def test_descriptors_are_counted_as_the_library_does(many_descriptors: int) -> None:
    (count,) = [count for count in count_descriptors() if count is not None]
    listed = len(os.listdir("/proc/self/fd")) - 1  # that of the list itself
    assert count == listed > many_descriptors


def test_before_linux_6_2_they_are_counted_with_pauses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder of such a kernel has no size. That of fdinfo has none in later ones either."""
    assert Path("/proc/self/fdinfo").stat().st_size == 0
    monkeypatch.setattr(process_numbers, "COUNTED_AT_ONCE", 2)
    (tmp_path / "self").mkdir()
    (tmp_path / "self/fd").symlink_to("/proc/self/fdinfo")
    *pauses, count = count_descriptors(tmp_path)
    assert len(pauses) >= 2
    assert set(pauses) == {None}
    assert count == len(os.listdir("/proc/self/fd")) - 1


def test_without_proc_there_are_no_numbers(tmp_path: Path) -> None:
    assert read_process_numbers(tmp_path) is None
    assert list(count_descriptors(tmp_path)) == []

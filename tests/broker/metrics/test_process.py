"""Process metrics: the same samples as from Prometheus' own library, in slices."""

import os
import resource

import pytest
from prometheus_client import ProcessCollector

from broker.metrics import process


def test_it_says_what_the_library_says() -> None:
    found = dict(
        line.split()
        for portion in process.collect()
        if portion is not None
        for line in portion.lines
    )
    expected = {
        sample.name: sample.value
        for metric in ProcessCollector(registry=None).collect()
        for sample in metric.samples
    }
    assert found.keys() == expected.keys()
    for name in ("process_start_time_seconds", "process_open_fds", "process_max_fds"):
        assert float(found[name]) == expected[name], name
    for name in ("process_virtual_memory_bytes", "process_resident_memory_bytes"):
        assert float(found[name]) == pytest.approx(expected[name], rel=0.2), name
    assert float(found["process_cpu_seconds_total"]) <= expected["process_cpu_seconds_total"]


def test_many_descriptors_are_counted_in_slices() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    many = 2_500
    if hard != resource.RLIM_INFINITY and hard < many + 500:
        pytest.skip(f"this process may open {hard} files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, many + 500), hard))
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(many)]
    try:
        portions = list(process.collect())
    finally:
        for descriptor in opened:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert portions.count(None) >= 2
    counted = [portion for portion in portions if portion is not None][-2].lines[0]
    assert float(counted.removeprefix("process_open_fds ")) >= many


def test_without_a_descriptor_to_list_them_the_rest_is_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(_: object) -> object:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(process.os, "scandir", full)
    names = [portion.family.name for portion in process.collect() if portion is not None]
    assert names[-1] == "process_cpu_seconds_total"

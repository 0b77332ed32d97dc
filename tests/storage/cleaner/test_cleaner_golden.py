"""Golden cleaning: the same segments through a real Kafka's cleaner and ours give the same batches.

`golden/cleaner/` was recorded by `golden/make_cleaner.py`. All is compared byte for byte, but what
a codec makes of the same records.
"""

from pathlib import Path

import pytest
from msgspec.structs import replace

from storage.batch.record_batch import BatchHeader, iter_batches, read_header, read_records
from storage.cleaner.cleaner import clean_folder
from tests.storage.cleaner.rig import FOLDER, KEY, SETTINGS
from tests.storage.golden.make_cleaner import FUTURE_MS, RETENTION_MS, files_of, inputs
from tests.storage.rig import new_disk

GOLDEN = Path(__file__).parents[1] / "golden" / "cleaner"


def batches_in(folder: Path) -> list[bytes]:
    found = []
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        found += [content[at : at + header.size] for at, header in iter_batches(content)]
    return found


@pytest.fixture(scope="module")
def kafkas() -> list[bytes]:
    return batches_in(GOLDEN / "after")


@pytest.fixture(scope="module")
def ours(kafkas: list[bytes]) -> list[bytes]:
    disk = new_disk()
    disk.make_dir(FOLDER)
    for path in (GOLDEN / "before").iterdir():
        file = disk.open(f"{FOLDER}/{path.name}", create=True)
        file.pwrite(path.read_bytes(), 0)
    settings = replace(SETTINGS, segment_bytes=1 << 30, delete_retention_ms=RETENTION_MS)
    clean_folder(disk, FOLDER, settings, the_brokers_now(kafkas), topic_partition=KEY)
    names = sorted(name for name in disk.listdir(FOLDER) if name.endswith(".log"))
    content = b"".join(
        file.pread(file.size(), 0)
        for file in (disk.open(f"{FOLDER}/{name}") for name in names[:-1])
    )
    return [content[at : at + header.size] for at, header in iter_batches(content)]


def the_brokers_now(batches: list[bytes]) -> int:
    """When its pass ran: that is in the latest horizon, but for one that the input brings along."""
    horizons = [
        header.base_timestamp
        for header in map(read_header, batches)
        if header.has_delete_horizon and header.base_timestamp != FUTURE_MS
    ]
    return max(horizons) - RETENTION_MS


def test_the_input_is_what_the_recorder_makes() -> None:
    recorded = {path.name: path.read_bytes() for path in (GOLDEN / "before").iterdir()}
    made_at_ms = read_header(batches_in(GOLDEN / "before")[0]).base_timestamp
    assert files_of(inputs(made_at_ms)) == recorded


def test_the_recording_has_something_of_everything(kafkas: list[bytes]) -> None:
    headers = [read_header(batch) for batch in kafkas]
    assert any(header.has_delete_horizon and header.is_control for header in headers)
    assert any(header.has_delete_horizon and not header.is_control for header in headers)
    assert any(not header.records_count and header.producer_id >= 0 for header in headers)
    assert {header.compression for header in headers} == {0, 1, 2, 3, 4}
    assert any(header.log_append_time for header in headers)


def test_the_same_batches_are_left(kafkas: list[bytes], ours: list[bytes]) -> None:
    assert [place(read_header(batch)) for batch in ours] == [
        place(read_header(batch)) for batch in kafkas
    ]


def test_byte_for_byte_but_for_what_is_compressed(kafkas: list[bytes], ours: list[bytes]) -> None:
    for kafkas_batch, our_batch in zip(kafkas, ours, strict=True):
        if read_header(kafkas_batch).compression:
            assert read_records(our_batch) == read_records(kafkas_batch)
        else:
            assert our_batch == kafkas_batch


def place(header: BatchHeader) -> BatchHeader:
    """What is comparable of a header whatever the codec's output."""
    if header.compression:
        return header._replace(batch_length=0, crc=0)
    return header

"""Small data directory: something for every job: commits, generations, history, samples.

`billing` commits, stalls, storms and is reset by a tool; `<b>search&"$x$` keeps up, under a name
that a page must not take for markup or mathematics; `payments` commits in transactions.
"""

from pathlib import Path
from typing import Final

from coordinator.member_identity import MemberIdentity
from coordinator.records import offset_commit_key
from history.causes import Cause, End, OffsetsBy, Removal
from history.encoding import encode
from history.entries import (
    HistoryEntry,
    MembersRemovedEntry,
    OffsetsMovedEntry,
    Rebalance,
    RebalanceEndedEntry,
)
from history.entry_values import (
    MemberRemoval,
    OffsetChange,
    RequestClient,
)
from history.lag.records import Sample, encode_sample
from history.lag.window import SampledCommit
from protocol.names import GroupId, TopicName
from storage.api import Record
from storage.batch.record_batch import encode_batch
from tests.pipeline.logs import commit

START_MS: Final = 1_780_000_000_000 // 86_400_000 * 86_400_000  # a midnight
MINUTE: Final = 60_000
NASTY: Final = '<b>search&"$x$'


class _Writer:
    """One log, batch by batch, each with its own time."""

    def __init__(self) -> None:
        self._batches: list[bytes] = []
        self._end = 0

    def add(self, at_ms: int, *records: Record) -> None:
        self._batches.append(encode_batch(records, self._end, at_ms))
        self._end += len(records)

    def save(self, data_dir: Path, topic: str, partition: int = 0) -> None:
        folder = data_dir / f"{topic}-{partition}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{0:020}.log").write_bytes(b"".join(self._batches))


def small_world(data_dir: Path) -> Path:
    _commits().save(data_dir, "__consumer_offsets", 7)
    _history().save(data_dir, "__group_history")
    _samples().save(data_dir, "__group_lag")
    return data_dir


def _commits() -> _Writer:
    log = _Writer()
    for minute in range(90):
        at = START_MS + minute * MINUTE
        for partition in range(3):
            stands = minute >= 30 and partition == 1
            offset = 10 * (30 if stands else minute)
            log.add(at + partition, commit("billing", "orders", partition, offset, at))
        log.add(at + 9, commit(NASTY, "pages", 0, 100 * minute, at))
    at = START_MS + 90 * MINUTE
    for n in range(400):  # a storm, within a minute
        log.add(at + 100 * n, commit("billing", "orders", 0, 900 + n, at + 100 * n))
    log.add(at + MINUTE, commit("billing", "orders", 0, 20, at + MINUTE))
    gone = offset_commit_key(GroupId("billing"), TopicName("orders"), 2)
    log.add(at + 2 * MINUTE, Record(gone, None))
    return log


def _history() -> _Writer:
    log = _Writer()

    def add(event: HistoryEntry) -> None:
        log.add(event.at_ms, Record(*encode(event)))

    for n, cause in enumerate([Cause.MEMBER_JOINED, Cause.SESSION_EXPIRED, Cause.SESSION_EXPIRED]):
        began = START_MS + n * 20 * MINUTE
        whole = Rebalance(
            cause,
            began,
            MemberIdentity(f"m-{n}", None, f"app-1.{n}", "/10.0.0.1"),
            end=End.STABLE,
            duration_ms=3_000 + n,
            generation_before=n,
            generation_after=n + 1,
            members_before=1,
            members_after=2,
            partitions_moved=2,
            unowned_partition_seconds=4.5,
        )
        add(RebalanceEndedEntry("billing", began + 3_000 + n, whole))
    for n in range(3):
        member = MemberIdentity(f"f-{n}", None, "shaky", "/10.0.0.2")
        at = START_MS + 70 * MINUTE + n * MINUTE
        add(
            MembersRemovedEntry(
                "billing", at, Removal.SESSION_EXPIRED, members=(MemberRemoval(member),)
            )
        )
    add(
        OffsetsMovedEntry(
            "billing",
            START_MS + 91 * MINUTE,
            OffsetsBy.COMMIT,
            (OffsetChange("orders", 0, 1_299, 20),),
            RequestClient("reset-<i>tool</i>", "/10.0.0.9"),
        )
    )
    return log


def _samples() -> _Writer:
    log = _Writer()
    for minute in range(90):
        at = START_MS + minute * MINUTE
        ends = {0: 40 * minute, 1: 10 * minute, 2: 10 * minute}
        partitions = {}
        for partition, end in ends.items():
            stands = minute >= 30 and partition == 1
            offset = min(end, 10 * (30 if stands else minute))
            partitions[partition] = (SampledCommit(at, offset, end - offset),)
        sample = Sample("billing", "orders", at, False, partitions)
        search = Sample(NASTY, "pages", at, False, {0: (SampledCommit(at, 100 * minute, 0),)})
        log.add(at, Record(*encode_sample(sample)), Record(*encode_sample(search)))
    return log

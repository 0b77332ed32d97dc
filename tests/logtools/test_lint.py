"""Lint: `rollcall log lint` finds every kind of fault at its place, and nothing in sound files."""

import json
import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import google_crc32c
import pytest

from coordinator.records import group_metadata_record
from logtools.findings import Finding, LintCounts
from logtools.layout import place_at
from logtools.lint import findings
from logtools.lint_index import OffsetIndexCheck
from logtools.lint_segment import PartitionLint
from protocol.names import GroupId
from storage.api import LogSettings, Record, TopicPartition
from storage.batch.record_batch import encode_batch
from storage.disk import RealDisk
from storage.journal.journal import Journal
from storage.journal.write_ahead import FIRST_GROUP
from storage.log.checkpoints import RECOVERY_POINTS, encode_epochs, write_offsets
from storage.log.log_store import LogStore
from storage.snapshot import SnapshotHeader, write_snapshot
from tests.cli.test_command import Command, rollcall
from tests.conftest import StartDaemon
from tests.logtools.logs import (
    GROUP,
    NOW_MS,
    OFFSETS,
    PARTITION,
    TOPIC_ID,
    batches,
    commit,
    flip,
    logs_of,
    patch,
    positions,
    write_data_dir,
    write_partition,
    write_segment,
)
from tests.storage.rig import SMALL_LIMITS, SMALL_SEGMENTS

__all__ = ["rollcall"]  # the fixture
KEY = TopicPartition(OFFSETS, PARTITION)
FOLDER = f"{OFFSETS}-{PARTITION}"
GOLDEN = Path(__file__).parents[1] / "storage" / "golden"


def linted(path: Path) -> list[Finding]:
    return list(findings(place_at(path, topic=OFFSETS), LintCounts()))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_data_dir(tmp_path / "data")


def test_sound_files_have_no_findings(data: Path) -> None:
    tally = LintCounts()
    assert list(findings(place_at(data, topic=OFFSETS), tally)) == []
    assert (tally.batches, tally.records) == (30, 60)
    assert tally.bytes == sum(log.stat().st_size for log in logs_of(data / FOLDER))


def test_what_a_kafka_keeps_of_producers_and_transactions_is_sound(tmp_path: Path) -> None:
    """With producers, open and aborted transactions; tests/storage/golden/make_transactions.py."""
    folder = tmp_path / "moved-0"
    shutil.copytree(GOLDEN / "transactions", folder)
    assert len(list(folder.glob("*.snapshot"))) == 3
    assert len(list(folder.glob("*.txnindex"))) == 2
    found = findings(place_at(folder, topic=OFFSETS), LintCounts())
    assert {finding.check for finding in found} == {"index", "timeindex"}  # which were not kept


def resealed(log: Path, number: int, **changes: bytes) -> None:
    """Change some bytes of a batch, `at_N` by `at_N`, and make its checksum right again."""
    content = bytearray(log.read_bytes())
    start = positions(log)[number]
    for name, new in changes.items():
        at = start + int(name.removeprefix("at_"))
        content[at : at + len(new)] = new
    end = start + 12 + int.from_bytes(content[start + 8 : start + 12])
    content[start + 17 : start + 21] = google_crc32c.value(
        bytes(content[start + 21 : end])
    ).to_bytes(4)
    log.write_bytes(bytes(content))


def _first(data: Path) -> Path:
    return logs_of(data / FOLDER)[0]


def _index(data: Path, suffix: str = ".index") -> Path:
    return _first(data).with_suffix(suffix)


Harm = Callable[[Path], object]

FAULTS: dict[str, tuple[Harm, str, str, str]] = {
    # name: (what is done, in which file, by which check, what is said)
    "a flipped bit": (lambda d: flip(_first(d), 70), ".log", "batch", "checksum"),
    "a torn tail": (
        lambda d: patch(_first(d), _first(d).stat().st_size, b"\0" * 7),
        ".log", "batch", "zero bytes",
    ),
    "offsets that go back": (
        lambda d: resealed(_first(d), 3, at_0=(1).to_bytes(8)), ".log", "offsets", "comes after 5",
    ),
    "records beyond the batch": (
        lambda d: resealed(_first(d), 3, at_23=(0).to_bytes(4)), ".log", "offsets", "ends with 6",
    ),
    "more records than offsets": (
        lambda d: resealed(_first(d), 3, at_23=(0).to_bytes(4)), ".log", "count", "2 records",
    ),
    "a count that is too small": (
        lambda d: resealed(_first(d), 3, at_57=(1).to_bytes(4)), ".log", "records", "left after",
    ),
    "a wrong greatest timestamp": (
        lambda d: resealed(_first(d), 3, at_35=(5).to_bytes(8)), ".log", "timestamp", "header",
    ),
    "a leader epoch that falls": (
        lambda d: patch(_first(d), positions(_first(d))[2] + 12, (9).to_bytes(4)),
        ".log", "epoch", "epoch 0 comes after 9",
    ),
    "attributes that nobody knows": (
        lambda d: resealed(_first(d), 3, at_21=b"\x01\x00"), ".log", "attributes", "0x0100",
    ),
    "an index entry between batches": (
        lambda d: patch(_index(d), 4, (positions(_first(d))[1] + 1).to_bytes(4)),
        ".index", "index", "no batch begins",
    ),
    "an index entry past the end": (
        lambda d: patch(_index(d), 32, struct.pack(">II", 2**20, 2**30)),
        ".index", "index", "no batch begins",
    ),
    "an index entry with a lower offset": (
        lambda d: patch(_index(d), 0, (0).to_bytes(4)), ".index", "index", "where 2 begins",
    ),
    "an index entry with an offset inside": (
        lambda d: patch(_index(d), 0, (2).to_bytes(4)), ".index", "index", "no batch ends",
    ),
    "an index that falls": (
        lambda d: patch(_index(d), 8, struct.pack(">II", 1, 1)), ".index", "index", "not rise",
    ),
    "an index of odd size": (
        lambda d: patch(_index(d), _index(d).stat().st_size, b"abc"),
        ".index", "index", "no whole number",
    ),
    "a time index with a time too early": (
        lambda d: patch(_index(d, ".timeindex"), 0, (NOW_MS - 5).to_bytes(8)),
        ".timeindex", "timeindex", "the greatest timestamp is",
    ),
    "a time index past the end": (
        lambda d: patch(
            _index(d, ".timeindex"), _index(d, ".timeindex").stat().st_size,
            struct.pack(">qI", NOW_MS * 2, 10_000),
        ),
        ".timeindex", "timeindex", "past the end",
    ),
    "a time index that is not complete": (
        lambda d: _index(d, ".timeindex").write_bytes(_index(d, ".timeindex").read_bytes()[:-12]),
        ".timeindex", "timeindex", "but the segment reaches",
    ),
    "a sealed segment without index": (
        lambda d: _index(d).unlink(), ".index", "index", "missing",
    ),
    "an index without segment": (
        lambda d: (d / FOLDER / f"{99:020d}.index").write_bytes(b""),
        ".index", "leftover", "without its segment",
    ),
    "segments that overlap": (
        lambda d: (d / FOLDER / f"{15:020d}.log").write_bytes(
            b"".join(batches([[commit(1)]], 15))
        ),
        ".log", "overlap", "up to 19",
    ),
    "a segment that begins before its name": (
        lambda d: logs_of(d / FOLDER)[2].rename(d / FOLDER / f"{45:020d}.log"),
        ".log", "offsets", "40 comes after 44",
    ),
    "a recovery point beyond the end": (
        lambda d: write_offsets(RealDisk(), f"{d}/{RECOVERY_POINTS}", {KEY: 61}),
        RECOVERY_POINTS, "checkpoint", "61 is beyond the log's end, 60",
    ),
    "a log start beyond the end": (
        lambda d: write_offsets(RealDisk(), f"{d}/log-start-offset-checkpoint", {KEY: 61}),
        "log-start-offset-checkpoint", "checkpoint", "beyond the log's end",
    ),
    "a cleaner in the active segment": (
        lambda d: write_offsets(RealDisk(), f"{d}/cleaner-offset-checkpoint", {KEY: 41}),
        "cleaner-offset-checkpoint", "checkpoint", "active segment",
    ),
    "a checkpoint that lies about its size": (
        lambda d: (d / RECOVERY_POINTS).write_text("0\n2\na 0 1\n"),
        RECOVERY_POINTS, "checkpoint", "2 entries expected",
    ),
    "epochs that fall": (
        lambda d: (d / FOLDER / "leader-epoch-checkpoint").write_bytes(
            encode_epochs([(2, 0), (1, 10)])
        ),
        "leader-epoch-checkpoint", "epochs", "epoch 1 from offset 10 after epoch 2",
    ),
    "an epoch from the future": (
        lambda d: (d / FOLDER / "leader-epoch-checkpoint").write_bytes(
            encode_epochs([(0, 0), (1, 61)])
        ),
        "leader-epoch-checkpoint", "epochs", "begins at 61",
    ),
    "a topic id that is another's": (
        lambda d: (d / FOLDER / "partition.metadata").write_text(
            "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"
        ),
        "partition.metadata", "topic-id", "rollcall-topics.json",
    ),
    "a topic id that is gone": (
        lambda d: (d / FOLDER / "partition.metadata").unlink(),
        "partition.metadata", "topic-id", "missing",
    ),
    "a catalog that cannot be read": (
        lambda d: (d / "rollcall-topics.json").write_text("{"),
        "rollcall-topics.json", "catalog", "JSONDecodeError",
    ),
    "a file of an interrupted cleaning": (
        lambda d: (d / FOLDER / f"{0:020d}.log.cleaned").write_bytes(b""),
        ".cleaned", "leftover", "interrupted",
    ),
    "a swap that was not finished": (
        lambda d: (d / FOLDER / f"{0:020d}.log.swap").write_bytes(b""),
        ".swap", "leftover", "completes",
    ),
    "a deleted segment": (
        lambda d: (d / FOLDER / f"{0:020d}.log.deleted").write_bytes(b""),
        ".deleted", "leftover", "goes",
    ),
    "a half written checkpoint": (
        lambda d: (d / f"{RECOVERY_POINTS}.tmp").write_bytes(b""), ".tmp", "leftover", "replace",
    ),
    "a deleted partition": (
        lambda d: (d / "orders-0.abc-delete").mkdir(), "-delete", "leftover", "deleted partition",
    ),
    "a stray partition": (
        lambda d: (d / "orders-0.abc-stray").mkdir(), "-stray", "leftover", "nobody",
    ),
    "a snapshot that was cut off": (
        lambda d: (d / FOLDER / f"{60:020d}.groups.tmp").write_bytes(b""),
        ".groups.tmp", "leftover", "still counts",
    ),
    "a producer snapshot": (
        lambda d: (d / FOLDER / f"{60:020d}.snapshot").write_bytes(
            struct.pack(">hII", 1, 17, 0)
        ),
        ".snapshot", "snapshot", "checksum",
    ),
    "a snapshot of another size": (
        lambda d: (d / FOLDER / f"{60:020d}.snapshot").write_bytes(
            struct.pack(">hII", 1, google_crc32c.value((2).to_bytes(4)), 2)
        ),
        ".snapshot", "snapshot", "2 entries",
    ),
    "aborted transactions out of order": (
        lambda d: (d / FOLDER / f"{0:020d}.txnindex").write_bytes(
            struct.pack(">hqqqq", 0, 1, 10, 12, 13) + struct.pack(">hqqqq", 0, 1, 3, 5, 13)
        ),
        ".txnindex", "txnindex", "offsets 3 to 5 after 12",
    ),
    "a snapshot of groups that is torn": (
        lambda d: (d / FOLDER / f"{60:020d}.groups").write_bytes(b"RollSnp1 and no more"),
        ".groups", "snapshot", "",
    ),
    "a snapshot of groups that is ahead": (
        lambda d: write_snapshot(
            RealDisk(), str(d / FOLDER), SnapshotHeader(61, TOPIC_ID, 0, NOW_MS, 1, None), []
        ),
        ".groups", "snapshot", "of offset 61",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found(data: Path, name: str) -> None:
    harm, file, check, said = FAULTS[name]
    harm(data)

    found = linted(data)
    assert any(
        finding.check == check and finding.file.endswith(file) and said in finding.problem
        for finding in found
    ), "\n".join(map(str, found))


NOTES = (".cleaned", ".swap", ".deleted", ".tmp", "-delete")


def test_what_the_next_start_puts_right_is_a_note_and_the_rest_is_not(data: Path) -> None:
    for harm, file, check, _ in FAULTS.values():
        if check == "leftover":
            harm(data)
            for finding in linted(data):
                if finding.file.endswith(file):
                    assert finding.is_note == file.endswith(NOTES), finding


def test_notes_alone_are_sound(rollcall: Command, data: Path) -> None:
    (data / f"{RECOVERY_POINTS}.tmp").write_bytes(b"")
    done = rollcall("log", "lint", str(data))
    assert done.exit_code == 0
    assert done.out.endswith("all is sound; 1 note\n")
    (data / "orders-0.abc-stray").mkdir()
    done = rollcall("log", "lint", "--json", str(data))
    assert done.exit_code == 1
    assert [json.loads(line)["is_note"] for line in done.out.splitlines()] == [True, False]
    assert done.err.endswith("1 finding (1 leftover); 1 note\n")


def test_a_position_is_that_of_the_batch_or_the_entry(data: Path) -> None:
    log = _first(data)
    resealed(log, 3, at_35=(5).to_bytes(8))
    (found,) = [finding for finding in linted(data) if finding.check == "timestamp"]
    assert found.position == positions(log)[3]
    assert str(found).startswith(f"{log} at byte {found.position}: timestamp: ")


@pytest.mark.parametrize(
    ("record", "check", "said"),
    [
        (commit(1, group="someone-else"), "home", "group someone-else belongs to partition"),
        (Record(commit(1).key, b"\x00\x09"), "content", "value version 9 is not known"),
        (Record(b"\x00\x01\x00\x40", None), "content", "key"),
        (Record(b"", b""), "content", "no record type"),
    ],
)
def test_records_of_the_offsets_topic_must_be_readable_and_at_home(
    tmp_path: Path, record: Record, check: str, said: str
) -> None:
    made = encode_batch([commit(1), record], 0, NOW_MS)
    folder = write_partition(tmp_path, OFFSETS, PARTITION, [made])
    found = linted(folder)
    assert [(finding.check, finding.position) for finding in found] == [(check, 0)]
    assert "offset 1: " in found[0].problem
    assert said in found[0].problem


def test_a_type_of_a_newer_kafka_is_no_fault_and_neither_is_any_record_of_another_topic(
    tmp_path: Path,
) -> None:
    newer = encode_batch([Record(b"\x00\x63new", b"\x00\x07x")], 0, NOW_MS)
    assert linted(write_partition(tmp_path, OFFSETS, PARTITION, [newer])) == []
    assert linted(write_partition(tmp_path, "orders", 0, [newer])) == []


def test_a_groups_record_is_at_home_too(tmp_path: Path) -> None:
    def record(group: str) -> Record:
        return group_metadata_record(
            GroupId(group),
            protocol_type="consumer",
            generation_id=1,
            protocol_name=None,
            leader_id=None,
            state_since_ms=NOW_MS,
            members=(),
        )

    made = encode_batch([record(GROUP), record("elsewhere")], 0, NOW_MS)
    found = linted(write_partition(tmp_path, OFFSETS, PARTITION, [made]))
    assert ["elsewhere" in finding.problem for finding in found] == [True]


def test_the_number_of_partitions_is_the_catalogs_or_given(data: Path) -> None:
    place = place_at(data, topic=OFFSETS)
    assert list(findings(place, LintCounts(), 50)) == []
    assert {finding.check for finding in findings(place, LintCounts(), 49)} == {"home"}
    catalog = json.loads((data / "rollcall-topics.json").read_text())
    catalog["topics"][0]["partitions"] = 49
    (data / "rollcall-topics.json").write_text(json.dumps(catalog))
    assert {finding.check for finding in linted(data)} == {"home"}


def test_preallocated_indexes_are_sound(data: Path) -> None:
    for suffix, size in ((".index", 8), (".timeindex", 12)):
        active = logs_of(data / FOLDER)[-1].with_suffix(suffix)
        active.write_bytes(active.read_bytes() + bytes(size * 100))
    assert linted(data) == []


def test_gaps_and_empty_batches_as_a_cleaner_leaves_them_are_sound(data: Path) -> None:
    folder = data / FOLDER
    for log in logs_of(folder)[:2]:
        for file in (log, log.with_suffix(".index"), log.with_suffix(".timeindex")):
            file.unlink()
    kept = batches([[commit(1)]], 7)[0]
    empty = bytearray(batches([[commit(1), commit(2)]], 30)[0][:61])
    empty[8:12] = (49).to_bytes(4)
    empty[57:61] = bytes(4)
    empty[17:21] = google_crc32c.value(bytes(empty[21:])).to_bytes(4)
    first = write_segment(folder, [kept, bytes(empty)])
    for suffix in (".log", ".index", ".timeindex"):
        first.with_suffix(suffix).rename(folder / f"{0:020d}{suffix}")
    patch(folder / f"{0:020d}.index", 0, (31).to_bytes(4))  # relative to the name
    time_index = folder / f"{0:020d}.timeindex"
    time_index.write_bytes(
        struct.pack(">qI", NOW_MS + 7_000, 7) + struct.pack(">qI", NOW_MS + 30_000, 31)
    )
    assert [str(finding) for finding in linted(data)] == []


# ---------------------------------------------------------------- the journal


def started(path: Path) -> tuple[LogStore, Journal]:
    store = LogStore(RealDisk(), str(path), lambda _: SMALL_SEGMENTS)
    store.open()
    journal = Journal(
        RealDisk(),
        store,
        on_stored=lambda *_: None,
        on_failed=lambda failure: pytest.fail(str(failure)),
        limits=SMALL_LIMITS,
    )
    journal.recover()
    return store, journal


def append(store: LogStore, journal: Journal, numbers: range) -> None:
    if store.partition_log(KEY) is None:
        store.create(KEY, TOPIC_ID, SMALL_SEGMENTS)
    log = journal.log(KEY)
    for number in numbers:
        log.append([commit(number)], NOW_MS + number)
        assert journal.pump()


@pytest.fixture
def journaled(tmp_path: Path) -> Path:
    """A data directory whose daemon was killed: the journal holds what it promised."""
    path = tmp_path / "journaled"
    path.mkdir()
    store, journal = started(path)
    append(store, journal, range(5))
    store.abandon("killed")
    return path


def journal_checks(path: Path) -> list[str]:
    return [finding.problem for finding in linted(path) if finding.check == "journal"]


def test_a_killed_daemons_files_are_sound(journaled: Path) -> None:
    assert linted(journaled) == []


def test_what_the_segments_lack_at_their_end_is_no_fault(journaled: Path) -> None:
    (log,) = logs_of(journaled / FOLDER)
    for keep in (3, 1, 0):
        log.write_bytes(log.read_bytes()[: positions(log)[keep]] if positions(log) else b"")
        assert linted(journaled) == []


def test_a_promised_batch_that_is_another_now_is_found(journaled: Path) -> None:
    (log,) = logs_of(journaled / FOLDER)
    resealed(log, 2, at_27=(NOW_MS - 1).to_bytes(8), at_35=(NOW_MS - 1).to_bytes(8))
    assert journal_checks(journaled) == ["offset 2 is not the batch that was promised"]


def test_what_lies_between_the_segments_and_the_journal_is_missed(tmp_path: Path) -> None:
    store, journal = started(tmp_path)
    append(store, journal, range(3))
    assert journal.close()
    assert store.close() == []
    store, journal = started(tmp_path)
    append(store, journal, range(3, 5))
    store.abandon("killed")
    assert linted(tmp_path) == []

    (log,) = logs_of(tmp_path / FOLDER)
    log.write_bytes(log.read_bytes()[: positions(log)[2]])
    (tmp_path / RECOVERY_POINTS).unlink()  # which would be a finding of its own
    (problem,) = journal_checks(tmp_path)
    assert problem.endswith(
        "ends before offset 2, the journal goes on at 3: what lies between is lost"
    )


def _group_positions(path: Path) -> list[int]:
    content = (path / "rollcall-journal.wal").read_bytes()
    return [at for at in range(FIRST_GROUP, len(content), 512) if content[at : at + 4] == b"RlGr"]


def test_a_damaged_group_with_others_behind_it_is_found(journaled: Path) -> None:
    wal = journaled / "rollcall-journal.wal"
    flip(wal, _group_positions(journaled)[1] + 60)
    (problem,) = journal_checks(journaled)
    assert "damaged" in problem
    assert linted(journaled)[0].file == str(wal)


def test_a_torn_last_group_was_never_promised(journaled: Path) -> None:
    wal = journaled / "rollcall-journal.wal"
    flip(wal, _group_positions(journaled)[-1] + 60)
    assert linted(journaled) == []


# ---------------------------------------------------------------- the command


def test_nothing_is_changed(journaled: Path, data: Path) -> None:
    for path in (journaled, data):
        before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
        linted(path)
        assert {file: file.read_bytes() for file in path.rglob("*") if file.is_file()} == before


def test_the_commands_exit_code_and_report(data: Path, rollcall: Command) -> None:
    sound = rollcall("log", "lint", str(data))
    assert sound.exit_code == 0
    assert "30 batches, 60 records: all is sound" in sound.out

    log = _first(data)
    flip(log, 70)
    wrong = rollcall("log", "lint", str(data))
    assert wrong.exit_code == 1
    assert f"{log} at byte 0: batch: " in wrong.out
    assert wrong.out.splitlines()[-1].endswith("29 batches, 58 records: 1 finding (1 batch)")

    as_json = rollcall("log", "lint", "--json", str(data))
    assert as_json.exit_code == 1
    first = json.loads(as_json.out.splitlines()[0])
    assert (first["file"], first["position"], first["check"]) == (str(log), 0, "batch")


def test_a_running_daemon_is_reported_and_a_killed_one_leaves_sound_files(
    start_daemon: StartDaemon, rollcall: Command
) -> None:
    daemon = start_daemon()
    shown = rollcall("log", "lint", str(daemon.data_dir))
    assert shown.exit_code == 0, shown.out
    assert f"a daemon runs on {daemon.data_dir}" in shown.err
    daemon.kill()
    shown = rollcall("log", "lint", str(daemon.data_dir))
    assert shown.exit_code == 0, shown.out
    assert "a daemon runs" not in shown.err


def test_room_that_was_preallocated_costs_nothing_and_hides_nothing(data: Path) -> None:
    index = _index(data)
    written = index.read_bytes()
    with index.open("r+b") as file:
        file.truncate(10 << 20)
    check = OffsetIndexCheck(index, int(index.stem))
    assert len(check._entries) == len(written) // 8
    assert linted(data) == []
    with index.open("r+b") as file:  # behind a hole
        file.seek(5 << 20)
        file.write(b"\x00\x00\x00\x01\x00\x00\x00\x01")
    assert "index" in {finding.check for finding in linted(data)}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"version: 1\ntopic_id: AAAAAAAAQACAAAAAAAAAAQ",
        b"version: 0\ntopic_id: AAAAAAAAQACAAAAAAAAA",
        b"version: 0\ntopic_id: AAAAAAAAQACAAAAAAAAAAQ\nmore: 1",
        b"version: 0\ntopic_id: \xff\xfe",
        b"topic_id: AAAAAAAAQACAAAAAAAAAAQ",
        b"version: 0\ntopic_id: AAAAAAAAQACAA\0\0\0\0\0\0\0\0\0",
    ],
)
@pytest.mark.parametrize("part", ["", FOLDER])
def test_damaged_partition_metadata_is_found(data: Path, content: bytes, part: str) -> None:
    (data / FOLDER / "partition.metadata").write_bytes(content)
    found = [finding for finding in linted(data / part) if not finding.is_note]
    assert {finding.check for finding in found} == {"topic-id"}


@pytest.mark.parametrize(
    ("epochs", "says"),
    [
        ([(-1, 0), (0, 0)], "epoch -1 from offset 0"),
        ([(7, 0)], "was written in epoch 0, which is not there"),
        ([(0, 50)], "epoch 0 from offset 50, but it wrote offset 0"),
    ],
)
def test_leader_epochs_that_the_batches_contradict(
    data: Path, epochs: list[tuple[int, int]], says: str
) -> None:
    (data / FOLDER / "leader-epoch-checkpoint").write_bytes(encode_epochs(epochs))
    (finding,) = linted(data)
    assert finding.check == "epochs"
    assert says in finding.problem


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ((1, 5, 0, 3, 4), "version 1"),
        ((0, 5, 4, 3, 4), "offsets 4 to 3"),
        ((0, -1, 0, 3, 4), "producer -1"),
        ((0, 5, 0, 3, 9), "last stable offset 9"),
        ((0, 5, 0, 3, 4), "offset 3 is no marker of producer 5"),
        ((0, 5, 0, 1_000, 4), "offset 1000 is past the end, 59"),
    ],
)
def test_aborted_transactions_that_cannot_be_true(
    data: Path, entry: tuple[int, ...], says: str
) -> None:
    last = max((data / FOLDER).glob("*.log"))
    for log in (data / FOLDER).glob("*.log"):
        log.with_suffix(".txnindex").write_bytes(b"")
    first = min((data / FOLDER).glob("*.log"))
    at = last if entry[3] > 59 else first
    at.with_suffix(".txnindex").write_bytes(struct.pack(">hqqqq", *entry))
    (finding,) = linted(data)
    assert finding.check == "txnindex"
    assert says in finding.problem


def test_a_log_that_grows_while_it_is_read_is_sound(
    journaled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Everything that names offsets is read before the log; what comes later is beyond the end.
    segments = PartitionLint.segments

    def meanwhile(lint: PartitionLint) -> Iterator[Finding]:
        yield from segments(lint)
        assert lint.place.folder is not None
        key = TopicPartition(lint.place.topic, lint.place.partition or 0)
        write_offsets(RealDisk(), f"{journaled}/{RECOVERY_POINTS}", {key: 10_000})
        epochs = encode_epochs([(0, 0), (1, 10_000)])
        (lint.place.folder / "leader-epoch-checkpoint").write_bytes(epochs)

    monkeypatch.setattr(PartitionLint, "segments", meanwhile)
    found = {finding.check for finding in linted(journaled) if not finding.is_note}
    assert found.isdisjoint({"checkpoint", "epochs"})


def test_a_compacted_log_whose_start_retention_has_moved_is_sound(tmp_path: Path) -> None:
    """cleanup.policy=compact,delete: the cleaner goes on from the log's start, and says nothing."""
    settings = LogSettings(segment_bytes=300, index_interval_bytes=64, retention_ms=1)
    store = LogStore(RealDisk(), str(tmp_path), lambda _: settings)
    store.open()
    log = store.create(TopicPartition("mixed", 0), TOPIC_ID, settings)
    for number in range(12):
        log.append(encode_batch([Record(b"k", b"v" * 40)], number, NOW_MS), NOW_MS)
    store.set_clean_offsets({log: log.segments[1].base_offset})
    assert log.enforce_retention(NOW_MS + 5) > 2
    assert store.close() == []
    assert [finding for finding in linted(tmp_path) if not finding.is_note] == []

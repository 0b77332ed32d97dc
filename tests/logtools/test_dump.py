"""Dump: `rollcall log dump` shows every record as Kafka's tool shows it, and omits none."""

import io
import json
import os
import struct
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from coordinator.classic.generation_record import generation_record, generation_tombstone
from coordinator.classic.group import ClassicMember
from history.encoding import encode
from history.entries import GroupDeletedEntry
from history.lag.records import Sample, encode_sample
from history.lag.window import SampledCommit
from logtools.decoders import DECODERS, decoder_for
from logtools.dump import Wanted, dump
from logtools.layout import NoSuchLog, place_at
from logtools.walk import Batch, DamagedBytes, walk
from protocol.names import GenerationId, GroupId, MemberId
from storage.api import Record
from storage.batch.record_batch import CONTROL_FLAG, TRANSACTIONAL_FLAG, encode_batch
from tests.cli.test_command import Command, rollcall
from tests.coordinator.golden.recorded import Recorded, recorded
from tests.logtools.logs import (
    GROUP,
    NOW_MS,
    OFFSETS,
    PARTITION,
    batches,
    commit,
    flip,
    logs_of,
    patch,
    positions,
    tombstone,
    write_data_dir,
    write_partition,
    write_segment,
)

__all__ = ["rollcall"]  # the fixture
ROLLCALL = Path(sys.executable).with_name("rollcall")
GOLDEN = Path(__file__).parents[1] / "storage" / "golden"
EVERY_RECORD = [*recorded("kafka_writes.json"), *recorded("kafka_reads.json")]


def dumped(path: Path, *, topic: str = OFFSETS, **wanted: object) -> tuple[list[dict], list]:
    damage: list[tuple[Path, DamagedBytes]] = []
    lines = dump(
        place_at(path, topic=topic),
        Wanted(**wanted),
        lambda file, found: damage.append((file, found)),
    )
    return list(lines), damage


# ---------------------------------------------------------------- decoding


@pytest.mark.parametrize("entry", EVERY_RECORD, ids=str)
def test_every_record_is_shown_as_kafkas_tool_shows_it(entry: Recorded) -> None:
    shown = decoder_for(OFFSETS)(*entry.record)

    assert shown.problem is None
    assert shown.key == {**entry.printed_key, "type": int(entry.printed_key["type"])}
    if entry.printed_value is None:
        assert shown.value is None
    else:
        version = int(entry.printed_value["version"])
        assert shown.value == {**entry.printed_value, "version": version}


def test_our_own_record_type_is_shown_with_its_name() -> None:
    member = ClassicMember(
        member_id=MemberId("m"),
        group_instance_id=None,
        client_id="app",
        client_host="/h",
        session_timeout_ms=1,
        rebalance_timeout_ms=2,
        protocol_type="consumer",
        protocols=(("range", b"\x00\x01"),),
    )
    group, protocol = GroupId("g"), ("consumer", "range")
    made = generation_record(group, GenerationId(3), protocol, MemberId("m"), NOW_MS, [member])
    shown = decoder_for(OFFSETS)(*made)

    assert (shown.kind, shown.group) == ("GenerationBegun", "g")
    assert shown.value["data"]["generation"] == 3
    assert shown.value["data"]["members"][0]["protocols"] == [{"name": "range", "metadata": "AAE="}]
    assert decoder_for(OFFSETS)(*generation_tombstone(group)).value is None


@pytest.mark.parametrize(
    ("key", "value", "kind", "shown_key", "shown_value", "problem"),
    [
        (b"\x00\x63new", b"\x00\x07x", "Unknown", {"type": 99, "bytes": "bmV3"},
         {"version": 7, "bytes": "eA=="}, None),
        (b"\x00\x63new", None, "Unknown", {"type": 99, "bytes": "bmV3"}, None, None),
        (commit(1).key, b"\x00\x09x", "OffsetCommit", None, {"version": 9, "bytes": "eA=="},
         "value version 9 is not known"),
        (commit(1).key, b"\x00\x04\x00", "OffsetCommit", None, {"version": 4, "bytes": "AA=="}, ""),
        (commit(1).key, b"", "OffsetCommit", None, {"bytes": ""}, "too short"),
        (b"\x00\x01\x00\x09ab", b"\x00\x04", "OffsetCommit", {"type": 1, "bytes": "AAlhYg=="},
         {"version": 4, "bytes": ""}, "key"),
        (b"\x00", b"x", "Unknown", {"bytes": "AA=="}, {"bytes": "eA=="}, "no record type"),
        (None, None, "Unknown", None, None, "no record type"),
    ],
)  # fmt: skip
def test_what_cannot_be_understood_is_shown_by_its_bytes(
    key, value, kind, shown_key, shown_value, problem
) -> None:
    shown = decoder_for(OFFSETS)(key, value)

    assert shown.kind == kind
    if shown_key is not None or key is None:
        assert shown.key == shown_key
    assert shown.value == shown_value
    assert (shown.problem is None) == (problem is None)
    assert (problem or "") in (shown.problem or "")


def test_embedded_bytes_that_are_no_consumers_stay_base64() -> None:
    opaque = [e for e in EVERY_RECORD if "AAFvcGFxdWU=" in json.dumps(e.printed_value)]
    assert opaque, "the golden files have a consumer group with opaque bytes"


def test_the_topics_of_the_history_are_decoded() -> None:
    key, value = encode(GroupDeletedEntry(GroupId("g"), NOW_MS, expired=True))
    shown = decoder_for("__group_history")(key, value)
    assert shown.group == "g"
    assert shown.value["expired"] is True
    assert shown.kind != "Unknown"

    made = encode_sample(Sample("g", "orders", NOW_MS, False, {2: [SampledCommit(NOW_MS, 7, 3)]}))
    shown = decoder_for("__group_lag")(*made)
    assert (shown.group, shown.topic) == ("g", "orders")
    assert shown.value["partitions"] == [
        {"partition": 2, "commits": [{"at": NOW_MS, "offset": 7, "lag": 3}]}
    ]
    for topic in ("__group_history", "__group_lag"):
        assert DECODERS[topic](b"g", b"\xc1 no msgpack").problem
        assert DECODERS[topic](b"g", b"\xc1 no msgpack").value == {"bytes": "wSBubyBtc2dwYWNr"}


def test_other_topics_are_text_or_base64(tmp_path: Path) -> None:
    made = encode_batch([Record(b"k", "é".encode()), Record(b"\xff", None)], 0, NOW_MS)
    write_partition(tmp_path, "orders", 3, [made])

    lines, _ = dumped(tmp_path)
    assert [(line["key"], line["value"]) for line in lines] == [
        ("k", "é"),
        ({"bytes": "/w=="}, None),
    ]
    assert {(line["topic"], line["partition"], line["type"]) for line in lines} == {
        ("orders", 3, "Record")
    }


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("client", ["java", "kafka-python", "librdkafka"])
def test_compressed_batches_are_read(tmp_path: Path, client: str, codec: str) -> None:
    log = tmp_path / f"{0:020d}.log"
    log.write_bytes((GOLDEN / f"{client}-{codec}.log").read_bytes())

    lines, damage = dumped(log, topic="any", with_batches=True)
    assert damage == []
    assert {line["batch"]["compresscodec"] for line in lines if "batch" in line} == {codec}
    assert len(lines) > 2
    assert any("the same words" in str(line.get("value")) for line in lines)


def test_headers_are_shown(tmp_path: Path) -> None:
    log = tmp_path / f"{0:020d}.log"
    log.write_bytes((GOLDEN / "kafka-python-none.log").read_bytes())
    lines, _ = dumped(log, topic="any")
    assert [line["headers"] for line in lines if "headers" in line] == [
        [{"key": "first", "value": "1"}, {"key": "empty", "value": ""}]
    ]


def test_control_and_transactional_records(tmp_path: Path) -> None:
    marker = struct.pack(">hh", 0, 1), struct.pack(">hi", 0, 5)
    made = [
        encode_batch([commit(1)], 0, NOW_MS, 0, 900, 2, 0, TRANSACTIONAL_FLAG),
        encode_batch(
            [Record(*marker)], 1, NOW_MS, 0, 900, 2, -1, TRANSACTIONAL_FLAG | CONTROL_FLAG
        ),
    ]
    write_partition(tmp_path, OFFSETS, PARTITION, made)

    data, control = dumped(tmp_path)[0]
    assert data["producerId"] == 900
    assert data["isTransactional"] is True
    assert control["type"] == "Control"
    assert control["key"] == {"version": 0, "type": "COMMIT"}
    assert control["value"] == {"version": 0, "data": {"coordinatorEpoch": 5}}
    assert [line["offset"] for line in dumped(tmp_path, kinds=frozenset({"control"}))[0]] == [1]


def test_a_real_kafkas_segment(tmp_path: Path) -> None:
    log = tmp_path / f"{0:020d}.log"
    log.write_bytes((GOLDEN / "consumer-offsets.log").read_bytes())
    lines, damage = dumped(log)
    assert damage == []
    assert [line["offset"] for line in lines] == list(range(len(lines)))
    assert {line["type"] for line in lines} == {"OffsetCommit", "GroupMetadata"}
    members = [
        member
        for line in lines
        if line["type"] == "GroupMetadata" and line["value"]
        for member in line["value"]["data"]["members"]
    ]
    assert members
    assert all(isinstance(member["assignment"], dict) for member in members)


# ---------------------------------------------------------------- filters


@pytest.fixture
def two_groups(tmp_path: Path) -> Path:
    made = batches(
        [
            [commit(10, 0), commit(20, 1)],
            [commit(30, 0, group="audit", topic="payments")],
            [tombstone(1), commit(40, 0)],
        ]
    )
    return write_partition(tmp_path, OFFSETS, PARTITION, made)


@pytest.mark.parametrize(
    ("wanted", "offsets"),
    [
        ({}, [0, 1, 2, 3, 4]),
        ({"groups": frozenset({"audit"})}, [2]),
        ({"groups": frozenset({"audit", GROUP})}, [0, 1, 2, 3, 4]),
        ({"groups": frozenset({"nobody"})}, []),
        ({"topics": frozenset({("payments", None)})}, [2]),
        ({"topics": frozenset({("orders", 1)})}, [1, 3]),
        ({"kinds": frozenset({"offsetcommit"})}, [0, 1, 2, 3, 4]),
        ({"kinds": frozenset({"1"})}, [0, 1, 2, 3, 4]),
        ({"kinds": frozenset({"2", "groupmetadata"})}, []),
        ({"from_offset": 1}, [1, 2, 3, 4]),
        ({"since_ms": NOW_MS + 2_000}, [2, 3, 4]),
        ({"until_ms": NOW_MS + 2_000}, [0, 1, 2]),
        ({"since_ms": NOW_MS + 1, "until_ms": NOW_MS + 2_999}, [2]),
    ],
)
def test_filters(two_groups: Path, wanted: dict, offsets: list[int]) -> None:
    lines, _ = dumped(two_groups, **wanted)
    assert [line["offset"] for line in lines] == offsets


def test_batches_come_before_their_records_or_alone(two_groups: Path) -> None:
    lines, _ = dumped(two_groups, with_batches=True)
    assert [("batch" in line) for line in lines] == [
        True,
        False,
        False,
        True,
        False,
        True,
        *[False] * 2,
    ]
    facts = lines[0]["batch"]
    assert (facts["baseOffset"], facts["lastOffset"], facts["count"]) == (0, 1, 2)
    assert facts["position"] == 0

    lines, _ = dumped(two_groups, with_batches=True, with_records=False)
    assert [line["batch"]["baseOffset"] for line in lines] == [0, 2, 3]


def test_segments_before_the_first_wanted_offset_are_not_read(tmp_path: Path) -> None:
    write_data_dir(tmp_path)
    folder = tmp_path / f"{OFFSETS}-{PARTITION}"
    first = logs_of(folder)[0]
    first.write_bytes(b"nothing that could be read")
    lines, damage = dumped(folder, from_offset=25)
    assert damage == []
    assert [line["offset"] for line in lines] == list(range(25, 60))


# ---------------------------------------------------------------- damage


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A segment of ten batches with one record each."""
    folder = tmp_path / f"{OFFSETS}-{PARTITION}"
    folder.mkdir()
    return write_segment(folder, batches([[commit(n)] for n in range(10)]))


def offsets_and_damage(log: Path) -> tuple[list[int], list[tuple[int, int]]]:
    lines, damage = dumped(log)
    return [line["offset"] for line in lines], [(d.position, d.size) for _, d in damage]


def test_a_batch_with_a_wrong_checksum_costs_only_itself(log: Path) -> None:
    third, fourth = positions(log)[3:5]
    flip(log, third + 70)
    offsets, damage = offsets_and_damage(log)
    assert offsets == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert damage == [(third, fourth - third)]


@pytest.mark.parametrize("length", [b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x00\x00\x00\x01"])
def test_a_batch_with_a_wrong_length_costs_only_itself(log: Path, length: bytes) -> None:
    third, fourth = positions(log)[3:5]
    patch(log, third + 8, length)
    offsets, damage = offsets_and_damage(log)
    assert offsets == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert damage == [(third, fourth - third)]


def test_bytes_between_batches_are_passed_over(log: Path) -> None:
    third = positions(log)[3]
    content = log.read_bytes()
    junk = b"\x02" * 100
    log.write_bytes(content[:third] + junk + content[third:])
    assert offsets_and_damage(log) == (list(range(10)), [(third, len(junk))])


def test_a_torn_tail_is_reported_and_nothing_else_is_lost(log: Path) -> None:
    last = positions(log)[-1]
    content = log.read_bytes()
    for size in (1, 16, 60, 61, len(content) - last - 1):
        log.write_bytes(content[: last + size])
        assert offsets_and_damage(log) == (list(range(9)), [(last, size)])


def test_zeros_at_the_end_are_reported_as_such(log: Path) -> None:
    end = log.stat().st_size
    log.write_bytes(log.read_bytes() + bytes(5_000))
    lines, [(_, damage)] = dumped(log)
    assert len(lines) == 10
    assert (damage.position, damage.size) == (end, 5_000)
    assert "zero bytes" in damage.reason


def test_an_old_format_is_named(log: Path) -> None:
    patch(log, 16, b"\x01")
    _, [(_, damage)] = dumped(log)
    assert "magic 1" in damage.reason


def test_records_that_are_not_what_the_header_says_are_damage(tmp_path: Path) -> None:
    import google_crc32c

    folder = tmp_path / f"{OFFSETS}-{PARTITION}"
    folder.mkdir()
    batch = bytearray(batches([[commit(1), commit(2)]])[0])
    batch[57:61] = (3).to_bytes(4)  # a record more than there are
    batch[17:21] = google_crc32c.value(bytes(batch[21:])).to_bytes(4)
    (folder / f"{0:020d}.log").write_bytes(bytes(batch))
    assert offsets_and_damage(folder) == ([], [(0, len(batch))])


def test_a_file_that_grows_while_it_is_read_is_no_damage(log: Path) -> None:
    content = log.read_bytes()
    last = positions(log)[-1]
    log.write_bytes(content[: last + 30])  # half of a write is there
    found = []
    for entry in walk(log):
        found.append(entry)
        if len(found) == 9:
            log.write_bytes(content)
    assert all(isinstance(entry, Batch) for entry in found)
    assert len(found) == 10


def test_memory_does_not_grow_with_the_log(tmp_path: Path) -> None:
    folder = tmp_path / f"{OFFSETS}-{PARTITION}"
    folder.mkdir()
    blob = b"".join(batches([[commit(n, p) for p in range(50)] for n in range(800)]))
    (folder / f"{0:020d}.log").write_bytes(blob)
    assert len(blob) > 2_900_000
    place = place_at(folder, topic=OFFSETS)
    tracemalloc.start()
    count = sum(1 for _ in dump(place, Wanted(), lambda *_: None))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 40_000
    assert peak < 2_500_000  # the chunk that is being read, and a batch


# ---------------------------------------------------------------- the command


def test_the_command_prints_json_lines(tmp_path: Path, rollcall: Command) -> None:
    write_data_dir(tmp_path)
    done = rollcall("log", "dump", str(tmp_path), "--group", GROUP, "--topic", "orders:1")
    assert done.exit_code == 0, done.err
    lines = [json.loads(line) for line in done.out.splitlines()]
    assert [line["offset"] for line in lines] == list(range(1, 60, 2))
    assert lines[-1]["value"]["data"]["offset"] == 29
    assert lines[-1]["value"]["data"]["topicId"] == "YXRvbWljRnKpY2tsZXMwMg"


def test_the_command_reports_damage_and_exits_with_1(tmp_path: Path, rollcall: Command) -> None:
    write_data_dir(tmp_path)
    log = logs_of(tmp_path / f"{OFFSETS}-{PARTITION}")[1]
    position = positions(log)[2]
    flip(log, position + 70)
    done = rollcall("log", "dump", str(tmp_path))
    assert done.exit_code == 1
    assert len(done.out.splitlines()) == 58
    assert f"{log} at byte {position}: " in done.err
    assert "checksum" in done.err


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("dump", "/nowhere/at/all"), "does not exist"),
        (("dump", __file__), "is no segment"),
        (("dump", "."), "PATH"),
        (("dump",), "PATH"),
        (("dump", "DATA", "--type", "nonsense"), "nonsense"),
        (("dump", "DATA", "--since", "yesterday"), "yesterday"),
        (("dump", "DATA", "--topic", "orders:x"), "orders:x"),
        (("dump", "DATA", "--log-topic", "orders"), "has no such log"),
        (("dump", "DATA", "--partition", "-1"), "--partition"),
        (("lint", "/nowhere/at/all"), "does not exist"),
        (("stat", "/nowhere/at/all"), "does not exist"),
        (("stat", "DATA", "--top", "0"), "--top"),
    ],
)
def test_a_wrong_command_is_one_line_and_exit_code_2(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    rollcall: Command,
    arguments: tuple[str, ...],
    named: str,
) -> None:
    write_data_dir(tmp_path / "data")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    given = [str(tmp_path / "data") if word == "DATA" else word for word in arguments]
    refused = rollcall("log", *given)
    assert refused.exit_code == 2
    assert refused.out == ""
    assert refused.err.count("\n") == 1
    if named != "PATH":
        assert named in refused.err


@pytest.mark.parametrize(
    ("text", "offsets"),
    [
        (str(NOW_MS + 58_000), [58, 59]),
        ("2026-09-21T14:14:18", [58, 59]),
        ("2026-09-21 16:14:18+02:00", [58, 59]),
    ],
)
def test_times_are_written_in_several_ways(
    tmp_path: Path, rollcall: Command, text: str, offsets: list[int]
) -> None:
    write_data_dir(tmp_path)
    done = rollcall("log", "dump", str(tmp_path), "--since", text)
    assert [json.loads(line)["offset"] for line in done.out.splitlines()] == offsets
    assert rollcall("log", "dump", str(tmp_path), "--until", "90000d ago").out == ""


def test_a_closed_pipe_ends_the_command_quietly(tmp_path: Path) -> None:
    folder = tmp_path / f"{OFFSETS}-{PARTITION}"
    folder.mkdir()
    made = batches([[commit(n, p) for p in range(100)] for n in range(100)])
    (folder / f"{0:020d}.log").write_bytes(b"".join(made))
    with subprocess.Popen(
        [ROLLCALL, "log", "dump", folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert json.loads(process.stdout.readline())["offset"] == 0
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 0


def test_a_command_whose_standard_output_was_closed_does_its_work(tmp_path: Path) -> None:
    folder = tmp_path / f"{OFFSETS}-{PARTITION}"
    folder.mkdir()
    (folder / f"{0:020d}.log").write_bytes(b"".join(batches([[commit(1)]])))

    command = ["sh", "-c", 'exec "$@" >&-', "sh", ROLLCALL, "log", "dump", folder]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)

    assert (done.returncode, done.stderr) == (0, b"")


def test_the_name_of_a_topic_is_required_where_no_folder_has_it(tmp_path: Path) -> None:
    log = write_segment(tmp_path, batches([[commit(1)]]))
    lines, _ = dumped(log)
    assert lines[0]["topic"] == OFFSETS
    assert "partition" not in lines[0]
    lines, _ = dumped(log, topic="other")
    assert lines[0]["type"] == "Record"


def test_only_segments_and_folders_are_taken(tmp_path: Path) -> None:
    with pytest.raises(NoSuchLog):
        place_at(tmp_path, topic=OFFSETS)
    (tmp_path / "orders-0").mkdir()
    assert place_at(tmp_path, topic=OFFSETS).partitions[0].segments == ()
    gone = tmp_path / f"{5:020d}.log.deleted"
    gone.write_bytes(batches([[commit(1)]], 5)[0])
    assert place_at(gone, topic=OFFSETS).partitions[0].segments[0].base_offset == 5


def test_output_is_ascii_and_a_line_each(tmp_path: Path, rollcall: Command) -> None:
    made = encode_batch([commit(1, group="g-é\n"), Record(b"\x00\x63\xff", b"\xff\xff")], 0, NOW_MS)
    write_partition(tmp_path, OFFSETS, PARTITION, [made])
    done = rollcall("log", "dump", str(tmp_path))
    assert done.out.isascii()
    assert [json.loads(line)["key"] for line in io.StringIO(done.out)] == [
        {"type": 1, "data": {"group": "g-é\n", "topic": "orders", "partition": 0}},
        {"type": 99, "bytes": "/w=="},
    ]


@pytest.mark.parametrize("command", ["dump", "lint", "stat", "clean"])
def test_each_command_explains_itself(rollcall: Command, command: str) -> None:
    shown = rollcall("log", command, "--help")
    assert shown.exit_code == 0
    assert "Examples:\n  " in shown.out.replace("\n    rollcall", "\n  rollcall")
    assert f"rollcall log {command} " in shown.out
    assert f"  {command} " in rollcall("log", "--help").out


@pytest.mark.parametrize(
    ("words", "word", "expected"),
    [
        ("rollcall log ", "", {"dump", "lint", "stat", "clean"}),
        ("rollcall log dump --t", "--t", {"--topic", "--type"}),
        ("rollcall log dump --type Offset", "Offset", {"OffsetCommit"}),
        ("rollcall log stat --l", "--l", {"--log-topic"}),
    ],
)
def test_the_shell_completes(words: str, word: str, expected: set[str]) -> None:
    asked = {
        **os.environ,
        "_ROLLCALL_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - (1 if word else 0)),
    }
    completed = subprocess.run(
        [ROLLCALL], env=asked, capture_output=True, text=True, check=True
    ).stdout
    assert {line.partition(",")[2] for line in completed.splitlines()} == expected


@pytest.mark.parametrize("command", ["dump", "lint", "stat"])
def test_a_file_that_a_cleaner_takes_away_meanwhile_is_one_line(
    tmp_path: Path, rollcall: Command, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    write_data_dir(tmp_path)
    taken = logs_of(tmp_path / f"{OFFSETS}-{PARTITION}")[1]
    place = place_at(tmp_path, topic=OFFSETS)
    monkeypatch.setattr("cli.log_options.place_at", lambda *_, **__: place)
    taken.unlink()  # after it was listed
    done = rollcall("log", command, str(tmp_path))
    assert done.exit_code == 1
    assert done.err.count("\n") == 1
    assert f"{taken} is gone" in done.err

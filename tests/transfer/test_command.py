"""Offsets commands: `rollcall offsets import` and `export`: reports and exit codes."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from seams.java_hash import partition_of
from storage.batch.record_batch import encode_batch
from storage.data_dir import DataDir
from storage.repair.repair_plan import REPAIR_FILE
from storage.repair.rollback_journal import ROLLBACK_JOURNAL_FILE
from tests.cli.test_command import Command, Outcome
from tests.transfer.given import (
    NOW_MS,
    classic_group,
    foreign_record,
    offset_record,
    read,
    shown,
    transactional,
    write_segment,
)

Rollcall = Callable[..., Outcome]


@pytest.fixture
def rollcall(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(monkeypatch, capsys)


@pytest.fixture
def kafka(tmp_path: Path) -> Path:
    """A stopped Kafka's log directory with a few groups of different kinds."""
    directory = tmp_path / "kafka"
    by_partition: dict[int, list] = {}
    records = {
        "billing": [classic_group("billing"), offset_record("billing", "orders", 0, 5)],
        "audit": [offset_record("audit", "orders", 1, 7, version=3)],
        "modern": [
            foreign_record(11, "modern", bytes(14)),
            offset_record("modern", "orders", 2, 9),
        ],
    }
    for group_id, own in records.items():
        by_partition.setdefault(partition_of(group_id, 50), []).extend(own)
    for partition, some in by_partition.items():
        write_segment(directory, partition, 0, encode_batch(some, 0, NOW_MS))
    open_partition = partition_of("open", 50)
    assert open_partition not in by_partition
    pending = transactional([offset_record("open", "orders", 0, 1)], 0, 7)
    write_segment(directory, open_partition, 0, pending)
    return directory


OFFSETS = {"billing": {("orders", 0): 5}, "audit": {("orders", 1): 7}, "modern": {("orders", 2): 9}}


def imported(rollcall: Rollcall, kafka: Path, data: Path, *more: str) -> dict:
    done = rollcall(
        "offsets", "import", "--from", str(kafka), "--data-dir", str(data), "--json", *more
    )
    assert done.exit_code == 0, done.err
    return json.loads(done.out)


def exported(rollcall: Rollcall, data: Path, *more: str) -> dict:
    done = rollcall("offsets", "export", "--json", "-", "--data-dir", str(data), *more)
    assert done.exit_code == 0, done.err
    return json.loads(done.out)


def test_an_import_reports_what_it_found_and_wrote(
    rollcall: Rollcall, kafka: Path, tmp_path: Path
) -> None:
    report = imported(rollcall, kafka, tmp_path / "data")
    assert report["done"] is True
    assert report["offsets"] == 3
    assert {kind: n for kind, n in report["groups"].items() if n} == {
        "classic": 1,
        "share": 1,
        "simple": 1,
    }
    assert report["kept_records"] == {"ShareGroupMetadata": 1}
    assert report["source"]["records_by_type"]["OffsetCommit"] == {"v3": 1, "v4": 2}
    assert report["source"]["transactions"]["pending"] == [
        {"group": "open", "topic": "orders", "partition": 0, "offset": 1, "producer_id": 7}
    ]
    assert report["plan"]["topic_ids_dropped"] == 2
    assert report["written"]["records"] == 5
    contents, _ = read(tmp_path / "data")
    assert shown(contents) == OFFSETS
    assert exported(rollcall, tmp_path / "data")["groups"][0]["group"] == "audit"


def test_the_report_for_people_names_what_must_not_be_missed(
    rollcall: Rollcall, kafka: Path, tmp_path: Path
) -> None:
    done = rollcall("offsets", "import", "--from", str(kafka), "--data-dir", str(tmp_path / "data"))
    assert done.exit_code == 0
    for words in (
        "3 groups (1 classic, 1 share, 1 simple), 3 offsets",
        "1 record of types not served, kept as they are: ShareGroupMetadata 1",
        "pending       open orders-0 at 1 (producer 7)",
        "wrote         5 records, 3 new groups, 2 foreign topic ids dropped",
        "done          3 batches",
    ):
        assert words in done.out


def test_a_rehearsal_writes_nothing(rollcall: Rollcall, kafka: Path, tmp_path: Path) -> None:
    report = imported(rollcall, kafka, tmp_path / "data", "--dry-run")
    assert (report["done"], report["written"]) == (False, None)
    assert report["plan"]["groups_added"] == 3
    assert not (tmp_path / "data").exists()
    # Nor into one that is there.
    imported(rollcall, kafka, tmp_path / "data", "--group", "audit")
    imported(rollcall, kafka, tmp_path / "data", "--merge", "--dry-run")
    contents, _ = read(tmp_path / "data")
    assert set(contents.groups) == {"audit"}


def test_groups_are_chosen_by_glob_and_by_expression(
    rollcall: Rollcall, kafka: Path, tmp_path: Path
) -> None:
    chosen = ("--group", "re:(audit|modern|bill.*)", "--exclude", "mod*")
    report = imported(rollcall, kafka, tmp_path / "data", *chosen)
    assert report["groups_left_out"] == 1
    names = [group["group"] for group in exported(rollcall, tmp_path / "data")["groups"]]
    assert names == ["audit", "billing"]
    bad = rollcall("offsets", "export", "--json", "-", "--group", "re:(", "--data-dir", "x")
    assert bad.exit_code == 2
    assert "is not a regular expression" in bad.err


def test_offsets_that_will_soon_expire_are_reported(rollcall: Rollcall, tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text(
        json.dumps(
            {
                "format": "rollcall-offsets",
                "version": 1,
                "groups": [
                    {
                        "group": "g",
                        "offsets": [
                            {"topic": "t", "partition": 0, "offset": 1, "committed_at_ms": 1},
                            {"topic": "t", "partition": 1, "offset": 1, "expire_at_ms": 1},
                            {"topic": "t", "partition": 2, "offset": 1},
                        ],
                    }
                ],
            }
        )
    )
    done = rollcall(
        "offsets", "import", "--from", str(tmp_path / "old.json"), "--data-dir", str(tmp_path / "d")
    )
    assert done.exit_code == 0
    assert "2 offsets committed longer ago than offsets.retention.minutes" in done.out


def test_a_directory_of_any_node_is_read(rollcall: Rollcall, kafka: Path, tmp_path: Path) -> None:
    imported(rollcall, kafka, tmp_path / "seven", "--set", "node.id=7")
    assert "node.id=7" in (tmp_path / "seven" / "meta.properties").read_text()
    assert len(exported(rollcall, tmp_path / "seven")["groups"]) == 3
    imported(rollcall, tmp_path / "seven", tmp_path / "other")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_files_belong_to_the_daemons_user_though_root_wrote_them(
    rollcall: Rollcall, kafka: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    os.chown(data, 12_345, 23_456)
    imported(rollcall, kafka, data)
    owners = {(path.stat().st_uid, path.stat().st_gid) for path in data.rglob("*")}
    assert owners == {(12_345, 23_456)}


def test_groups_that_are_there_already_need_a_rule(
    rollcall: Rollcall, kafka: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    imported(rollcall, kafka, data)
    again = rollcall("offsets", "import", "--from", str(kafka), "--data-dir", str(data))
    assert again.exit_code == 1
    assert "the target already has 3 groups; use --merge or --overwrite" in again.out
    assert imported(rollcall, kafka, data, "--merge")["written"]["records"] == 0
    both = rollcall(
        "offsets", "import", "--from", str(kafka), "--data-dir", str(data), "--merge", "--overwrite"
    )
    assert both.exit_code == 2


def test_damage_is_refused_unless_it_is_to_be_skipped(
    rollcall: Rollcall, kafka: Path, tmp_path: Path
) -> None:
    partition = partition_of("audit", 50)
    path = kafka / f"__consumer_offsets-{partition}" / f"{0:020d}.log"
    whole = path.read_bytes()
    path.write_bytes(b"\xff" * 99 + whole)
    arguments = ("offsets", "import", "--from", str(kafka), "--data-dir", str(tmp_path / "data"))
    refused = rollcall(*arguments)
    assert refused.exit_code == 1
    assert f"damaged       {path} at byte 0" in refused.out
    assert "--skip-damaged imports what can be read" in refused.out
    assert not (tmp_path / "data").exists()
    done = rollcall(*arguments, "--skip-damaged")
    assert done.exit_code == 0
    assert f"damaged       {path} at byte 0" in done.out
    contents, _ = read(tmp_path / "data")
    assert shown(contents) == OFFSETS


def test_a_directory_in_use_is_refused_in_one_line(
    rollcall: Rollcall, kafka: Path, tmp_path: Path
) -> None:
    imported(rollcall, kafka, tmp_path / "data")
    daemon = DataDir(str(tmp_path / "data"), 1)
    try:
        for arguments in (
            ("import", "--from", str(kafka)),
            ("export", "--json", "-"),
            ("import", "--from", str(kafka), "--merge", "--dry-run"),
        ):
            refused = rollcall("offsets", *arguments, "--data-dir", str(tmp_path / "data"))
            assert refused.exit_code == 2
            assert f"is in use by process {os.getpid()}" in refused.err
            assert refused.err.count("\n") == 1
    finally:
        daemon.close()


def test_a_rollcalls_own_directory_is_a_source_too(
    rollcall: Rollcall, kafka: Path, tmp_path: Path
) -> None:
    imported(rollcall, kafka, tmp_path / "data")
    fewer = ("--set", "offsets.topic.num.partitions=7")
    report = imported(rollcall, tmp_path / "data", tmp_path / "other", *fewer)
    assert report["source"]["kind"] == "rollcall"
    contents, tally = read(tmp_path / "other")
    assert shown(contents) == OFFSETS
    assert set(tally.partitions) == {partition_of(group, 7) for group in OFFSETS}
    # And a directory keeps its number of partitions, as it does under a daemon.
    assert imported(rollcall, kafka, tmp_path / "other", "--merge")["written"]["records"] == 0
    assert len(exported(rollcall, tmp_path / "other")["groups"]) == 3


def test_csv_and_json_go_out_and_come_in(rollcall: Rollcall, kafka: Path, tmp_path: Path) -> None:
    imported(rollcall, kafka, tmp_path / "data")
    for option, name in (("--csv", "offsets.csv"), ("--json", "offsets.json")):
        file = tmp_path / name
        done = rollcall(
            "offsets", "export", option, str(file), "--data-dir", str(tmp_path / "data")
        )
        assert done.exit_code == 0, done.err
        imported(rollcall, file, tmp_path / name.replace(".", "-"))
        contents, _ = read(tmp_path / name.replace(".", "-"))
        assert shown(contents) == OFFSETS
    assert (tmp_path / "offsets.csv").read_text() == (
        "audit,orders,1,7\nbilling,orders,0,5\nmodern,orders,2,9\n"
    )
    found = contents.groups["audit"].offsets["orders", 1][0]
    assert found.committed_at_ms == NOW_MS


def test_three_columns_are_for_one_group(rollcall: Rollcall, kafka: Path, tmp_path: Path) -> None:
    imported(rollcall, kafka, tmp_path / "data")
    export = (
        "offsets",
        "export",
        "--csv",
        "-",
        "--columns",
        "3",
        "--data-dir",
        str(tmp_path / "data"),
    )
    assert rollcall(*export).exit_code == 2
    done = rollcall(*export, "--group", "audit")
    assert (done.exit_code, done.out) == (0, "orders,1,7\n")
    (tmp_path / "one.csv").write_text(done.out)
    lost = rollcall(
        "offsets", "import", "--from", str(tmp_path / "one.csv"), "--data-dir", str(tmp_path / "b")
    )
    assert (lost.exit_code, "--for-group" in lost.err) == (2, True)
    imported(rollcall, tmp_path / "one.csv", tmp_path / "b", "--for-group", "other")
    contents, _ = read(tmp_path / "b")
    assert shown(contents) == {"other": {("orders", 1): 7}}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("export",), "one of --for-kafka, --csv and --json"),
        (("export", "--csv", "a", "--json", "b"), "one of --for-kafka, --csv and --json"),
        (("export", "--json", "-", "--columns", "3"), "--columns is for --csv"),
        (("export", "--json", "-", "--data-dir", "nowhere"), "is not a Rollcall data directory"),
        (("import",), "--from"),
        (("import", "--from", "nowhere"), "does not exist"),
        (("export", "--json", "-", "--bootstrap", "nonsense"), "is not HOST:PORT"),
        (("export", "--json", "-", "--bootstrap", "x" * 40_000 + ":9092"), "is not HOST:PORT"),
        (("export", "--json", "-", "--bootstrap", "h:" + "9" * 5_000), "is not HOST:PORT"),
        (("export", "--json", "-", "--bootstrap", "h:\u0661"), "is not HOST:PORT"),
        (("export", "--json", "-", "--bootstrap", "h:1", "--data-dir", "d"), "cannot be combined"),
        (("import", "--from", ".", "--bootstrap", "h:1", "--merge"), "commit times"),
        (("export", "--json", "-", "--command-config", "c"), "--command-config is for --bootstrap"),
        (
            ("export", "--json", "-", "--bootstrap", "h:1", "--command-config", "nowhere"),
            "nowhere",
        ),
        (("export", "--for-kafka", "nowhere", "--data-dir", "{data}"), "is not a directory"),
        (
            ("export", "--for-kafka", "{data}", "--data-dir", "{data}"),
            "is a Rollcall data directory",
        ),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(
    rollcall: Rollcall,
    kafka: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    imported(rollcall, kafka, tmp_path / "data")
    filled = [argument.format(data=tmp_path / "data") for argument in arguments]
    refused = rollcall("offsets", *filled)
    assert refused.exit_code == 2
    assert says in refused.err
    assert refused.err.count("\n") == 1
    assert len(refused.err) < 300


def test_a_file_that_is_neither_is_refused_with_its_line(
    rollcall: Rollcall, tmp_path: Path
) -> None:
    (tmp_path / "f.csv").write_bytes(b"\xff\xfe,")
    (tmp_path / "g.csv").write_text("g,t,0,x\n")
    for name, says in (("f.csv", "is not UTF-8 text"), ("g.csv", "line 1: invalid offset")):
        refused = rollcall(
            "offsets", "import", "--from", str(tmp_path / name), "--data-dir", str(tmp_path / "d")
        )
        assert (refused.exit_code, says in refused.err) == (2, True)
    assert not (tmp_path / "d").exists()


def test_an_import_that_is_killed_leaves_all_or_nothing(rollcall: Rollcall, tmp_path: Path) -> None:
    lines = "".join(f"group-{n % 500},topic,{n // 500},{n}\n" for n in range(30_000))
    (tmp_path / "many.csv").write_text(lines)
    (tmp_path / "few.csv").write_text("own,topic,0,1\n")
    data = tmp_path / "data"
    imported(rollcall, tmp_path / "few.csv", data)
    command = [Path(sys.executable).with_name("rollcall"), "offsets", "import", "--merge"]
    process = subprocess.Popen([*command, "--from", tmp_path / "many.csv", "--data-dir", data])
    undo = data / ROLLBACK_JOURNAL_FILE
    while process.poll() is None and not undo.exists():
        os.sched_yield()
    process.kill()
    process.wait()
    found = exported(rollcall, data)
    offsets = sum(len(group["offsets"]) for group in found["groups"])
    assert offsets in (1, 30_001)
    assert not undo.exists()
    imported(rollcall, tmp_path / "many.csv", data, "--merge")
    assert len(exported(rollcall, data)["groups"]) == 501


def test_a_repair_that_was_interrupted_is_the_daemons_to_finish(
    rollcall: Rollcall, tmp_path: Path
) -> None:
    (tmp_path / "few.csv").write_text("own,topic,0,1\n")
    data = tmp_path / "data"
    imported(rollcall, tmp_path / "few.csv", data)
    lost = [["__consumer_offsets", 0], 3, 9, 0, []]
    cut_file = {
        "path": "x.log",
        "position": 1,
        "reason": "",
        "bytes_cut": 1,
        "kept_as": [],
        "lost": [lost],
    }
    book = {"format": 1, "cut": None, "repaired": [cut_file]}
    (data / REPAIR_FILE).write_text(json.dumps(book))
    refused = rollcall("offsets", "export", "--json", str(tmp_path / "o"), "--data-dir", str(data))
    assert refused.exit_code == 2
    assert "a repair of" in refused.err
    assert "was interrupted: start the daemon once" in refused.err
    assert (data / REPAIR_FILE).exists()


def test_a_broker_that_runs_is_not_written_to(
    rollcall: Rollcall, kafka: Path, tmp_path: Path
) -> None:
    imported(rollcall, kafka, tmp_path / "data")
    (kafka / "meta.properties").write_text("version=1\ncluster.id=x\nnode.id=1\n")
    export = ("offsets", "export", "--for-kafka", str(kafka), "--data-dir", str(tmp_path / "data"))
    killed = rollcall(*export)
    assert killed.exit_code == 2
    assert "was not stopped cleanly" in killed.err
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD_LOCK, str(kafka / ".lock")], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        running = rollcall(*export)
        assert running.exit_code == 2
        assert "a broker runs on" in running.err
        # To read from it is not forbidden, but told.
        report = imported(rollcall, kafka, tmp_path / "data", "--merge")
        assert report["source"]["in_use"] == [str(kafka)]
    finally:
        holder.kill()
        holder.communicate()


HOLD_LOCK = """
import fcntl, os, signal, sys
fcntl.lockf(os.open(sys.argv[1], os.O_RDWR | os.O_CREAT), fcntl.LOCK_EX)
print("held", flush=True)
signal.pause()
"""
"""As Java locks: by fcntl, whose locks are each process's own."""


def test_the_write_ahead_files_have_the_size_that_the_daemon_gives_them(
    rollcall: Rollcall, kafka: Path, tmp_path: Path
) -> None:
    arguments = ("--set", f"rollcall.journal.bytes={80 << 20}", "--data-dir", str(tmp_path / "d"))
    done = rollcall("offsets", "import", "--from", str(kafka), *arguments)
    assert done.exit_code == 0, done.err
    sizes = {path.name: path.stat().st_size for path in (tmp_path / "d").glob("*.wal")}
    assert sizes
    assert set(sizes.values()) == {40 << 20}
    arguments = ("--set", "rollcall.journal.bytes=1048576", "--data-dir", str(tmp_path / "e"))
    done = rollcall("offsets", "import", "--from", str(kafka), *arguments)
    assert done.exit_code == 2
    assert "rollcall.journal.bytes = 1048576" in done.err


def test_csv_to_a_terminal_of_another_encoding_is_utf_8(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("gr\u00fc\u00dfe-\u20ac,t,0,1\n", "utf-8")
    run = [sys.executable, "-c", "from cli.commands import run; raise SystemExit(run())", "offsets"]
    data_dir = ["--data-dir", str(tmp_path / "d")]
    subprocess.run([*run, "import", "--from", str(tmp_path / "f.csv"), *data_dir], check=True)
    for encoding in ("latin-1", "ascii"):
        done = subprocess.run(
            [*run, "export", "--csv", "-", *data_dir],
            env={**os.environ, "PYTHONIOENCODING": encoding},
            capture_output=True,
            check=True,
        )
        assert done.stdout == (tmp_path / "f.csv").read_bytes()
        assert b"Traceback" not in done.stderr

"""Source check: what is wrong with an order is said before an engine starts."""

import os
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.commands import cli
from pipeline.read.segments import NoSegments
from pipeline.read.source_check import (
    NoListener,
    SourceKind,
    check_broker,
    check_output,
    check_output_file,
    check_results,
    check_source,
)
from protocol.names import HISTORY_TOPIC, OFFSETS_TOPIC
from seams.operator_error import WrongInput
from tests.pipeline.logs import commit, write_log


def test_segments_have_a_size_and_topics(tmp_path: Path) -> None:
    first = write_log(tmp_path, 3, [[commit("g", "t", 0, 1)]])
    second = write_log(tmp_path, 0, [[commit("g", "t", 0, 1)]], HISTORY_TOPIC)

    found = check_source(f"file://{tmp_path}")

    assert found.kind is SourceKind.SEGMENTS
    assert found.size == first.stat().st_size + second.stat().st_size
    assert found.topics == {OFFSETS_TOPIC, HISTORY_TOPIC}
    assert check_source(str(first)).topics == {OFFSETS_TOPIC}


def test_a_lake_has_a_manifest(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{}")
    (tmp_path / "commits").mkdir()
    (tmp_path / "commits" / "a.parquet").write_bytes(b"x" * 7)

    assert check_source(str(tmp_path)) == (SourceKind.LAKE, 7, None)


def test_what_only_java_opens_is_not_checked() -> None:
    assert check_source("s3a://bucket/backup") == (SourceKind.REMOTE, None, None)


def test_an_empty_folder_and_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NoSegments, match=r"nope: no such folder or file"):
        check_source(str(tmp_path / "nope"))
    with pytest.raises(NoSegments, match=r"neither segments of .* nor the manifest\.json"):
        check_source(str(tmp_path))
    with pytest.raises(WrongInput, match="no such folder"):
        check_results(str(tmp_path / "nope"))


@pytest.mark.parametrize("servers", ["", "host", "host:", ":1", "host:x", "h:0", "h:65536", "h:1,"])
def test_a_broker_is_host_and_port(servers: str) -> None:
    with pytest.raises(WrongInput):
        check_broker(servers)


def test_one_of_the_brokers_must_answer(unused_tcp_port: int) -> None:
    closed = f"127.0.0.1:{unused_tcp_port}"
    with pytest.raises(NoListener, match=closed):
        check_source(f"kafka://{closed}")
    with socket.create_server(("127.0.0.1", 0)) as server:
        open_server = f"127.0.0.1:{server.getsockname()[1]}"
        assert check_source(f"kafka://{closed},{open_server}/").kind is SourceKind.BROKER


def test_an_output_is_a_folder_that_can_be_written(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")

    check_output(str(tmp_path / "new" / "deep"))
    check_output("s3a://bucket/out")
    check_output_file(str(file))
    with pytest.raises(WrongInput, match="is a file; a folder is needed"):
        check_output(str(file))
    with pytest.raises(WrongInput, match=r"cannot be made: .*file is a file"):
        check_output(str(file / "inside"))
    with pytest.raises(WrongInput, match="is a folder; a file is needed"):
        check_output_file(str(tmp_path))


def test_no_table_is_written_into_a_data_directory(tmp_path: Path) -> None:
    """A Kafka does not start with a folder in it that is no partition's."""
    (tmp_path / "meta.properties").touch()
    for out in (tmp_path, tmp_path / "results", tmp_path / "new" / "results"):
        with pytest.raises(WrongInput, match="is the data directory of a broker"):
            check_output(str(out))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_output_needs_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(WrongInput, match="no permission"):
        check_output(str(tmp_path / "out"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["all", "--from", "NOPE"], "no such folder"),
        (["everything", "--from", "LOG"], "no job 'everything'"),
        (["lag_trend", "--from", "LOG"], "lag_trend needs __group_lag"),
        (["all", "--from", "LOG", "--since", "5", "--until", "5"], "the span is empty"),
        (["all", "--from", "LOG", "--version-pattern", "app-("], "--version-pattern 'app-('"),
        (["all", "--from", "LOG", "--version-pattern", "app"], "has no group"),
        (["all", "--from", "kafka://nowhere"], "is not HOST:PORT"),
        (["all", "--from", "LOG", "--engine", "local", "--master", "local[1]"], "contradict"),
        (["all", "--from", "LOG", "--report", "."], "a file is needed"),
    ],
)
def test_a_mistake_is_reported_before_an_engine_starts(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AssertionError("an engine was started")

    monkeypatch.setattr("pipeline.command.start_session", fail)
    monkeypatch.setattr("pipeline.local.session.local_session", fail)
    write_log(tmp_path, 0, [[commit("g", "t", 0, 1)]])
    places = {"NOPE": str(tmp_path / "nope"), "LOG": str(tmp_path)}
    given = [places.get(word, word) for word in words]

    done = CliRunner().invoke(cli, ["pipeline", "run", *given, "--to", str(tmp_path / "out")])

    assert done.exit_code != 0
    assert said in f"{done.output}{done.exception}"
    assert not (tmp_path / "out").exists()

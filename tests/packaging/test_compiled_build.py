"""Compiled build: used where it fits the sources, and never in the place of a changed one."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from client.cluster import Cluster
from client.groups import committed_offsets
from client.offset_reset import Move, ResetPlan, reset_offsets
from client.topics import create_new_topic
from native.compile import NO_COMPILER
from rollcall.compiled import ABI, MANIFEST_FILE, BuildManifest, content_digest
from tests.architecture.tree import PACKAGES, ROOT, tracked_files
from tests.broker.daemon import Daemon
from tests.build import IS_COMPILED

EDITED = Path("coordinator", "shard.py")
of_the_compiled_build = pytest.mark.skipif(not IS_COMPILED, reason="of the compiled build")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The program's files with their times, and the compiled modules that were made of them."""
    for path in tracked_files():
        if path.parts[0] in PACKAGES:
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / path, tmp_path / path)
    builds = tmp_path / "build" / "compiled"
    shutil.copytree(ROOT / "build" / "compiled" / ABI, builds / f"{ABI}-1")
    (builds / ABI).symlink_to(f"{ABI}-1")
    return tmp_path


def run(
    checkout: Path,
    *words: str,
    environment: Mapping[str, str] = {"ROLLCALL_PURE": "0"},
    exit_code: int = 0,
) -> str:
    done = subprocess.run(
        [sys.executable, "-P", *words],
        env={**os.environ, "PYTHONPATH": str(checkout), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == exit_code, done.stderr
    return done.stdout


def shard_runs_from(checkout: Path) -> str:
    program = (
        "from rollcall.program import use_program_path; use_program_path()\n"
        "import coordinator.shard as shard\n"
        "print(type(shard.Shard.turn).__name__, getattr(shard, 'EDITED', ''))"
    )
    return run(checkout, "-c", program).strip()


@of_the_compiled_build
def test_unchanged_sources_run_compiled(checkout: Path) -> None:
    assert "(compiled, " in run(checkout, "-m", "rollcall", "--version")
    assert shard_runs_from(checkout) == "method_descriptor"


@of_the_compiled_build
def test_an_edited_source_is_not_shadowed(checkout: Path) -> None:
    with (checkout / EDITED).open("a") as file:
        file.write("\nEDITED = 'yes'\n")

    assert shard_runs_from(checkout) == "function yes"
    said = run(checkout, "-m", "rollcall", "--version")
    assert f"(pure Python ({EDITED} has changed since it was compiled); " in said


@of_the_compiled_build
def test_an_edit_of_equal_length_is_not_shadowed(checkout: Path) -> None:
    text = (checkout / EDITED).read_text()
    (checkout / EDITED).write_text(text.replace("return", "return", 1).replace("# ", "#~", 1))

    assert shard_runs_from(checkout) == "function"


@of_the_compiled_build
def test_an_edit_of_an_imported_source_counts(checkout: Path) -> None:
    """Compiled modules contain its constants."""
    with (checkout / "protocol" / "names.py").open("a") as file:
        file.write("\n")

    assert shard_runs_from(checkout) == "function"


@of_the_compiled_build
def test_a_new_time_alone_is_no_change(checkout: Path) -> None:
    os.utime(checkout / EDITED)

    assert shard_runs_from(checkout) == "method_descriptor"


@of_the_compiled_build
def test_the_sources_run_if_asked(checkout: Path) -> None:
    said = run(checkout, "-m", "rollcall", "--version", environment={"ROLLCALL_PURE": "1"})

    assert "(pure Python (ROLLCALL_PURE is set); " in said


@of_the_compiled_build
def test_both_builds_read_each_others_data_directory(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)
    expected = {}
    for round_number, (pure, end) in enumerate(
        [("1", daemon.stop), ("0", daemon.kill), ("1", daemon.kill), ("0", daemon.stop)]
    ):
        daemon.environment["ROLLCALL_PURE"] = pure
        daemon.start()
        try:
            with Cluster(daemon.bootstrap) as cluster:
                if not round_number:
                    create_new_topic(cluster, "orders", 3, 1, {})
                assert committed(cluster) == expected
                expected = {partition: 10 * round_number + partition for partition in range(3)}
                moves = [Move("orders", place, None, offset) for place, offset in expected.items()]
                reset_offsets(cluster, ResetPlan("billing", moves, ()))
        finally:
            end()


def committed(cluster: Cluster) -> dict[int, int]:
    offsets = committed_offsets(cluster, "billing")
    return {partition: offset for (_, partition), offset in offsets.items()}


def test_a_manifest_finds_each_kind_of_change(tmp_path: Path) -> None:
    source = tmp_path / "a.py"
    source.write_text("A = 1\n")
    stat = source.stat()
    digest = content_digest(str(source))
    manifest = BuildManifest(
        f"cc -O1\nsource {stat.st_size} {stat.st_mtime_ns} {digest} a.py\nmodule a\n"
    )
    assert (manifest.how, manifest.modules) == ("cc -O1", {"a"})
    assert manifest.stale(str(tmp_path)) == ""

    source.write_text("A = 2\n")
    os.utime(source, ns=(stat.st_mtime_ns + 1, stat.st_mtime_ns + 1))
    assert manifest.stale(str(tmp_path)) == "a.py"

    source.write_text("A = 1\n")  # as it was, at another time
    assert manifest.stale(str(tmp_path)) == ""

    source.write_text("A = 10\n")
    assert manifest.stale(str(tmp_path)) == "a.py"
    source.unlink()
    assert manifest.stale(str(tmp_path)) == "a.py"


def test_without_a_compiler_or_with_the_switch_nothing_fails(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "native", tmp_path / "native")
    shutil.copytree(ROOT / "rollcall", tmp_path / "rollcall")
    for package in ("coordinator", "protocol", "seams", "storage"):
        shutil.copytree(ROOT / package, tmp_path / package)
    build = tmp_path / "build" / "compiled"

    off = run(tmp_path, "-m", "native.compile", environment={"ROLLCALL_COMPILE": "0"})
    no_compiler = {"CC": "no-such-compiler"}
    none = run(tmp_path, "-m", "native.compile", environment=no_compiler, exit_code=NO_COMPILER)

    assert off == "Not compiled: ROLLCALL_COMPILE=0\n"
    assert none.startswith("Not compiled, runs as pure Python: there is no C compiler (no-such")
    assert none.count("\n") == 1
    assert not (build / ABI / MANIFEST_FILE).exists()
    assert run(tmp_path, "-c", "import rollcall.program") == ""


def loads_the_commit_reader(checkout: Path, pure: str = "0") -> bool:
    """As a worker of Spark does it, where nothing else that is compiled is used."""
    program = (
        "from rollcall.compiled import load_extension; from rollcall.program import program_path\n"
        "found = load_extension('rollcall_commit_reader', program_path())\n"
        "print(hasattr(found, 'read_batches'))"
    )
    return run(checkout, "-c", program, environment={"ROLLCALL_PURE": pure}).strip() == "True"


@of_the_compiled_build
def test_an_extension_is_loaded_alone_if_it_fits_the_sources(checkout: Path) -> None:
    assert loads_the_commit_reader(checkout)
    assert not loads_the_commit_reader(checkout, pure="1")

    with (checkout / "pipeline" / "decode" / "commit_reader.c").open("a") as file:
        file.write("\n/* edited */\n")

    assert not loads_the_commit_reader(checkout)

"""Compile step: whatever interrupts it or fails, the next one works, and no edit is shadowed."""

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from native import compile as step
from rollcall.compiled import ABI, LIBRARY, MANIFEST_FILE, BuildManifest

SOURCE = "part/module.py"
C_SOURCE = "part/extension.c"


class Step:
    """The step in a checkout of one source; the translation is faked, and can be interrupted."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.source = root / SOURCE
        self.source.parent.mkdir()
        (root / "part" / "__init__.py").touch()
        self.source.write_text("A = 1\n")
        self.c_source = root / C_SOURCE
        self.c_source.write_text("/* 1 */\n")
        self.builds = root / "build" / "compiled"
        self.translated: list[str] = []
        self.checks = 0
        self.on_translate: Callable[[], object] = lambda: None
        self.on_check: Callable[[], object] = lambda: None
        for name, value in {
            "ROOT": root,
            "BUILDS": self.builds,
            "LOG": self.builds / "log",
            "BUSY": self.builds / "busy",
            "COMPILED": ("part.module",),
            "C_EXTENSIONS": {"part_extension": C_SOURCE},
            "_compiler_and_flags": lambda: "cc -O1",
            "_require_build_tools": lambda announce: None,
            "_translate": self._translate,
            "_translate_codec": lambda out: step.Sources([], []),
            "_compile": self._compile,
            "_check": self._check,
        }.items():
            patch.setattr(step, name, value)
        patch.setattr(sys, "argv", ["native.compile"])
        patch.delenv("ROLLCALL_COMPILE", raising=False)

    def _translate(self, out: Path) -> step.Sources:
        self.translated.append(self.source.read_text())
        self.on_translate()
        return step.Sources([], [])

    def _compile(self, libraries: object, made: Path, scratch: Path) -> None:
        (made / f"{LIBRARY}{step.SUFFIX}").write_text(self.translated[-1])

    def _check(self, folder: Path) -> None:
        self.checks += 1
        self.on_check()

    def run(self) -> None:
        step.main()

    @property
    def used(self) -> BuildManifest | None:
        """What a start would use."""
        file = self.builds / ABI / MANIFEST_FILE
        manifest = BuildManifest(file.read_text()) if file.exists() else None
        return None if manifest is None or manifest.stale(str(self.root)) else manifest


@pytest.fixture
def compiling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Step:
    return Step(tmp_path, monkeypatch)


class Killed(BaseException):
    """The process is gone: nothing is caught, nothing is cleaned up."""


def test_sources_are_compiled_once_and_found_again(compiling: Step) -> None:
    compiling.run()
    assert compiling.used is not None
    compiling.run()
    assert (len(compiling.translated), compiling.checks) == (1, 1)

    compiling.source.write_text("A = 2\n")
    assert compiling.used is None
    compiling.run()
    compiling.source.write_text("A = 1\n")
    compiling.run()  # a change of the branch and back
    assert compiling.translated == ["A = 1\n", "A = 2\n"]
    assert compiling.used is not None


def test_what_was_made_of_a_source_in_c_that_has_changed_is_not_used(compiling: Step) -> None:
    compiling.run()
    assert compiling.used is not None
    assert "part_extension" in compiling.used.extensions

    compiling.c_source.write_text("/* 2 */\n")
    assert compiling.used is None
    compiling.run()
    assert compiling.used is not None


@pytest.mark.parametrize("edited", ["A = 2\n", "A = 1 + 1\n"])
def test_an_edit_while_it_compiles_is_not_shadowed(
    compiling: Step, capsys: pytest.CaptureFixture[str], edited: str
) -> None:
    compiling.on_translate = lambda: compiling.source.write_text(edited)
    compiling.run()
    assert compiling.used is None
    assert f"{SOURCE} was changed meanwhile" in capsys.readouterr().out

    compiling.on_translate = lambda: None
    compiling.run()
    assert compiling.translated[-1] == edited
    assert compiling.used is not None


def test_a_step_that_was_killed_leaves_nothing_and_stops_no_later_one(
    compiling: Step, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill() -> None:
        raise Killed

    compiling.on_translate = kill
    with monkeypatch.context() as killed:
        killed.setattr(shutil, "rmtree", lambda *_, **__: None)
        with pytest.raises(Killed):
            compiling.run()
    assert list(compiling.builds.glob("new-*"))

    compiling.on_translate = lambda: None
    compiling.run()
    assert not list(compiling.builds.glob("new-*"))
    assert compiling.used is not None


def test_what_was_not_checked_to_the_end_is_checked_by_the_next_step(compiling: Step) -> None:
    def kill() -> None:
        raise Killed

    compiling.on_check = kill
    with pytest.raises(Killed):
        compiling.run()
    compiling.on_check = lambda: None
    compiling.run()
    assert (len(compiling.translated), compiling.checks) == (1, 2)
    compiling.run()
    assert compiling.checks == 2


def test_a_folder_without_its_library_is_compiled_again(compiling: Step) -> None:
    compiling.run()
    (compiling.builds / ABI / f"{LIBRARY}{step.SUFFIX}").unlink()
    compiling.run()
    assert (compiling.builds / ABI / f"{LIBRARY}{step.SUFFIX}").exists()


def test_two_steps_at_once_compile_once(compiling: Step) -> None:
    is_translating, may_go_on = threading.Event(), threading.Event()

    def wait() -> None:
        is_translating.set()
        assert may_go_on.wait(60)

    compiling.on_translate = wait
    first = threading.Thread(target=compiling.run)
    first.start()
    assert is_translating.wait(60)
    second = threading.Thread(target=compiling.run)
    second.start()
    may_go_on.set()
    first.join(60)
    second.join(60)
    assert (len(compiling.translated), compiling.checks) == (1, 1)
    assert compiling.used is not None


@pytest.mark.parametrize(
    "failure",
    [
        OSError(28, "No space left on device"),
        PermissionError(13, "Permission denied"),
        SyntaxError("invalid syntax"),
        AssertionError("two\nlines"),
    ],
)
def test_any_failure_is_one_line_and_leaves_the_sources(
    compiling: Step, capsys: pytest.CaptureFixture[str], failure: Exception
) -> None:
    compiling.run()
    compiling.source.write_text("A = 2\n")
    capsys.readouterr()

    def fail() -> None:
        raise failure

    compiling.on_translate = fail
    compiling.run()
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("Compiling 1 modules with cc -O1")
    assert said[1].startswith(f"Not compiled, runs as pure Python: {type(failure).__name__}: ")
    assert len(said) == 2
    assert compiling.used is None
    assert not list(compiling.builds.glob("new-*"))


def test_a_folder_that_may_not_be_written_is_one_line(
    compiling: Step, capsys: pytest.CaptureFixture[str]
) -> None:
    compiling.builds.parent.write_text("a file, where a folder should be")
    compiling.run()
    said = capsys.readouterr().out
    assert said.startswith("Not compiled, runs as pure Python: ")
    assert said.count("\n") == 1


@pytest.mark.parametrize("damage", ["", "cc -O1\nsource\n", "cc -O1\nsource 1 2 a.py\n", "cc\nx\n"])
def test_a_damaged_manifest_leaves_the_sources(tmp_path: Path, damage: str) -> None:
    said = _version(_checkout(tmp_path, damage, b"a library"))
    assert "(pure Python (" in said
    assert "/manifest is damaged); " in said


def test_a_library_that_cannot_be_loaded_leaves_the_sources(tmp_path: Path) -> None:
    checkout = _checkout(tmp_path, "cc -O1\nmodule seams.now\n", b"no library")
    program = (
        "from rollcall.program import use_program_path; use_program_path()\n"
        "import seams.now, rollcall.compiled as compiled\n"
        "print(seams.now.__file__, compiled.describe_build())"
    )
    file, said = _run(checkout, "-c", program).split(" ", 1)
    assert Path(file) == checkout / "seams" / "now.py"
    assert said.startswith("pure Python (the compiled modules cannot be loaded: ")


def _checkout(root: Path, manifest: str, library: bytes) -> Path:
    for package in ("rollcall", "cli", "seams", "config", "protocol"):
        shutil.copytree(step.ROOT / package, root / package)
    folder = root / "build" / "compiled" / ABI
    folder.mkdir(parents=True)
    (folder / MANIFEST_FILE).write_text(manifest)
    (folder / f"{LIBRARY}{step.SUFFIX}").write_bytes(library)
    return root


def _version(checkout: Path) -> str:
    return _run(checkout, "-m", "rollcall", "--version")


def _run(checkout: Path, *words: str) -> str:
    return subprocess.run(
        [sys.executable, "-P", *words],
        env={**os.environ, "PYTHONPATH": str(checkout), "ROLLCALL_PURE": "0"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout

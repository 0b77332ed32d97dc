"""Bytecode bundle: modules come from one file, and from their sources where that does not fit."""

import asyncio
import importlib.resources
import os
import shutil
import subprocess
import sys
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType

import pytest

from native.bundle import write_bundle
from rollcall.bytecode import LENGTH_BYTES, Bundle, bundle_file

ROOT = Path(__file__).parents[2]
NOW_NS = 1_700_000_000_123_456_789


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program with one package, and its bundle."""
    package = tmp_path / "sample"
    package.mkdir()
    (package / "__init__.py").write_text('"""Sample: one."""\n')
    (package / "part.py").write_text("ANSWER = 'old'\n")
    (package / "data.txt").write_text("data")
    (package / "broken.py").write_text("def (:\n")
    os.utime(package / "part.py", ns=(NOW_NS, NOW_NS))
    write_bundle(tmp_path, Path(bundle_file(str(tmp_path))))
    return tmp_path


def opened(program: Path) -> Bundle:
    return Bundle(bundle_file(str(program)), str(program))


def imported(bundle: Bundle, name: str) -> ModuleType:
    spec = bundle.find_spec(name)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_module_comes_from_the_bundle(program: Path) -> None:
    part, package = imported(opened(program), "sample.part"), imported(opened(program), "sample")

    assert (part.ANSWER, part.__package__) == ("old", "sample")
    assert part.__file__ == str(program / "sample" / "part.py")
    assert package.__path__ == [str(program / "sample")]
    assert importlib.resources.files(package).joinpath("data.txt").read_text() == "data"
    assert not list(program.rglob("*.pyc"))


@pytest.mark.parametrize("edit", ["another size", "another time"])
def test_an_edited_source_is_not_shadowed(program: Path, edit: str) -> None:
    part = program / "sample" / "part.py"
    if edit == "another size":
        part.write_text("ANSWER = 'newer'\n")
        os.utime(part, ns=(NOW_NS, NOW_NS))
    else:
        part.write_text("ANSWER = 'new'\n")
        os.utime(part, ns=(NOW_NS, NOW_NS + 1))

    assert opened(program).find_spec("sample.part") is None


def test_what_it_does_not_have_is_left_to_python(program: Path) -> None:
    bundle = opened(program)
    (program / "sample" / "__init__.py").unlink()

    assert bundle.find_spec("sample") is None
    assert bundle.find_spec("sample.broken") is None
    assert bundle.find_spec("os") is None


def test_docstrings_are_only_where_they_are_shown(tmp_path: Path) -> None:
    docs = '    """Docs."""\n'
    text = f"{docs.strip()}\nclass Empty:\n{docs}\ndef two() -> int:\n{docs}    return 2\n"
    for package in ("sample", "cli"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("")
        (tmp_path / package / "part.py").write_text(text)
    write_bundle(tmp_path, Path(bundle_file(str(tmp_path))))

    part, shown = (imported(opened(tmp_path), f"{name}.part") for name in ("sample", "cli"))
    for each, docstring in ((part, None), (shown, "Docs.")):
        assert [each.__doc__, each.Empty.__doc__, each.two.__doc__] == [docstring] * 3
        assert each.two() == 2
        assert each.two.__code__.co_firstlineno == 5


def test_annotations_are_only_in_classes(tmp_path: Path) -> None:
    (tmp_path / "sample").mkdir()
    (tmp_path / "sample" / "__init__.py").write_text("")
    (tmp_path / "sample" / "part.py").write_text(
        "NUMBER: Unknown = 1\n"
        "class Value:\n"
        "    field: int = 2\n"
        "    async def method(self, *a: Unknown, b: Unknown = 3, **c: Unknown) -> Unknown:\n"
        "        local: Unknown = b\n"
        "        return (lambda: local)()\n"
    )
    write_bundle(tmp_path, Path(bundle_file(str(tmp_path))))

    part = imported(opened(tmp_path), "sample.part")
    assert (part.NUMBER, part.Value.__annotations__) == (1, {"field": int})
    assert asyncio.run(part.Value().method()) == 3


def test_what_a_killed_step_left_is_removed(program: Path) -> None:
    file = Path(bundle_file(str(program)))
    old, fresh = (file.with_name(f"{file.name}.new-{name}") for name in ("old", "fresh"))
    old.touch()
    os.utime(old, ns=(NOW_NS, NOW_NS))
    fresh.touch()  # of a step that runs

    write_bundle(program, file)

    assert sorted(file.parent.iterdir()) == [file, fresh]


@pytest.mark.parametrize("change", ["replaced", "removed"])
def test_a_process_goes_on_with_the_bundle_that_it_has_opened(program: Path, change: str) -> None:
    bundle, file = opened(program), Path(bundle_file(str(program)))
    if change == "removed":
        file.unlink()
    else:
        (program / "sample" / "a_module_before.py").write_text("X = 1\n" * 100)
        write_bundle(program, file)

    assert bundle.code("sample.part") is not None
    assert imported(bundle, "sample.part").ANSWER == "old"


@pytest.mark.parametrize("is_reused", [False, True])
def test_a_descriptor_that_was_closed(program: Path, *, is_reused: bool) -> None:
    bundle = opened(program)
    os.close(bundle._fd)
    if is_reused:
        other = os.open(program / "sample" / "data.txt", os.O_RDONLY)
        if other != bundle._fd:
            os.dup2(other, bundle._fd)
            os.close(other)

    assert bundle.code("sample.part") is None
    assert imported(bundle, "sample.part").ANSWER == "old", "from its source"


@pytest.mark.parametrize(
    "damage", ["cut in the index", "cut behind it", "longer", "empty", "noise"]
)
def test_a_damaged_bundle_is_not_used(program: Path, damage: str) -> None:
    file = Path(bundle_file(str(program)))
    content = file.read_bytes()
    file.write_bytes(
        {
            "cut in the index": content[:40],
            "cut behind it": content[:-1],
            "longer": content + b"\0",
            "empty": b"",
            "noise": content[:LENGTH_BYTES] + bytes(len(content) - LENGTH_BYTES),
        }[damage]
    )

    with pytest.raises(ValueError, match="damaged"):
        opened(program)


@pytest.mark.parametrize("damage", [b"\0", b"T", b"c"])
def test_damaged_bytecode_is_not_used(program: Path, damage: bytes) -> None:
    """As a power cut leaves it: the file has its size, and zeros behind its index."""
    file = Path(bundle_file(str(program)))
    content = file.read_bytes()
    begin = LENGTH_BYTES + int.from_bytes(content[:LENGTH_BYTES], "big")
    file.write_bytes(content[:begin] + damage * (len(content) - begin))

    assert imported(opened(program), "sample.part").ANSWER == "old", "from its source"


def test_a_bundle_of_another_folder_is_not_used(program: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="another Python or folder"):
        Bundle(bundle_file(str(program)), str(tmp_path / "moved"))


@pytest.mark.parametrize(
    ("options", "loader"), [((), "_BundleLoader"), (("-O",), "SourceFileLoader")]
)
def test_a_command_uses_it(program: Path, options: tuple[str, ...], loader: str) -> None:
    shutil.copytree(ROOT / "rollcall", program / "rollcall")
    script = (
        "from rollcall.program import use_program_path as use; use();"
        "import sample.part as part; print(type(part.__spec__.loader).__name__, part.ANSWER)"
    )

    said = subprocess.run(
        [sys.executable, *options, "-c", script],
        check=False,
        cwd=program,
        capture_output=True,
        text=True,
    )

    assert said.stdout.split() == [loader, "old"], said.stderr


def test_a_standard_stream_that_is_closed_stays_closed(program: Path) -> None:
    shutil.copytree(ROOT / "rollcall", program / "rollcall")
    script = (
        "import os; from rollcall.program import use_program_path as use; use();"
        "import sample.part as part; print(part.ANSWER, os.path.exists('/proc/self/fd/0'))"
    )

    said = subprocess.run(
        ["sh", "-c", '"$0" -c "$1" <&-', sys.executable, script],
        check=False, cwd=program, capture_output=True, text=True,
    )  # fmt: skip

    assert said.stdout.split() == ["old", "False"], said.stderr


def test_the_whole_program_fits(tmp_path: Path) -> None:
    file = tmp_path / "bundle"
    write_bundle(ROOT, file)
    bundle = Bundle(str(file), str(ROOT))

    for name in ("cli.main", "broker.daemon", "coordinator.coordinator", "storage"):
        assert bundle.code(name) is not None, name
    assert bundle.find_spec("tests.build") is None

"""The installed program: one name in site-packages, and nothing of a user's can shadow it."""

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from tests.architecture.tree import PACKAGES, ROOT, tracked_files

HOSTILE = 'raise SystemExit("a user\'s module was imported")\n'


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's own files, without what a build has left in the checkout."""
    source = tmp_path_factory.mktemp("source")
    for path in tracked_files():
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        (source / path).write_bytes((ROOT / path).read_bytes())
    return source


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation",
        "--no-index", "-w", out, source)  # fmt: skip
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel, which shares this one's libraries but not its packages."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    with zipfile.ZipFile(wheel) as file:
        file.extractall(site)
    # A plain path: .pth files of the shared folder, our editable install among them, are not read.
    (site / "libraries.pth").write_text("\n".join(p for p in sys.path if "site-packages" in p))
    return python


def run(*command: object, cwd: Path | None = None, **environment: str) -> str:
    done = subprocess.run(
        [str(word) for word in command],
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | environment,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def hostile(folder: Path) -> Path:
    """A user's folder with modules of all our names, and of libraries that we import."""
    for name in (*PACKAGES, "click", "structlog", "json", "msgspec"):
        if name != "rollcall":
            (folder / f"{name}.py").write_text(HOSTILE)
    return folder


def test_the_wheel_adds_one_name(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as file:
        names = file.namelist()

    roots = {name.split("/")[0] for name in names}
    assert {root for root in roots if not root.endswith(".dist-info")} == {"rollcall"}
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    assert "rollcall/py.typed" in names


def test_the_wheel_has_every_file_of_every_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as file:
        names = set(file.namelist())

    expected = {
        str(path) if path.parts[0] == "rollcall" else f"rollcall/_program/{path}"
        for path in tracked_files()
        if path.parts[0] in PACKAGES
    }
    assert {name for name in names if ".dist-info/" not in name} == expected


def test_a_users_modules_do_not_break_the_command(installed: Path, tmp_path: Path) -> None:
    user = hostile(tmp_path)

    said = run(installed, "-m", "rollcall", "config", cwd=user, PYTHONPATH=str(user))

    assert "offsets.topic.num.partitions" in said


def test_the_worker_process_runs_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    user = hostile(tmp_path)
    script = tmp_path / "ask.py"
    script.write_text(
        "from rollcall.program import use_program_path\n"
        "use_program_path()\n"
        "import asyncio\n"
        "from broker.background.worker import JobFailed, WorkerProcess\n"
        "async def ask() -> None:\n"
        "    worker = WorkerProcess()\n"
        "    try:\n"
        "        await worker.run('no such job', {})\n"
        "    except JobFailed as failed:\n"
        "        print(failed)\n"
        "    await worker.stop()\n"
        "asyncio.run(ask())\n"
    )

    said = run(installed, script, cwd=user, PYTHONPATH=str(user))

    assert "no such job" in said


def test_importing_rollcall_changes_nothing(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "storage.py").write_text("MINE = True\n")
    program = (
        "import sys; before = list(sys.path)\n"
        "import rollcall\n"
        "assert sys.path == before\n"
        "import storage\n"
        "assert storage.MINE\n"
        "import importlib.util\n"
        "assert importlib.util.find_spec('coordinator') is None\n"
    )

    run(installed, "-c", program, cwd=tmp_path, PYTHONPATH=str(tmp_path))


def test_the_source_distribution_has_every_file(source: Path, tmp_path: Path) -> None:
    run(
        sys.executable, "-c", "import setuptools; setuptools.setup()",
        "-q", "sdist", "--dist-dir", tmp_path, cwd=source,
    )  # fmt: skip
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as file:
        names = {name.partition("/")[2] for name in file.getnames()}

    assert {str(path) for path in tracked_files()} - names == set()


def test_the_pytest_plugin_of_an_installed_wheel_starts_a_daemon(
    installed: Path, tmp_path: Path
) -> None:
    for name in PACKAGES:
        if name != "rollcall":
            (tmp_path / f"{name}.py").write_text(HOSTILE)
    (tmp_path / "test_of_a_user.py").write_text(
        "import rollcall.testing\n"
        "def test_daemon(rollcall):\n"
        "    rollcall.create_topic('orders')\n"
        "    rollcall.advance(1)\n"
        "    assert rollcall.group('billing').state == 'Dead'\n"
        "def test_path(rollcall_session):\n"
        "    import importlib.util, sys\n"
        "    assert not any(path.endswith('_program') for path in sys.path)\n"
        "    assert importlib.util.find_spec('broker').origin.endswith('broker.py')  # the user's\n"
    )

    said = run(
        installed, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_of_a_user.py",
        cwd=tmp_path, PYTHONPATH=str(tmp_path),
    )  # fmt: skip

    assert "2 passed" in said

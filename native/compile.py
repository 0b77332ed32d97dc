"""Compile step: builds the compiled modules of this checkout, for the Python that runs it.

    .venv/bin/python -m native.compile [--wheel FOLDER]

`make install` runs it. Without a C compiler or Python's headers it does nothing, and
`ROLLCALL_COMPILE=0` switches it off. mypyc translates the modules of modules.py to C; all C files
are compiled at once, as many at a time as there are processors, and linked into a few shared
libraries. They go to `build/compiled/HASH`, and a link with the name of the ABI says which folder
is used (rollcall/compiled.py). Folders of earlier sources are kept for a while: after a change of
the branch and back nothing is compiled. Before it is used for the first time, a daemon serves a
group with it (check.py). Whatever fails, the program runs from its sources, and one line says why.
One compile step runs at a time; it removes what one that was killed has left.

Exits with 3 if there is no C compiler or no header, so that `make install` looks again when it runs
again. After any other failure it compiles again when the sources change, or by hand.
CC and CFLAGS are respected. `ROLLCALL_COMPILE=2` optimizes for long: -O2 instead of -O1, which
takes half as long again (bench/RESULTS.md).
"""

import argparse
import ast
import contextlib
import fcntl
import hashlib
import io
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple, Self

from native.codec_source import CODEC, codec_source
from native.modules import C_EXTENSIONS, COMPILED, path_of
from rollcall.compiled import ABI, LIBRARY, LOADER, MANIFEST_FILE, BuildManifest, content_digest

ROOT: Final = Path(__file__).resolve().parents[1]
BUILDS: Final = ROOT / "build" / "compiled"
LOG: Final = BUILDS / "log"
BUSY: Final = BUILDS / "busy"
"""Locked while modules are compiled."""

ON_LINUX: Final = sys.platform == "linux"

CHECKED: Final = "checked"
"""The file in a folder that says that a daemon has served a group with it."""

LOCK: Final = "requirements-compile.lock"

OBJECT_FLAGS: Final = (
    "-fPIC", "-fwrapv", "-fvisibility=hidden", "-ffunction-sections", "-freorder-functions",
)  # fmt: skip
"""Functions of other files are called directly."""

LINK_FLAGS: Final = ("-Wl,--gc-sections", "-Wl,--sort-section=name") if ON_LINUX else ()
"""Beside each other are functions of one name, such as the copies of Py_DECREF, and cold ones."""

PACKED_RELOCATIONS: Final = "-Wl,-z,pack-relative-relocs"
"""A tenth of the size, 0.4 MB less; an older linker says that it ignores it."""

PACKED_SINCE: Final = (2, 36)
"""The first glibc that reads them. An older one refuses such a library: the sources are used."""

RUNS_ONCE: Final = re.compile(
    r"^(?=(?:static )?(?:bool|char|int|PyObject \*)\s*"
    r"(?:CPyDef_\w+_(?:____top_level__|trait_vtable_setup)|CPy(?:Init|InitOnly|Exec)_\w+)"
    r"\(\w+[^;{]*\)\s*\{)",
    re.MULTILINE,
)
"""The beginning of a C function that imports a module. Marked as cold these are beside each other:
the pages of the others are read from the file when a request needs them."""

KEPT_BUILDS: Final = 4
"""Folders that are kept of earlier sources, or other Pythons."""

SWITCH: Final = "ROLLCALL_COMPILE"

NO_COMPILER: Final = 3
"""The exit code if the system lacks what compiles."""

SUFFIX: Final = str(sysconfig.get_config_var("EXT_SUFFIX"))


class Sources(NamedTuple):
    """C files, and the folders of what they include."""

    files: Sequence[Path]
    include: Sequence[str]


class SourceState(NamedTuple):
    """A source file as it was at one moment."""

    size: int
    mtime_ns: int
    digest: str
    path: str

    @classmethod
    def of(cls, path: str) -> Self:
        """Its time first: an edit in between leaves a time that is not the file's any more."""
        stat = (ROOT / path).stat()
        return cls(stat.st_size, stat.st_mtime_ns, content_digest(str(ROOT / path)), path)


class CannotCompile(Exception):
    """The reason, in a few words."""


class NoCompiler(CannotCompile):
    """The system lacks what compiles; it may be installed later."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wheel", type=Path, help="put the modules there instead")
    arguments = parser.parse_args()
    if os.environ.get(SWITCH) == "0":
        _use_sources()
        print(f"Not compiled: {SWITCH}=0")
        return
    reason, exit_code = "", 0
    try:
        folder = compiled(announce=print)
        if arguments.wheel:
            without = shutil.ignore_patterns(CHECKED)
            shutil.copytree(folder, arguments.wheel, dirs_exist_ok=True, ignore=without)
    except CannotCompile as failure:
        reason = str(failure)
        exit_code = NO_COMPILER if isinstance(failure, NoCompiler) else 0
    except Exception as failure:  # noqa: BLE001  the disk, mypy, a source in the middle of an edit
        with contextlib.suppress(OSError):
            LOG.write_text(traceback.format_exc())
        reason = f"{type(failure).__name__}: {failure}"
    if not reason:
        return
    _use_sources()
    print(f"Not compiled, runs as pure Python: {' '.join(reason.split())}")
    if arguments.wheel or exit_code:
        sys.exit(exit_code or 1)


def _use_sources() -> None:
    with contextlib.suppress(OSError):  # there is none, or it may not be removed: it is stale then
        (BUILDS / ABI).unlink()


def compiled(announce: Callable[[str], object]) -> Path:
    """The folder with the modules of the present sources; compiles them if there is none."""
    how = _compiler_and_flags()
    with _alone(announce):
        folder = _built(how)
        if folder is None:
            _require_build_tools(announce)
            announce(f"Compiling {len(COMPILED)} modules with {how}: once for these sources")
            began = time.monotonic()
            folder = _build(how)
            announce(f"Compiled in {time.monotonic() - began:.0f} s")
        _point_to(folder)
        if not (folder / CHECKED).exists():
            _check(folder)
            (folder / CHECKED).touch()
        _remove_old(folder)
    return folder


@contextlib.contextmanager
def _alone(announce: Callable[[str], object]) -> Iterator[None]:
    """Wait for another compile step of this checkout; it may make what this one wants."""
    BUILDS.mkdir(parents=True, exist_ok=True)
    with BUSY.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            announce("Waiting for another compile step")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _check(folder: Path) -> None:
    """Remove what does not work: the sources do."""
    done = subprocess.run(
        [sys.executable, "-m", "native.check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        LOG.write_text(done.stderr)
        shutil.rmtree(folder)
        raise CannotCompile(f"what was compiled does not work: {_last_line(done.stderr)}")


# What is there


def _compiler_and_flags() -> str:
    """The compiler and its flags, for the manifest. Raises if there is none."""
    compiler = _compiler()
    if shutil.which(compiler[0]) is None:
        raise NoCompiler(f"there is no C compiler ({compiler[0]})")
    if not Path(sysconfig.get_paths()["include"], "Python.h").is_file():
        raise NoCompiler("there is no Python.h; a system package has it, such as python3-dev")
    said = subprocess.run(
        [*compiler, "-dumpfullversion"], capture_output=True, text=True, check=False
    )
    name = f"{Path(compiler[0]).name} {said.stdout.strip()}".strip()
    return " ".join([name, *_flags()])


def _compiler() -> list[str]:
    return shlex.split(os.environ.get("CC") or str(sysconfig.get_config_var("CC") or "cc"))


def _flags() -> list[str]:
    level = os.environ.get(SWITCH, "1")
    return [
        f"-O{level if level in {'1', '2', '3'} else 1}",
        *shlex.split(os.environ.get("CFLAGS", "")),
    ]


def _built(how: str) -> Path | None:
    """A folder that was made of the present sources in this way."""
    for folder in _folders():
        with contextlib.suppress(OSError, ValueError):
            manifest = BuildManifest((folder / MANIFEST_FILE).read_text("utf-8"))
            if manifest.how != how or manifest.tools != _tools_digest():
                continue
            if not (folder / f"{LIBRARY}{SUFFIX}").is_file():
                continue
            now = [SourceState.of(path) for *_, path in manifest.sources]
            digests = {path: digest for *_, digest, path in manifest.sources}
            if all(state.digest == digests[state.path] for state in now):
                # The times of the files as they are now: the next start compares no contents.
                _write_manifest(folder, how, now)
                return folder
    return None


def _folders() -> list[Path]:
    """The newest first."""
    found = [path.parent for path in BUILDS.glob(f"{ABI}-*/{MANIFEST_FILE}")]
    return sorted(
        found, key=lambda folder: (folder / MANIFEST_FILE).stat().st_mtime_ns, reverse=True
    )


def _tools_digest() -> str:
    """Of what decides how a source is translated."""
    digest = hashlib.sha256()
    for path in [*sorted((ROOT / "native").glob("*.*")), ROOT / LOCK]:
        if path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _require_build_tools(announce: Callable[[str], object]) -> None:
    try:
        import Cython  # noqa: F401
        import mypyc  # noqa: F401
    except ImportError:
        announce("Installing what compiles: once, for some seconds")
        pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        done = subprocess.run(
            [*pip, "--require-hashes", "-r", str(ROOT / LOCK)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise CannotCompile(f"pip cannot install {LOCK}: {_last_line(done.stderr)}") from None


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else "no reason given"


# Building


def _build(how: str) -> Path:
    for left in BUILDS.glob("new-*"):  # of a step that was killed: this one is alone
        shutil.rmtree(left, ignore_errors=True)
    scratch = Path(tempfile.mkdtemp(prefix="new-", dir=BUILDS))
    made = scratch / "made"
    made.mkdir()
    made.chmod(0o755)
    try:
        before = {
            path: SourceState.of(path) for path in [*_program_files(), *C_EXTENSIONS.values()]
        }
        library = _translate(scratch / "c")
        libraries = {
            LIBRARY: library,
            CODEC: _translate_codec(scratch / "c"),
            LOADER: Sources([ROOT / "native" / "loader.c"], []),
            **{name: Sources([ROOT / path], []) for name, path in C_EXTENSIONS.items()},
        }
        _compile(libraries, made, scratch)
        used = sorted([*_imported(COMPILED), *C_EXTENSIONS.values()])
        _write_manifest(made, how, [before[path] for path in used])
        if stale := BuildManifest((made / MANIFEST_FILE).read_text("utf-8")).stale(str(ROOT)):
            raise CannotCompile(f"{stale} was changed meanwhile")
        key = hashlib.sha256((made / MANIFEST_FILE).read_bytes()).hexdigest()[:12]
        folder = BUILDS / f"{ABI}-{key}"
        shutil.rmtree(folder, ignore_errors=True)
        made.rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return folder


def _program_files() -> list[str]:
    packages = [path.parent for path in ROOT.glob("*/__init__.py")]
    return [str(path.relative_to(ROOT)) for folder in packages for path in folder.rglob("*.py")]


def _translate(out: Path) -> Sources:
    """Write the C files of all modules."""
    from mypyc.build import mypycify

    said = io.StringIO()
    os.environ["MYPY_CACHE_DIR"] = str(out.parent / "mypy")
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), _inside(ROOT):
            extensions = mypycify(
                [path_of(module) for module in COMPILED],
                multi_file=True,
                target_dir=str(out),
                group_name=LIBRARY.removesuffix("__mypyc"),
            )
    except SystemExit:
        LOG.write_text(said.getvalue())
        faults = [line for line in said.getvalue().splitlines() if ": error:" in line]
        raise CannotCompile(f"mypyc: {faults[0] if faults else 'failed'} (all: {LOG})") from None
    library = next(extension for extension in extensions if extension.name == LIBRARY)
    files = [Path(name) for name in library.sources]
    for file in files:
        text = file.read_text("utf-8")
        file.write_text(RUNS_ONCE.sub("__attribute__((cold)) ", text), "utf-8")
    return Sources(files, library.include_dirs)


def _translate_codec(out: Path) -> Sources:
    source, translated = out / f"{CODEC}.pyx", out / f"{CODEC}.c"
    source.write_text(codec_source(), "utf-8")
    _run([sys.executable, "-m", "cython", "-3", str(source), "-o", str(translated)])
    return Sources([translated], [])


def _imported(modules: Iterable[str]) -> set[str]:
    """The sources of the modules and of all of this program that they import.

    A compiled module contains constants of other ones, and relies on what mypy knows of them.
    """
    found: set[str] = set()
    left = list(modules)
    while left:
        module = left.pop()
        path = path_of(module)
        if not (ROOT / path).is_file():
            path = f"{module.replace('.', '/')}/__init__.py"
        if path in found or not (ROOT / path).is_file():
            continue
        found.add(path)
        for node in ast.walk(ast.parse((ROOT / path).read_bytes())):
            if isinstance(node, ast.Import):
                left += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                left += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return found


def _compile(libraries: Mapping[str, Sources], made: Path, scratch: Path) -> None:
    """Compile and link; as many files at a time as there are processors."""
    paths = sysconfig.get_paths()
    command = [*_compiler(), *_flags(), "-c", *OBJECT_FLAGS, "-DNDEBUG", "-w"]
    jobs = {
        scratch / f"{source.name}.o": [*command, *_include(folders), str(source)]
        for sources, folders in libraries.values()
        for folders in [[*folders, paths["include"], paths["platinclude"]]]
        for source in sources
    }
    # The largest first, so that no processor is left with one at the end.
    order = sorted(jobs, key=lambda made: Path(jobs[made][-1]).stat().st_size, reverse=True)
    with ThreadPoolExecutor(_processors()) as pool:
        list(pool.map(lambda made: _run([*jobs[made], "-o", str(made)]), order))
    link = [*_compiler(), *_link_flags(), *_flags()]
    for name, (sources, _) in libraries.items():
        objects = [str(scratch / f"{source.name}.o") for source in sources]
        _run([*link, *objects, "-s", "-o", str(made / f"{name}{SUFFIX}")])


def _processors() -> int:
    """That this process may use; not every system can tell."""
    usable = getattr(os, "sched_getaffinity", None)
    return len(usable(0)) if usable is not None else os.cpu_count() or 1


def _link_flags() -> list[str]:
    """What Python links extensions with, without its compiler (which may be several words)."""
    linker = shlex.split(str(sysconfig.get_config_var("LDSHARED")))
    compiler = shlex.split(str(sysconfig.get_config_var("CC") or ""))
    has_compiler = bool(compiler) and linker[: len(compiler)] == compiler
    own = linker[len(compiler) :] if has_compiler else linker[1:]
    return [*own, *LINK_FLAGS, *([PACKED_RELOCATIONS] if _reads_packed_relocations() else [])]


def _reads_packed_relocations() -> bool:
    name, version = platform.libc_ver()
    numbers = tuple(int(part) for part in version.split(".") if part.isdecimal())
    return name == "glibc" and numbers >= PACKED_SINCE


def _include(folders: Iterable[str]) -> list[str]:
    return [word for folder in folders for word in ("-I", folder)]


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        LOG.write_text(f"{shlex.join(command)}\n{done.stdout}{done.stderr}")
        raise CannotCompile(f"{command[0]}: {_last_line(done.stderr)} (all of it: {LOG})")


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


# The result


def _write_manifest(folder: Path, how: str, sources: Iterable[SourceState]) -> None:
    lines = [how, f"tools {_tools_digest()}"]
    for size, mtime_ns, digest, path in sources:
        lines.append(f"source {size} {mtime_ns} {digest} {path}")
    lines += [f"module {module}" for module in COMPILED]
    lines += [f"extension {name}" for name in (CODEC, *C_EXTENSIONS)]
    new = folder / f"{MANIFEST_FILE}.new"
    new.write_text("\n".join(lines) + "\n", "utf-8")
    new.replace(folder / MANIFEST_FILE)


def _point_to(folder: Path) -> None:
    link = BUILDS / f"{ABI}.new"
    link.unlink(missing_ok=True)
    link.symlink_to(folder.name)
    link.replace(BUILDS / ABI)


def _remove_old(current: Path) -> None:
    for folder in [found for found in _folders() if found != current][KEPT_BUILDS:]:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()

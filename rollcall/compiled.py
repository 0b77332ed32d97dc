"""Compiled build: finds the compiled modules of this program, and refuses those that are stale.

`make install` compiles the modules that serve requests (native/compile.py) into one folder for each
Python: `build/compiled/<ABI>` in a checkout, `rollcall/_compiled` in a wheel. The folder has two
shared libraries and a manifest. It is whole or not used at all: if one file that it was compiled
from has changed since, every module comes from its source. A file counts as unchanged if its size
and time are those of the manifest, as for Python's own bytecode, or else if its content is.

`ROLLCALL_PURE=1` runs the sources. Kept small: each command pays for it at its start.
"""

import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import TYPE_CHECKING, Final

ABI: Final = EXTENSION_SUFFIXES[0].split(".")[1]
"""What a compiled module depends on: the Python, its version and the platform."""

MANIFEST_FILE: Final = "manifest"
LIBRARY: Final = "rollcall__mypyc"
"""The module that carries all that mypyc has compiled; its functions create the others."""

LOADER: Final = "rollcall_loader"
"""The module that calls those functions."""

_HERE: Final = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120
_PURE: Final = "ROLLCALL_PURE"
_found = "pure Python"


class BuildManifest:
    """What a folder of compiled modules was made from, and what it has.

    The first line says `how`: compiler and flags. The others: `source SIZE MTIME_NS SHA256 PATH`,
    `module NAME` (of the library), `extension NAME` (a library of its own) and `tools DIGEST`.
    """

    __slots__ = ("extensions", "how", "modules", "sources", "tools")

    def __init__(self, text: str) -> None:
        self.how, *lines = text.splitlines()
        self.sources: list[list[str]] = []
        self.modules: set[str] = set()
        self.extensions: set[str] = set()
        self.tools = ""
        for line in lines:
            kind, rest = line.split(" ", 1)
            if kind == "source":
                self.sources.append(rest.split(" ", 3))
            elif kind == "module":
                self.modules.add(rest)
            elif kind == "extension":
                self.extensions.add(rest)
            else:
                self.tools = rest

    def stale(self, program: str) -> str:
        """The first source that is not as it was, "" if all are."""
        for size, mtime_ns, digest, path in self.sources:
            file = f"{_HERE}/{path[9:]}" if path.startswith("rollcall/") else f"{program}/{path}"
            try:
                now = os.stat(file)  # noqa: PTH116  hundreds of them, at each start
                if str(now.st_size) != size:
                    return path
                if str(now.st_mtime_ns) != mtime_ns and content_digest(file) != digest:
                    return path
            except OSError:
                return path
        return ""


def content_digest(file: str) -> str:
    """Of a file, as the manifest has it."""
    import hashlib

    with open(file, "rb") as opened:  # noqa: PTH123
        return hashlib.sha256(opened.read()).hexdigest()


if TYPE_CHECKING:
    from importlib.abc import Loader
else:
    Loader = object  # its module takes long to import


class CompiledFinder(Loader):
    """The finder of `sys.meta_path` for the modules of one folder, and their loader."""

    def __init__(self, folder: str, manifest: BuildManifest) -> None:
        self.how = manifest.how
        self._folder = folder
        self._modules = manifest.modules
        self._extensions = manifest.extensions | {LIBRARY, LOADER}
        self._is_loaded = False

    def find_spec(
        self, name: str, _path: object = None, _target: object = None
    ) -> ModuleSpec | None:
        """As the import system wants it."""
        if name in self._modules and self._can_load():
            return ModuleSpec(name, self, origin=self._file(LIBRARY))
        if name in self._extensions:
            file = self._file(name)
            return spec_from_file_location(name, file, loader=ExtensionFileLoader(name, file))
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module, which runs as it is created."""
        import rollcall__mypyc
        import rollcall_loader

        created: ModuleType = rollcall_loader.create(
            rollcall__mypyc, f"init_{spec.name.replace('.', '___')}"
        )
        return created

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is left to do."""

    def _can_load(self) -> bool:
        """Load the library, before the first of its modules. If this machine cannot, all modules
        are sources: it may be damaged, or was made for a newer C library.
        """
        global _found  # noqa: PLW0603  as in `use_compiled`
        if not self._is_loaded:
            try:
                import rollcall__mypyc  # noqa: F401
                import rollcall_loader  # noqa: F401
            except ImportError as failure:
                self._modules = self._extensions = set()
                _found = f"pure Python (the compiled modules cannot be loaded: {failure})"
                return False
            self._is_loaded = True
        return True

    def _file(self, name: str) -> str:
        return f"{self._folder}/{name}{EXTENSION_SUFFIXES[0]}"


def compiled_folder(program: str) -> str:
    """Where the compiled modules of this Python are, if there are any."""
    if os.path.basename(program) == "_program":  # noqa: PTH119
        return os.path.join(os.path.dirname(program), "_compiled")  # noqa: PTH118, PTH120
    # A link, to be replaced at once: what runs goes on with the folder that it has found.
    return os.path.realpath(os.path.join(program, "build", "compiled", ABI))  # noqa: PTH118


def use_compiled(program: str) -> None:
    """Let this process import the compiled modules, if they are there and fit the sources."""
    global _found  # noqa: PLW0603  of this process, as `sys.meta_path` is
    finder = _finder(program)
    if isinstance(finder, str):
        _found = finder
        return
    sys.meta_path.insert(0, finder)
    _found = f"compiled, {finder.how}"


def load_extension(name: str, program: str) -> ModuleType | None:
    """One of the libraries of their own, also where the other compiled modules are not used, as in
    a worker of Spark. None: there is none that fits the sources, or it cannot be loaded."""
    if name in sys.modules:
        return sys.modules[name]
    finder = _finder(program)
    spec = None if isinstance(finder, str) else finder.find_spec(name)
    if spec is None or spec.loader is None:
        return None
    try:
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    except ImportError:
        return None
    sys.modules[name] = module
    return module


def _finder(program: str) -> CompiledFinder | str:
    """For the compiled modules of this program; or why there are none."""
    if os.environ.get(_PURE, "0") not in {"", "0"}:
        return f"pure Python ({_PURE} is set)"
    folder = compiled_folder(program)
    try:
        with open(f"{folder}/{MANIFEST_FILE}", encoding="utf-8") as file:  # noqa: PTH123
            manifest = BuildManifest(file.read())
        stale = manifest.stale(program)
    except OSError:
        return "pure Python"
    except ValueError:
        return f"pure Python ({folder}/{MANIFEST_FILE} is damaged)"
    if not os.path.isfile(f"{folder}/{LIBRARY}{EXTENSION_SUFFIXES[0]}"):  # noqa: PTH113
        return "pure Python (compiled for another Python)"
    if stale:
        return f"pure Python ({stale} has changed since it was compiled)"
    return CompiledFinder(folder, manifest)


def describe_build() -> str:
    """Whether this process runs compiled modules and, if not, why."""
    return _found


def interpreter_version() -> str:
    """The Python that runs this."""
    return f"{sys.implementation.name} {'.'.join(map(str, sys.version_info[:3]))}"


def describe_interpreter() -> str:
    """The same, and how it was configured as far as speed depends on it; for `--version`.

    Its options take 0.3 MB of memory to read. A distribution may profile and link its own way:
    Debian's has PGO and LTO without the options.
    """
    import sysconfig

    arguments = str(sysconfig.get_config_var("CONFIG_ARGS") or "")
    optimized = "with" if "--enable-optimizations" in arguments else "without"
    linked = "with" if "--with-lto" in arguments else "without"
    return f"{interpreter_version()} configured {optimized} PGO, {linked} LTO"

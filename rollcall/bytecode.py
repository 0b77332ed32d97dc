"""Bytecode bundle: the bytecode of this program in one file, in which a start finds modules sooner.

Python looks for a module in folders, compares its source with its bytecode and opens a file: 60 µs
for each of 500 modules. With the bundle that `make install` makes (native/bundle.py) a module takes
one look at its source and one read. If a source has another size or time than in the bundle, or the
bundle is damaged, gone or of another Python, Python finds the module in its own way. A wheel has no
bundle. Kept small: each command pays for it at its start.
"""

import marshal
import os
import sys
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import MAGIC_NUMBER
from types import CodeType
from typing import Final, NamedTuple

LENGTH_BYTES: Final = 8
_STDERR: Final = 2


BundledModule = tuple[str, int, int, bool, int, int]
"""Its source below the program's folder, size and mtime (ns) of the source when it was compiled,
whether it is a package; where its bytecode begins, and how many bytes it has."""


class BundleIndex(NamedTuple):
    """What a bundle begins with: of which Python and folder it is, and where the modules are."""

    magic: bytes
    program: str
    file_bytes: int
    """Of all modules together."""
    modules: dict[str, BundledModule]


def bundle_file(program: str) -> str:
    """Where the bundle of this Python is, if there is one."""
    return f"{program}/build/bytecode/{sys.implementation.cache_tag}"


class Bundle:
    """An opened bundle: the finder of `sys.meta_path` for its modules."""

    def __init__(self, file: str, program: str) -> None:
        """Raises OSError and ValueError if there is none that can be used."""
        self._file = file
        self._program = program
        self._fd = _opened(file)
        try:
            self._identity = _identity(self._fd)
            self._modules, self._begin = self._read_index()
        except BaseException:
            os.close(self._fd)
            raise

    def _read_index(self) -> tuple[dict[str, BundledModule], int]:
        """The modules, and where their bytecode begins."""
        length = int.from_bytes(os.pread(self._fd, LENGTH_BYTES, 0), "big")
        begin = LENGTH_BYTES + length
        *_, size = self._identity
        if begin > size:
            raise ValueError(f"{self._file} is damaged: it has {size} bytes")
        try:
            index = BundleIndex(*marshal.loads(os.pread(self._fd, length, LENGTH_BYTES)))
        except (EOFError, TypeError, ValueError) as fault:
            raise ValueError(f"{self._file} is damaged: {fault}") from None
        if index.magic != MAGIC_NUMBER or index.program != self._program:
            raise ValueError(f"{self._file} is of another Python or folder")
        if size != begin + index.file_bytes:
            raise ValueError(f"{self._file} is damaged: it has {size} bytes")
        return index.modules, begin

    def find_spec(
        self, name: str, _path: object = None, _target: object = None
    ) -> ModuleSpec | None:
        """As the import system wants it. None: no module of ours, or its source has changed."""
        found = self._modules.get(name)
        if found is None:
            return None
        path, size, mtime_ns, is_package, _, _ = found
        file = f"{self._program}/{path}"
        try:
            now = os.stat(file)  # noqa: PTH116  for each module of a start
        except OSError:
            return None
        if now.st_size != size or now.st_mtime_ns != mtime_ns:
            return None
        loader = _BundleLoader(name, file, self)
        spec = ModuleSpec(name, loader, origin=file, is_package=is_package)
        spec.has_location = True
        spec.cached = self._file
        if spec.submodule_search_locations is not None:
            spec.submodule_search_locations.append(file.rpartition("/")[0])
        return spec

    def code(self, name: str) -> CodeType | None:
        """The bytecode of a module; None if it is damaged, or if somebody has closed the file."""
        *_, start, length = self._modules[name]
        try:
            if _identity(self._fd) != self._identity:
                return None  # its number is another file's by now
            code = marshal.loads(os.pread(self._fd, length, self._begin + start))
        except (OSError, EOFError, TypeError, ValueError):
            return None
        return code if isinstance(code, CodeType) else None


class _BundleLoader(SourceFileLoader):
    """Python's own loader, with the bytecode from the bundle."""

    def __init__(self, name: str, path: str, bundle: Bundle) -> None:
        super().__init__(name, path)
        self._bundle = bundle

    def get_code(self, fullname: str) -> CodeType | None:
        return self._bundle.code(fullname) or super().get_code(fullname)


def _opened(file: str) -> int:
    """Its descriptor; never the number of a standard stream, although one may be closed."""
    fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    if fd > _STDERR:
        return fd
    import fcntl

    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _STDERR + 1)
    finally:
        os.close(fd)


def _identity(fd: int) -> tuple[int, int, int]:
    found = os.fstat(fd)
    return found.st_ino, found.st_mtime_ns, found.st_size


def use_bundle(program: str) -> None:
    """Let this process read its modules from the bundle, if there is one that fits.

    The file stays open: a newer bundle is another file, so that what was opened does not change.
    """
    if sys.flags.optimize:
        return  # it has the asserts
    try:
        bundle = Bundle(bundle_file(program), program)
    except (OSError, ValueError):
        return
    sys.meta_path.insert(0, bundle)

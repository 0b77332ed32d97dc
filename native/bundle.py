"""Bundle step: puts the bytecode of this program into one file, for the Python that runs it.

    .venv/bin/python -m native.bundle

`make install` runs it (rollcall/bytecode.py reads the file). Sources that cannot be compiled are
left out: who imports one gets Python's own error. So are what takes memory of each daemon and is
never used: the annotations of functions, which Python would evaluate, and docstrings, except where
they are shown.
"""

import ast
import marshal
import tempfile
import time
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from typing import Final

from rollcall.bytecode import LENGTH_BYTES, BundledModule, BundleIndex, bundle_file

ROOT: Final = Path(__file__).resolve().parents[1]
LEFT_OUT: Final = frozenset({"bench", "docs", "native", "rollcall", "tests"})
"""Not a part of the program, or imported before there is a bundle."""

SHOWS_DOCSTRINGS: Final = frozenset({"cli", "pipeline"})
"""As the help of commands."""

LEFT_BEHIND_S: Final = 600
"""A new bundle that is older was left by a step that was killed."""


def main() -> None:
    write_bundle(ROOT, Path(bundle_file(str(ROOT))))


def write_bundle(program: Path, file: Path) -> None:
    """Make the file new; a process that reads the old one goes on with what it has opened."""
    modules: dict[str, BundledModule] = {}
    codes: list[bytes] = []
    size = 0
    for source in _sources(program):
        path = source.relative_to(program)
        is_package = source.name == "__init__.py"
        parts = path.parent.parts if is_package else path.with_suffix("").parts
        before = source.stat()  # first: an edit in between leaves a time that is not the file's
        try:
            tree = ast.parse(source.read_bytes())
            if parts[0] not in SHOWS_DOCSTRINGS:
                _remove_docstrings(tree)
            _remove_annotations(tree)
            code = marshal.dumps(compile(tree, str(source), "exec", dont_inherit=True))
        except (SyntaxError, ValueError):
            continue
        modules[".".join(parts)] = (
            path.as_posix(), before.st_size, before.st_mtime_ns, is_package, size, len(code),
        )  # fmt: skip
        codes.append(code)
        size += len(code)
    index = marshal.dumps(tuple(BundleIndex(MAGIC_NUMBER, str(program), size, modules)))
    file.parent.mkdir(parents=True, exist_ok=True)
    _remove_left_behind(file)
    with tempfile.NamedTemporaryFile(
        prefix=_new_prefix(file), dir=file.parent, delete=False
    ) as new:
        new.write(len(index).to_bytes(LENGTH_BYTES, "big"))
        new.write(index)
        new.writelines(codes)
    Path(new.name).chmod(0o644)
    Path(new.name).replace(file)


def _remove_docstrings(tree: ast.Module) -> None:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            match node.body:
                case [ast.Expr(ast.Constant(str())) as docstring]:
                    node.body = [ast.copy_location(ast.Pass(), docstring)]
                case [ast.Expr(ast.Constant(str())), *rest]:
                    node.body = rest


def _remove_annotations(tree: ast.Module) -> None:
    """Those that nobody reads; the annotations of classes declare the fields of messages."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
    tree.body = [_without_annotation(statement) for statement in tree.body]


def _without_annotation(statement: ast.stmt) -> ast.stmt:
    match statement:
        case ast.AnnAssign(target=ast.Name() as target, value=ast.expr() as value):
            return ast.copy_location(ast.Assign([target], value), statement)
        case _:
            return statement


def _new_prefix(file: Path) -> str:
    return f"{file.name}.new-"


def _remove_left_behind(file: Path) -> None:
    for new in file.parent.glob(f"{_new_prefix(file)}*"):
        try:
            if new.stat().st_mtime < time.time() - LEFT_BEHIND_S:
                new.unlink()
        except OSError:
            pass  # another step has removed or renamed it


def _sources(program: Path) -> list[Path]:
    packages = [path.parent for path in sorted(program.glob("*/__init__.py"))]
    return [
        source
        for package in packages
        if package.name not in LEFT_OUT
        for source in sorted(package.rglob("*.py"))
    ]


if __name__ == "__main__":
    main()

"""Names and words of the product: what repeats, what circles, and what is not plain English.

`python -m tests.architecture.names [PACKAGE...]` prints what it finds in these packages (all
without an argument). tests/architecture/test_names.py holds the same functions to their limits.
Only the syntax trees are read, nothing is imported.
"""

import ast
import gc
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.architecture.tree import PACKAGES, ROOT, python_files, tracked_files

# Packages of which each has the same files, one for each group type.
GROUP_TYPES = ("classic", "consumer", "share", "streams")
# Names that a reader expects in many modules.
EXPECTED_NAMES = {"main", "handlers", "open_client"}
# Their names are Kafka's, field for field.
KAFKAS_NAMES = ("protocol/messages/", "coordinator/record_schemas.py")

TERM_WORDS_MAX = 7
# A docstring that begins with one of these is a question or a sentence, not a term.
_QUESTIONS = "are can did do does how is may must was what when where which who whose why will"
NOT_A_TERM = set(_QUESTIONS.split())

# Words that are not names here: in a class, function, parameter, attribute or variable the standard
# term is written instead (record, report, flush, inspect, collect, task ...).
_PLAIN_WORDS = """
    tell tells telling teller told settle settles settled settling look looks looked looking
    gather gathers gathered gatherer gatherers gathering errand errands chore chores chronicle
    census obituary knock deaf breath breathe bury burial grave graves tomb anew whos doomed
    dirt dirts dirtiest everybody somebody hurry entrance entrances outlook party parties
    leap glance patience parted welcome untimely worthless pulse complaint complaints complain
    shrunken news trouble troubles alike asker askers mine theirs keeper stranger strangers house
    road recall recalling weigh weighed tidy alarm books
"""
NOT_A_NAME = set(_PLAIN_WORDS.split())
# Not names when they stand alone; as a part of a name they are plain.
NOT_A_NAME_ALONE = {"one", "ones", "who", "things"}
# The fields of Config are called as their keys, which users set.
KEY_FIELD = re.compile(r"_?rollcall_\w+")
# A hash behind a blank begins a comment, as the formatter writes them.
COMMENT = re.compile(r"(?:^|\s)#(?: |$).*")
NAME_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")

# In docstrings, comments and pages. Only words that have no plain use in this project.
QUAINT = re.compile(
    r"\b(?:anew|whoever|whosoever|so long as?|takes? it along|told of|tells? of|as it is with|"
    r"nobody's|somebody's|everybody(?:'s)?|lies?|lay|errands?|the house|of the house|in this house|"
    r"house|road|strangers?|knocks?|obituary|deaf|chroniclers?|census|hitherto|thereof|therein|"
    r"whereof|wherein|hence|forthwith|henceforth|dear|upon|amid|ere|lest|ought|naught|"
    r"word to|for ever|whereby|in the midst)\b"
)


class Module(NamedTuple):
    """One Python file: its path, dotted name and syntax tree."""

    path: str
    name: str
    text: str
    tree: ast.Module


class Finding(NamedTuple):
    """One violation; `key` names it without the line, for lists of exceptions."""

    place: str
    key: str

    def __str__(self) -> str:
        return f"{self.place}: {self.key}"


@cache
def module_of(path: Path) -> Module:
    text = (ROOT / path).read_text()
    name = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
    return Module(str(path), name, text, ast.parse(text))


def modules(packages: Iterable[str] = PACKAGES) -> list[Module]:
    """The modules of these packages (`broker`) or of parts of them (`broker/net`)."""
    return _modules(tuple(packages))


@cache
def _modules(packages: tuple[str, ...]) -> list[Module]:
    wanted = tuple(package.rstrip("/").replace(".", "/") for package in packages)
    return [
        module_of(path)
        for path in python_files(tests=False) + python_files(tests=True)
        if str(path).removesuffix(".py") in wanted
        or str(path).startswith(tuple(f"{package}/" for package in wanted))
    ]


def statements(module: Module) -> Iterator[ast.stmt]:
    """Every statement, wherever it stands. Cheaper than ast.walk, which visits expressions too."""
    bodies: list[Iterable[ast.stmt]] = [module.tree.body]
    while bodies:
        for node in bodies.pop():
            yield node
            bodies += [getattr(node, part) for part in _BODIES if hasattr(node, part)]
            for branch in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
                bodies.append(branch.body)


_BODIES = ("body", "orelse", "finalbody")


# (a) Names that several modules export


def exported(module: Module) -> Iterator[str]:
    """The public names that a module itself defines at its top level."""
    for node in module.tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names = [node.name]
        elif isinstance(node, ast.Assign) and not _is_type_variable(node.value):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names = [node.target.id]
        else:
            continue
        yield from (name for name in names if not name.startswith("_"))


def _is_type_variable(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value.func) in {"TypeVar", "ParamSpec"}


def _exporter(module: Module) -> str:
    """The module's path; files of one name in the packages of group types count as one."""
    return re.sub(rf"/(?:{'|'.join(GROUP_TYPES)})/", "/TYPE/", module.path)


def repeated_names(packages: Iterable[str] = PACKAGES) -> dict[str, list[str]]:
    """name -> the modules that export it, of names that two modules of the product export."""
    exporters: dict[str, dict[str, str]] = {}
    for module in modules(PACKAGES):
        if not module.path.startswith(KAFKAS_NAMES):
            for name in set(exported(module)) - EXPECTED_NAMES:
                exporters.setdefault(name, {})[_exporter(module)] = module.path
    asked = {module.path for module in modules(packages)}
    return {
        name: sorted(found.values())
        for name, found in sorted(exporters.items())
        if len(found) > 1 and not asked.isdisjoint(found.values())
    }


@cache
def _names_used_elsewhere() -> frozenset[tuple[str, str]]:
    """(module, name) of what some other module imports, or reaches through the module."""
    everything = [module_of(path) for path in python_files(tests=False) + python_files(tests=True)]
    known = {module.name for module in everything}
    used: set[tuple[str, str]] = set()
    for module in everything:
        aliases: dict[str, str] = {}
        for node in statements(module):
            if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                for name in node.names:
                    inner = f"{node.module}.{name.name}"
                    if inner in known:
                        aliases[name.asname or name.name] = inner
                    else:
                        used.add((node.module, name.name))
        # The table of commands names modules and functions as strings.
        used.update(re.findall(r'"(cli[\w.]*)", "(\w+)"', module.text))
        for alias, target in aliases.items():
            attributes = re.findall(rf"(?<![\w.]){alias}\.(\w+)", module.text)
            used.update((target, attribute) for attribute in attributes)
    return frozenset(used)


def is_used_elsewhere(path: str, name: str) -> bool:
    return (path.removesuffix(".py").replace("/", "."), name) in _names_used_elsewhere()


# (b) Docstrings that do not begin with a term


def begins_with_a_term(line: str) -> bool:
    """Is this "Term: what it does or which question it answers"?"""
    term, colon, rest = line.partition(": ")
    words = re.sub(r"`[^`]*`", "Code", term).split()
    return bool(
        (colon or line.endswith(":"))
        and rest
        and 0 < len(words) <= TERM_WORDS_MAX
        and re.match(r"[A-Z/\d]|[a-z]+[-_]", words[0])
        and words[0].lower() not in NOT_A_TERM
        and not re.search(r"[?.!](?:\s|$)", term)
    )


def docstrings_without_a_term(packages: Iterable[str] = PACKAGES) -> list[Finding]:
    return [
        Finding(module.path, lines[0] if lines else "no docstring")
        for module in modules(packages)
        if module.text
        for lines in [(ast.get_docstring(module.tree) or "").splitlines()]
        if not lines or not begins_with_a_term(lines[0])
    ]


# (c) Words that are not names


def given_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """(line, name) of everything that a module gives a name to."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.lineno, node.name
            case ast.arg():
                yield node.lineno, node.arg
            case ast.Name(ctx=ast.Store()):
                yield node.lineno, node.id
            case ast.Attribute(ctx=ast.Store()):
                yield node.lineno, node.attr
            case ast.alias(asname=str(name)):
                yield node.lineno, name
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                yield node.lineno, name


def is_a_name(name: str) -> bool:
    """May something be called this? `look_up` and Config's fields may, `tell_all` may not."""
    if name.strip("_") in NOT_A_NAME_ALONE:
        return False
    parts = [part.lower() for part in NAME_PART.findall(name.replace("look_up", ""))]
    return NOT_A_NAME.isdisjoint(parts) or KEY_FIELD.fullmatch(name) is not None


def words_that_are_not_names(packages: Iterable[str] = PACKAGES) -> list[Finding]:
    """One finding for each name in a module, at its first line."""
    found: dict[tuple[str, str], int] = {}
    for module in modules(packages):
        for line, name in given_names(module.tree):
            if not is_a_name(name):
                key = (module.path, name)
                found[key] = min(line, found.get(key, line))
    return [Finding(f"{path}:{line}", name) for (path, name), line in sorted(found.items())]


# (d) Import circles


def imported_modules(module: Module, known: set[str]) -> set[str]:
    """The modules of the tree that this one imports, wherever in the file the import stands."""
    found: set[str] = set()
    for node in statements(module):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in known else node.module)
    return found & known - {module.name}


def import_circles(packages: Iterable[str] | None = None) -> list[list[str]]:
    """Groups of modules that import one another (strongly connected components)."""
    everything = [module_of(path) for path in python_files(tests=False) + python_files(tests=True)]
    known = {module.name for module in everything}
    graph = {module.name: sorted(imported_modules(module, known)) for module in everything}
    circles = [sorted(part) for part in _components(graph) if len(part) > 1]
    if packages is None:
        return sorted(circles)
    asked = {module.name for module in modules(packages)}
    return sorted(circle for circle in circles if not asked.isdisjoint(circle))


def _components(graph: dict[str, list[str]]) -> Iterator[list[str]]:
    """Tarjan's strongly connected components, without recursion."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    for root, first in graph.items():
        work = [] if root in number else [(root, iter(first))]
        while work:
            node, targets = work[-1]
            if node not in number:
                number[node] = low[node] = len(number)
                stack.append(node)
            for target in targets:
                if target not in number:
                    work.append((target, iter(graph[target])))
                    break
                if target in stack:
                    low[node] = min(low[node], number[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == number[node]:
                    start = stack.index(node)
                    yield stack[start:]
                    del stack[start:]


# (e) Dataclasses


def dataclasses(packages: Iterable[str] = PACKAGES) -> list[Finding]:
    return [
        Finding(f"{module.path}:{node.lineno}", node.name)
        for module in modules(packages)
        for node in statements(module)
        if isinstance(node, ast.ClassDef)
        and any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list)
    ]


# (f) Quaint words in prose


def prose(module: Module) -> Iterator[tuple[int, str]]:
    """(number, text) of each line of a docstring or a comment."""
    lines = module.text.splitlines()
    code = set(range(1, len(lines) + 1))
    for node in statements(module):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            # A docstring, also one of an attribute.
            for number in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                code.discard(number)
                yield number, lines[number - 1]
    for number in sorted(code):
        comment = COMMENT.search(lines[number - 1])
        if comment is not None:
            yield number, comment[0]


def pages() -> list[Path]:
    """Documents and other text files that people read."""
    names = {"Makefile", "Dockerfile", "pyproject.toml"}
    return [
        path
        for path in tracked_files()
        if path.suffix in {".md", ".yaml", ".yml", ".sh", ".service"} or str(path) in names
    ]


def quaint_words(packages: Iterable[str] = PACKAGES) -> list[Finding]:
    """Of the Python files of these packages and of the pages under these folders."""
    asked = tuple(packages)
    found: list[Finding] = []
    for module in modules(asked):
        if QUAINT.search(module.text.lower()):
            for number, line in prose(module):
                found += [Finding(f"{module.path}:{number}", word) for word in _quaint(line)]
    everything = set(asked) == set(PACKAGES)
    for path in pages():
        if everything or str(path).startswith(asked):
            for number, line in enumerate((ROOT / path).read_text().splitlines(), 1):
                found += [Finding(f"{path}:{number}", word) for word in _quaint(line)]
    return found


def _quaint(line: str) -> list[str]:
    return list(QUAINT.findall(re.sub(r"`[^`]*`", "", line.lower())))


def main(arguments: list[str]) -> None:
    gc.disable()  # the trees stay to the end; collections would take half of the time
    packages = tuple(arguments) or PACKAGES
    repeated = repeated_names(packages)
    sections: dict[str, list[str]] = {
        "(a) public names of several modules (*: used in its own file only)": [
            f"{name}: "
            + ", ".join(path + "*" * (not is_used_elsewhere(path, name)) for path in found)
            for name, found in repeated.items()
        ],
        "(b) docstrings whose first line is not `Term: ...`": [
            str(finding) for finding in docstrings_without_a_term(packages)
        ],
        "(c) words that are not names": [
            str(finding) for finding in words_that_are_not_names(packages)
        ],
        "(d) import circles": [
            " <-> ".join(circle) for circle in import_circles(packages if arguments else None)
        ],
        "(e) dataclasses": [str(finding) for finding in dataclasses(packages)],
        "(f) quaint words": [str(finding) for finding in quaint_words(packages)],
    }
    for title, lines in sections.items():
        print(f"{title}: {len(lines)}")
        print("".join(f"    {line}\n" for line in lines), end="")


if __name__ == "__main__":
    main(sys.argv[1:])

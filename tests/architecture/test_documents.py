"""Documents: the files, make targets and functions that pages for developers name exist."""

import re
from collections.abc import Iterator

import pytest

from tests.architecture.names import exported, modules
from tests.architecture.tree import ROOT, tracked_files

DOCUMENTS = ["CONTRIBUTING.md", "README.md", "docs/ARCHITECTURE.md", "docs/names.md"]
ADRS = sorted(f"docs/adr/{path.name}" for path in (ROOT / "docs" / "adr").glob("*.md"))
CODE = re.compile(r"`([^`]+)`")
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
# A path of the repository: a folder, or a file with one of our endings. No pattern, no placeholder.
PATH = re.compile(r"\w[\w.-]*/[\w./-]*|[\w-]+\.(?:py|md|toml|lock)")
TARGET = re.compile(r"\bmake ([a-z][\w-]*)")
# Made by a run, or files of others.
NOT_OURS = {
    *("build/console/", "build/compiled/ABI", "rollcall/_compiled", "rollcall/_program"),
    *("rollcall.toml", "rollcall/protocol", "cli.py"),
}


def paths_of(page: str) -> Iterator[str]:
    text = (ROOT / page).read_text()
    for code in CODE.findall(text):
        yield from (word for word in code.split() if PATH.fullmatch(word))


def table_rows(page: str) -> Iterator[dict[str, str]]:
    """The rows of a page's tables, by the names of their columns."""
    columns: list[str] = []
    for line in (ROOT / page).read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line[:1] == "|" else []
        if not cells:
            columns = []
        elif not columns:
            columns = cells
        elif not set(line) <= set("|-: "):
            yield dict(zip(columns, cells, strict=False))


def is_there(path: str) -> bool:
    files = tracked_files()
    if path.endswith("/"):
        return any(f"/{path}" in f"/{file}" for file in files)
    if (ROOT / path).is_dir():
        return True
    tails = {"/".join(file.parts[start:]) for file in files for start in range(len(file.parts))}
    return path in tails


@pytest.mark.parametrize("page", [*DOCUMENTS, *ADRS])
def test_files_that_a_page_names_exist(page: str) -> None:
    named = set(paths_of(page)) - NOT_OURS
    assert {path for path in named if not is_there(path)} == set()


@pytest.mark.parametrize("page", [*DOCUMENTS, *ADRS])
def test_links_of_a_page_lead_to_files(page: str) -> None:
    folder = (ROOT / page).parent
    links = LINK.findall((ROOT / page).read_text())
    assert [link for link in links if not (folder / link).exists()] == []


@pytest.mark.parametrize("page", DOCUMENTS)
def test_make_targets_that_a_page_names_exist(page: str) -> None:
    targets = set(re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    text = (ROOT / page).read_text()
    spans = [*CODE.findall(text), *re.findall(r"^ {4}(.*)$", text, re.MULTILINE)]
    named = {target for code in spans for target in TARGET.findall(code)}
    assert named - targets == set()


@pytest.mark.parametrize("page", DOCUMENTS)
def test_names_in_a_table_are_defined_in_the_file_beside_them(page: str) -> None:
    """Tables with the columns `file` and `names`: each name is defined in a file of its row."""
    missing = [
        (files, name)
        for row in table_rows(page)
        if "file" in row and "names" in row
        for files in [CODE.findall(row["file"])]
        for text in ["\n".join((ROOT / file).read_text() for file in files)]
        for name in CODE.findall(row["names"])
        if not re.search(
            rf"\b(?:def|class) {(last := name.rpartition('.')[2])}\b|^\s*(?:self\.)?{last}\b.*[:=]",
            text,
            re.MULTILINE,
        )
    ]
    assert missing == []


@pytest.mark.parametrize("page", [*DOCUMENTS, *ADRS])
def test_methods_that_a_page_names_exist(page: str) -> None:
    """`Class.method`, of classes that are defined here; Kafka's are in camel case."""
    texts: dict[str, str] = {}
    for module in modules():
        if not module.path.startswith("protocol/messages/"):
            for name in exported(module):
                texts[name] = texts.get(name, "") + module.text
    named = re.findall(r"`([A-Z]\w+)\.([a-z_]+)\b", (ROOT / page).read_text())
    assert [
        f"{owner}.{name}"
        for owner, name in named
        if owner in texts and not re.search(rf"\b{name}\b", texts[owner])
    ] == []


def test_a_number_belongs_to_one_adr() -> None:
    numbers = [page.removeprefix("docs/adr/")[:4] for page in ADRS]
    assert [number for number in numbers if numbers.count(number) > 1] == []

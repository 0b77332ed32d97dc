"""Documentation site: it builds in strict mode, loads nothing from elsewhere, has no dead link."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from cli.commands import cli
from docs.site_hooks import on_page_markdown
from tests.architecture.tree import ROOT

LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
"""What a browser fetches by itself."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "-d", out],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return out


class Elements(HTMLParser):
    """Elements of a page: their names and attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))


@cache
def elements(page: Path) -> list[tuple[str, dict[str, str]]]:
    parser = Elements()
    parser.feed(page.read_text())
    return parser.found


@cache
def ids(page: Path) -> frozenset[str]:
    return frozenset(
        attributes[name]
        for _, attributes in elements(page)
        for name in ("id", "name")
        if name in attributes
    )


def pages(site: Path) -> list[Path]:
    return sorted(page for page in site.rglob("*.html") if page.name != "404.html")


def test_every_page_of_docs_is_on_the_site(site: Path) -> None:
    docs = ROOT / "docs"
    wanted = {path.relative_to(docs).with_suffix(".html") for path in docs.rglob("*.md")}
    assert wanted <= {page.relative_to(site) for page in pages(site)}


def test_nothing_is_loaded_from_another_host(site: Path) -> None:
    loaded = [
        (page.name, attributes[LOADED[tag]])
        for page in pages(site)
        for tag, attributes in elements(page)
        if tag in LOADED and LOADED[tag] in attributes
    ]
    styles = [
        (sheet.name, url)
        for sheet in site.rglob("*.css")
        for url in re.findall(r"(?:url\(|@import\s+)[\"']?([^\"')\s]+)", sheet.read_text())
    ]
    foreign = [(name, url) for name, url in (*loaded, *styles) if is_foreign(url)]
    assert len(loaded) > 100
    assert foreign == []


def is_foreign(url: str) -> bool:
    return url.startswith("//") or urlsplit(url).scheme in ("http", "https")


def test_links_lead_to_pages_and_places_that_exist(site: Path) -> None:
    assert [f"{page.name}: {link}" for page, link in broken(site)] == []


def broken(site: Path) -> Iterator[tuple[Path, str]]:
    for page in pages(site):
        for tag, attributes in elements(page):
            link = attributes.get("href", "") if tag == "a" else ""
            parts = urlsplit(link)
            if not link or parts.scheme or link.startswith("//"):
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            target = target / "index.html" if target.is_dir() else target
            is_there = target.is_file()
            if is_there and parts.fragment and target.suffix == ".html":
                is_there = unquote(parts.fragment) in ids(target)
            if not is_there and parts.fragment != "mkdocs_search_modal":
                yield page, link


def test_the_reference_pages_are_made_from_the_code(site: Path) -> None:
    commands = (site / "command-help.html").read_text()
    names = cli.list_commands(None)  # type: ignore[arg-type]  # it needs no context
    assert [name for name in names if f"rollcall {name}" not in commands] == []
    api = (site / "python-api.html").read_text()
    assert "Rollcall.fail_next" in api
    assert "await Rollcall.wait_async" in api


def test_links_follow_the_repository_and_dead_ones_are_left_to_be_refused() -> None:
    config = MkDocsConfig(config_file_path=str(ROOT / "mkdocs.yml"))
    config.load_dict({"site_name": "test", "docs_dir": str(ROOT / "docs")})
    config.validate()
    files = Files([in_site(name) for name in ("CHANGELOG.md", "lag.md", "adr/a.md")])

    def seen(place: str, link: str) -> str:
        page = Page(None, in_site(place), config)
        return on_page_markdown(f"[text]({link})", page, config, files)

    assert seen("adr/a.md", "../lag.md#top") == "[text](../lag.md#top)"
    assert seen("adr/a.md", "../../CHANGELOG.md") == "[text](../CHANGELOG.md)"
    assert seen("README.md", "docs/lag.md") == "[text](lag.md)"
    assert seen("README.md", "LICENSE") == "text"
    assert seen("README.md", "docs/gone.md") == "[text](docs/gone.md)"
    assert seen("README.md", "https://kafka.apache.org/") == "[text](https://kafka.apache.org/)"


def in_site(name: str) -> File:
    return File(name, str(ROOT / "docs"), "build/site", use_directory_urls=False)


def test_no_page_of_docs_is_replaced_by_a_made_one(site: Path) -> None:
    """Its headings are in the page: the last one, as the first could be the other's too."""
    for source in sorted((ROOT / "docs").glob("*.md")):
        last = re.findall(r"^#+ +(.+)$", source.read_text(), re.MULTILINE)[-1]
        words = re.findall(r"[a-zA-Z]{4,}", last)
        page = (site / source.with_suffix(".html").name).read_text()
        assert [word for word in words if word not in page] == [], source

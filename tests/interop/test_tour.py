"""README's tour: do its commands print what it shows?

The commands of the section "Five minutes" are run as they stand, in order, in a folder of their
own; what begins the daemon or a reader runs beside the others. Each line that the README shows must
be printed, in its order. Numbers, times and the random part of ids may differ; `…` stands for
anything. Only addresses are changed, so that the tour runs beside another daemon. The part about
Spark has tests of its own in tests/pipeline.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from typing import NamedTuple

import pytest

from tests.ports import held_ports

ROOT = Path(__file__).parents[2]
FIRST, LAST = "## Five minutes", "## Use it"
TIMEOUT_S = 120
COUNT = re.compile(r"\w+ has read \d+")
ASKS = re.compile(r"rollcall |curl ")
ON_SPARK = "rollcall pipeline"
BEGINS_A_PROCESS = re.compile(r"make serve|.*/read_\w+\.py")

NUMBER = r"-?\d+(?:[.,]\d+)*"
LASTED = rf"{NUMBER} (?:ms|s|min|h)(?: {NUMBER} (?:s|min))?"
MEASURE = rf"(?:{NUMBER}/s|{LASTED}|-|never)"  # in a table; unknown at first
UUID = r"-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
VARIES = re.compile(rf"-?[0-9a-f]*…|{UUID}|(?<=\s){MEASURE}(?=\s)|\s+|{NUMBER}")


class Step(NamedTuple):
    command: str
    shows: list[str]


def sections(text: str) -> list[list[Step]]:
    """The steps of each paragraph that begins in bold."""
    found: list[list[Step]] = []
    for line in text[text.index(FIRST) : text.index(LAST)].splitlines():
        if line.startswith("**"):
            found.append([])
        elif line.startswith("    $ "):
            found[-1].append(Step(line.removeprefix("    $ "), []))
        elif line.startswith("    ") and found and found[-1]:
            found[-1][-1].shows.append(line.strip())
    return [steps for steps in found if not any(ON_SPARK in step.command for step in steps)]


def pattern(shown: str) -> re.Pattern[str]:
    """What a shown line allows."""
    parts: list[str] = []
    end = 0
    for match in VARIES.finditer(shown):
        parts.append(re.escape(shown[end : match.start()]))
        word = match[0]
        if word.endswith("…"):
            parts.append(".*")
        elif word.isspace():
            parts.append(r"\s+")
        elif re.fullmatch(UUID, word):
            parts.append(UUID)
        else:
            parts.append(NUMBER if re.fullmatch(NUMBER, word) else MEASURE)
        end = match.end()
    return re.compile("".join(parts) + re.escape(shown[end:]))


def missing(shows: list[str], printed: str) -> list[str]:
    """The shown lines that were not printed, in their order."""
    lines = iter(printed.splitlines())
    wanted = [shown for shown in shows if shown]
    for number, shown in enumerate(wanted):
        allowed = pattern(shown)
        if not any(allowed.search(line) for line in lines):
            return wanted[number:]
    return []


class Tour:
    def __init__(self, folder: Path, ports: list[int]) -> None:
        self.folder = folder
        clients, admin = (f"127.0.0.1:{port}" for port in ports)
        self.addresses = {"127.0.0.1:9092": clients, "127.0.0.1:9180": admin}
        (folder / "examples").symlink_to(ROOT / "examples")
        (folder / "tour").symlink_to(Path(sys.executable).parents[1])
        self.environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "BOOTSTRAP": clients,
            "ROLLCALL_BOOTSTRAP": clients,
            "KAFKA_LISTENERS": f"PLAINTEXT://{clients}",
            "ROLLCALL_ADMIN_LISTENER": admin,
            # Both readers belong to the first generation, also where it takes long to start one.
            "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "10000",
            "ROLLCALL_LAG_INTERVAL_MS": "5000",  # verdicts come as often
        }
        self.processes: list[subprocess.Popen[bytes]] = []

    def run(self, steps: list[Step]) -> None:
        begun: list[tuple[Step, Path]] = []
        for step in steps:
            if BEGINS_A_PROCESS.match(step.command):
                begun.append((step, self.begin(step.command)))
                if step.command == "make serve":
                    self.until(partial(self.missing, *begun[-1]))
            elif ASKS.match(step.command):  # what it shows may take a moment to come about
                self.until(partial(self.asked, step))
            else:
                # The readers' counts are shown behind a command, too: those are to the record.
                counts = [line for line in step.shows if COUNT.fullmatch(line)]
                printed = self.output(step.command)
                assert missing([s for s in step.shows if s not in counts], printed) == [], printed
                self.until(partial(self.uncounted, counts))
        for started in begun:
            self.until(partial(self.missing, *started))

    def uncounted(self, counts: list[str]) -> list[str]:
        printed = [line for path in self.folder.glob("printed-*") for line in path.open()]
        return [count for count in counts if f"{count}\n" not in printed]

    def asked(self, step: Step) -> list[str]:
        printed = self.output(step.command)
        left = missing(step.shows, printed)
        return [*left, "", "printed was:", printed] if left else []

    def missing(self, step: Step, printed: Path) -> list[str]:
        return missing([self.here(line) for line in step.shows], printed.read_text())

    def here(self, text: str) -> str:
        for written, address in self.addresses.items():
            text = text.replace(written, address)
        return text.replace("make serve", "rollcall serve")

    def begin(self, command: str) -> Path:
        printed = self.folder / f"printed-{len(self.processes)}"
        with printed.open("wb") as out:
            self.processes.append(
                subprocess.Popen(
                    self.here(command).split(),
                    cwd=self.folder,
                    env=self.environment,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                )
            )
        return printed

    def output(self, command: str) -> str:
        printed = subprocess.run(
            ["sh", "-c", self.here(command)],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        ).stdout
        # A command that is printed names an address that is not the default.
        return printed.replace(f" --bootstrap {self.environment['ROLLCALL_BOOTSTRAP']}", "")

    def until(self, lacks: Callable[[], list[str]]) -> None:
        """Ask again until nothing is missing."""
        ends_at = monotonic() + TIMEOUT_S
        while left := lacks():
            assert monotonic() < ends_at, "the tour does not print: " + "\n".join(map(str, left))
            sleep(0.2)

    def end(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()


@pytest.fixture
def tour(tmp_path: Path) -> Iterator[Tour]:
    with held_ports(2) as ports:
        tour = Tour(tmp_path, ports)
        yield tour
        tour.end()


@pytest.mark.skipif(shutil.which("curl") is None, reason="the tour asks with curl")
@pytest.mark.timeout(600)
def test_the_tour_of_the_readme_prints_what_it_shows(tour: Tour) -> None:
    steps = sections((ROOT / "README.md").read_text())

    assert sum(len(step.shows) for section in steps for step in section) > 30
    for section in steps:
        tour.run(section)


def test_a_line_that_is_not_printed_is_missing() -> None:
    printed = "wrote 300 orders\nconfluent owns [2]\n"

    assert missing(["wrote 7 orders", "confluent owns [1]"], printed) == []
    assert missing(["confluent owns [2]", "wrote 300 orders"], printed) == ["wrote 300 orders"]
    assert missing(["aiokafka owns [2]"], printed) == ["aiokafka owns [2]"]

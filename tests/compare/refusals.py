"""Refusals: what `kafka.authorizer.logger` says of each request without any right.

    python -m tests.compare.refusals --driver path/to/kafka [--port 21800]

Records the lines of a real Kafka, each once and without the rule that refused it.
"""

import argparse
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tests.compare.granting import CLIENT, protect
from tests.compare.recordings import RECORDED_FROM
from tests.compare.scenarios import group_rights, topic_rights
from tests.compare.script import Scenario, Script, perform
from tests.compare.servers import kafka
from tests.compare.warm_up import until_serving
from tests.topics.handlers.authorization_cases import CASES

GOLDEN: Final = Path(__file__).parent / "golden" / "refusals.log"
PROFILE: Final = group_rights.PROFILE

_LINE: Final = re.compile(r"Principal = .* is Denied .* for request = \w+")
_OF_THE_CLIENT: Final = f"from host = {CLIENT} "


def _play(script: Script) -> None:
    protect(script)
    group_rights.prepare(script)
    subject = topic_rights.Subject(topic_rights.created(script))
    client = script.client("a", host=CLIENT)
    for case in CASES:
        if case.name != topic_rights.UNANSWERED:
            client.ask(case.build(subject), case.version)
    for of_groups in group_rights.all_cases():
        client.ask(of_groups.request, of_groups.version)


REFUSALS: Final = Scenario("refusals", "refusals", PROFILE, _play)


def refusals(lines: Iterable[str]) -> set[str]:
    """Those of the client, up to the request."""
    found = (_LINE.search(line) for line in lines)
    return {line[0] for line in found if line is not None and _OF_THE_CLIENT in line[0]}


def recorded() -> set[str]:
    return refusals(GOLDEN.read_text().splitlines())


def main() -> None:
    parser = argparse.ArgumentParser(description="Record Kafka's lines about refused requests.")
    parser.add_argument("--driver", required=True)
    parser.add_argument("--port", type=int, default=21800)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        with kafka(PROFILE, Path(folder), options.driver, options.port) as at:
            until_serving(at.port, transactions=True)
            perform(REFUSALS, at)
        lines = refusals((Path(folder) / "server.log").read_text().splitlines())
    GOLDEN.write_text(
        "\n".join([f"Recorded from {RECORDED_FROM}; not to be edited.", *sorted(lines)]) + "\n"
    )


if __name__ == "__main__":
    main()

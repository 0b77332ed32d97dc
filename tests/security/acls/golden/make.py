"""Golden decisions: records what Kafka 4.3.1's StandardAuthorizer answers in random worlds of ACLs.

    python -m tests.security.acls.golden.make LIBS

LIBS is the libs directory of a Kafka 4.3.1. Needs Java on the PATH; the tests do not: they make the
same worlds (`worlds.py`) and compare with `decisions.txt`. It has a line for each seed: what is
allowed (a bit of a hexadecimal number for each question) before and after entries were removed,
and the places of the entries that each filter finds.
"""

import json
import subprocess
import sys
from pathlib import Path

import msgspec

from tests.security.acls.worlds import acl_world

GOLDEN = Path(__file__).parent / "decisions.txt"
_DECISIONS = Path(__file__).parent / "Decisions.java"
_WORLDS = 120


def main(libs: Path) -> None:
    seeds = range(_WORLDS)
    worlds = [acl_world(seed) for seed in seeds]
    asked = "".join(
        json.dumps(
            {
                **world._asdict(),
                "acls": [msgspec.structs.astuple(acl) for acl in world.acls],
                "filters": [msgspec.structs.astuple(each) for each in world.filters],
            }
        )
        + "\n"
        for world in worlds
    )
    command = [
        "java",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
        "-cp",
        f"{libs}/*",
        str(_DECISIONS),
    ]
    done = subprocess.run(command, input=asked, stdout=subprocess.PIPE, text=True, check=True)
    lines = done.stdout.splitlines()
    GOLDEN.write_text(
        "".join(
            f"{seed} {written(json.loads(line))}\n" for seed, line in zip(seeds, lines, strict=True)
        )
    )


def written(answers: dict) -> str:
    bits = (f"{int(answers[when], 2):x}" for when in ("before", "after"))
    places = (",".join(map(str, sorted(found))) or "-" for found in answers["filtered"])
    return " ".join((*bits, *places))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Damage: any fault of a file of a data directory is served, refused with advice, or reported.

A sample drawn from a seed; DAMAGE=all takes every kind of file and damage (`make long-damage`),
DAMAGE_ONLY those files whose path has a match.
"""

import os
import random
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests.broker.damage import Damage, Files, damages, given_directory, judge

ALL = os.environ.get("DAMAGE") == "all"
SAMPLE = 14
SEED = os.environ.get("DAMAGE_SEED") or "1"


@pytest.mark.timeout(7_200 if ALL else 300)
async def test_no_damage_ends_in_a_traceback_a_dead_end_or_silence(tmp_path: Path) -> None:
    clean, killed, expected = await given_directory(tmp_path / "given")
    cases: list[tuple[str, Files, Damage]] = [
        (end, files, damage)
        for end, files in (("stopped", clean), ("killed", killed))
        for damage in damages(files)
    ]
    only = os.environ.get("DAMAGE_ONLY")
    cases = [case for case in cases if only is None or re.search(only, case[2].path)]
    chosen = cases if ALL else random.Random(SEED).sample(cases, SAMPLE)
    outcomes: Counter[str] = Counter()
    wrong: list[str] = []
    for number, (end, files, damage) in enumerate(chosen):
        folder = tmp_path / str(number)
        try:
            outcomes[await judge(folder, files, damage, expected)] += 1
        except Exception as fault:  # all of them are told together
            reason = str(fault).splitlines()[0] if str(fault) else ""
            wrong.append(f"{end}, {damage.path}, {damage.words}: {type(fault).__name__}: {reason}")
        shutil.rmtree(folder)
    print(f"{len(chosen)} of {len(cases)} cases: {dict(outcomes)}")
    assert wrong == [], "\n".join(["", *wrong])
    assert outcomes["served"] or only

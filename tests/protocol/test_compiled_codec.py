"""Compiled codec: reads and writes what the generated Python does, and has the same faults.

`make long-codec-fuzz` does the same with 10 million frames.
"""

import pytest

from protocol.codec import RequestDecoder, decode_request
from tests.build import IS_COMPILED
from tests.protocol.codec_fuzz import Fuzzer, compiled_apis

pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="of the compiled build")

FRAMES = 20_000


def test_hostile_frames_and_odd_answers_give_what_the_oracle_gives() -> None:
    fuzzer = Fuzzer(seed=20261128)

    fuzzer.run(FRAMES)

    # And the comparison is of two codecs: what is sound was not left to the oracle.
    assert fuzzer.in_c > 0.9 * fuzzer.read > 0.2 * FRAMES
    assert fuzzer.written_in_c > 0.5 * fuzzer.written > 0
    assert fuzzer.searched > 0.5 * fuzzer.written


def test_sound_requests_of_all_versions_are_read_in_c() -> None:
    fuzzer = Fuzzer(seed=1)

    for pair in fuzzer.pairs:
        for frame in pair.frames:
            assert pair.read(frame, 0, len(frame)) == pair.read_oracle(frame, 0, len(frame))

    assert fuzzer.handed_over == 0
    assert {int(api_key) for api_key in compiled_apis()} == {8, 9, 10, 11, 12, 13, 14, 28, 68}


def test_the_daemons_codec_is_the_compiled_one() -> None:
    frame = bytes.fromhex("000c0004000000070002633100026700000005046d2d310000")

    decode_request(frame, 0, len(frame))

    assert (
        type(RequestDecoder()._find_reader(frame, 0, len(frame)).__self__).__name__
        == "RequestReader"
    )

"""Compiled ownership: the reader in C finds what the one in Python finds, and leaves the same."""

import random

import pytest

from history import ownership
from history.ownership import owners_of_partitions
from protocol.compiled_codec import function_in_c
from protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    TopicPartitions,
    write_assignment,
)
from protocol.primitives import Malformed
from tests.build import IS_COMPILED

pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="of the compiled build")

TOPICS = ("orders", "o", "", "x" * 300, "grün", "\x7f", "a\0b")
EDGES = (0, 1, 9, 10, 0x7F, 0x80, 0xFF)


def assignment_of(dice: random.Random, topics: int, partitions: int) -> bytes:
    assigned = tuple(
        TopicPartitions(
            dice.choice(TOPICS),
            tuple(dice.choice((dice.randrange(50), -1, 2**31 - 1)) for _ in range(partitions)),
        )
        for _ in range(topics)
    )
    user_data = dice.choice((None, None, b"", b"data"))
    return write_assignment(ConsumerProtocolAssignment(assigned, user_data))


def damaged(dice: random.Random, assignment: bytes) -> bytes:
    """With some bytes changed, cut off or put in."""
    changed = bytearray(assignment)
    for _ in range(dice.randrange(3)):
        at = dice.randrange(len(changed) + 1)
        match dice.randrange(4):
            case 0:
                changed[at : at + 1] = bytes((dice.choice(EDGES),))
            case 1:
                del changed[at:]
            case 2:
                changed[at:at] = dice.randbytes(dice.randrange(5))
            case _:
                changed[at : at + 4] = dice.choice(
                    (b"\xff\xff\xff\xff", b"\0\0\0\0", b"\x7f\xff\xff\xff")
                )
    return bytes(changed)


def test_any_bytes() -> None:
    in_c = function_in_c("usual_partitions")
    assert in_c is not None
    dice = random.Random(20261128)
    usual = 0
    for _ in range(10_000):
        assignment = damaged(dice, assignment_of(dice, dice.randrange(4), dice.randrange(4)))
        expected = ownership._usual_partitions(assignment)
        assert in_c(assignment) == expected, assignment
        usual += expected is not None
    assert 2_000 < usual < 9_000


def outcome(assignments: dict[str, bytes], *, in_python: bool) -> object:
    owners_of = ownership._owners if in_python else owners_of_partitions
    try:
        return list(owners_of(assignments).items())
    except Malformed as fault:
        return repr(fault)


def test_owners_of_many() -> None:
    dice = random.Random(20261128)
    for _ in range(300):
        assignments = {
            f"member-{number}": dice.choice((b"", assignment_of(dice, 2, 3)))
            for number in range(dice.randrange(8))
        }
        if dice.random() < 0.3:
            assignments["odd"] = damaged(dice, assignment_of(dice, 2, 2))
        assert outcome(assignments, in_python=False) == outcome(assignments, in_python=True)


def test_what_is_no_dict_of_bytes_is_left() -> None:
    in_c = function_in_c("usual_owners")
    assert in_c is not None
    for odd in ((), None, [], {"a": None}, {"a": bytearray(b"\0\1")}, {"a": memoryview(b"\0\1")}):
        assert in_c(odd) is None
    assert in_c({}) == {}

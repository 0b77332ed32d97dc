"""Java's order of map entries: the compiled one is that of the sources."""

import random

import pytest

from seams.java_hash import hash_map_order, hash_map_order_in_python

CHARACTERS = "abcdefghij-0123456789" * 3 + "\0\x7f"
OTHERS = ("é", "漢", "\U0001f600", "\ud800")


def keys(dice: random.Random, count: int) -> list[str]:
    lengths = (0, 1, 3, 40, 300)
    return ["".join(dice.choices(CHARACTERS, k=dice.choice(lengths))) for _ in range(count)]


@pytest.mark.parametrize("count", [0, 1, 12, 13, 24, 25, 1_000])
def test_any_keys(count: int) -> None:
    dice = random.Random(count)
    for _ in range(20 if count < 100 else 2):
        ascii_keys = keys(dice, count)
        assert hash_map_order(ascii_keys) == hash_map_order_in_python(ascii_keys)
        others = [key + dice.choice(OTHERS) for key in ascii_keys[:3]]
        assert hash_map_order(ascii_keys + others) == hash_map_order_in_python(ascii_keys + others)

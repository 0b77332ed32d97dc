"""JSON answers: those that are encoded in a thread say the same, and hold up nobody."""

import json

import pytest

from console.answers import PIECE_ROWS, encoded_in_pieces
from tests.waits import shares_interpreter


@pytest.mark.parametrize("rows", [0, 1, PIECE_ROWS, PIECE_ROWS + 1, 3 * PIECE_ROWS])
def test_in_pieces_it_is_the_same_text(rows: int) -> None:
    content = {
        "größe": rows,
        "rows": [{"name": "ü", "numbers": [1, 2.5, None]} for _ in range(rows)],
        "numbers": list(range(rows)),
        "about": {"more": [True]},
        "nothing": None,
    }
    assert encoded_in_pieces(content) == json.dumps(content).encode()
    assert encoded_in_pieces({}) == b"{}"


def test_other_threads_run_while_a_large_answer_is_encoded() -> None:
    rows = [{"group": f"group {number}", "lag": number, "why": None} for number in range(100_000)]
    assert shares_interpreter(lambda: encoded_in_pieces({"groups": rows}))

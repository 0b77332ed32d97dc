"""JSON answers: one object, indented for people, with errors as text.

For the JSON APIs of the admin port. A large answer is encoded in a thread, off the event loop, and
in pieces: `json` keeps the interpreter for as long as a call takes.
"""

import asyncio
import json
from collections.abc import Mapping
from typing import Final

from aiohttp import web

LARGE: Final = 200
"""Rows; so many take about a millisecond to write."""

PIECE_ROWS: Final = 50
"""Rows that are encoded at once in the thread; some have long lists of their own."""


async def answer_json(content: Mapping[str, object], *, rows: int = 0) -> web.Response:
    if rows > LARGE:
        loop = asyncio.get_running_loop()
        body = await loop.run_in_executor(None, encoded_in_pieces, content)
    else:
        body = json.dumps(content, indent=1).encode()
    return web.Response(body=body + b"\n", content_type="application/json", charset="utf-8")


def encoded_in_pieces(content: Mapping[str, object]) -> bytes:
    """As `json.dumps` does."""
    fields = (f"{json.dumps(name)}: {_in_pieces(value)}" for name, value in content.items())
    return f"{{{', '.join(fields)}}}".encode()


def _in_pieces(value: object) -> str:
    if not isinstance(value, list):
        return json.dumps(value)
    starts = range(0, len(value), PIECE_ROWS)
    pieces = [json.dumps(value[at : at + PIECE_ROWS])[1:-1] for at in starts]
    return f"[{', '.join(pieces)}]"


def refusal(status: int, error: str) -> web.Response:
    """`error` is for people; programs look at the status."""
    body = json.dumps({"error": error}) + "\n"
    return web.Response(status=status, text=body, content_type="application/json")


def whole_number(request: web.Request, name: str, default: int, most: int) -> int:
    """A number of the query, held within 1 and `most`. Raises ValueError."""
    number = number_asked(request, name)
    if number is None:
        return default
    if number < 1:
        raise ValueError(f"{name} must be 1 or more")
    return min(number, most)


def number_asked(request: web.Request, name: str) -> int | None:
    """A whole number of the query, None without one. Raises ValueError with words for people."""
    text = request.query.get(name)
    try:
        return None if text is None else int(text)
    except ValueError:
        raise ValueError(f"{name} must be a whole number") from None

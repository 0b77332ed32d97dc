"""JSON answers: one object, indented for people, with errors as text.

For the JSON APIs of the admin port. A large answer is encoded in a thread, off the event loop.
"""

import asyncio
import json
from collections.abc import Mapping
from typing import Final

from aiohttp import web

LARGE: Final = 200
"""Rows; so many take about a millisecond to write."""


async def answer_json(content: Mapping[str, object], *, rows: int = 0) -> web.Response:
    if rows > LARGE:
        loop = asyncio.get_running_loop()
        body = await loop.run_in_executor(None, json.dumps, content)
    else:
        body = json.dumps(content, indent=1)
    return web.Response(text=body + "\n", content_type="application/json")


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

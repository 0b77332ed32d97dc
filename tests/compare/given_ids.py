"""Given ids: runs the daemon with the random ids that another broker chose, for a fuzz.

    python -m tests.compare.given_ids FILE serve ...

FILE holds a JSON object: `topics` and `members` are lists of UUIDs, which are used up before the
daemon makes ids of its own. Kafka's hash maps are ordered by such ids, and so are assignments. What
differs on purpose is done as by Kafka, as far as that is possible (on_purpose.py).
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from uuid import UUID, uuid4

from broker.loop import ids
from cli.main import main
from tests.compare.on_purpose import do_as_kafka
from topics import topic_ids

_ID_BYTES = 16


def give(path: Path, *, topics: list[str] | None = None, members: list[str] | None = None) -> None:
    """Name the next ids. What was left of earlier ones is dropped."""
    path.write_text(json.dumps({"topics": topics or [], "members": members or []}))


def _next_of(path: Path, kind: str) -> Callable[[], UUID]:
    def next_id() -> UUID:
        left = json.loads(path.read_text()) if path.exists() else {}
        if not left.get(kind):
            return uuid4()
        first, *rest = left[kind]
        path.write_text(json.dumps({**left, kind: rest}))
        return UUID(first)

    return next_id


def take_from(path: Path) -> None:
    """From here on this process makes the ids that are named there."""
    next_member = _next_of(path, "members")
    topic_ids.uuid4 = _next_of(path, "topics")  # type: ignore[attr-defined]
    ids.uuid4 = next_member  # type: ignore[attr-defined]
    ids.urandom = lambda size: (  # type: ignore[attr-defined]
        next_member().bytes if size == _ID_BYTES else os.urandom(size)
    )


def serve(path: Path) -> None:
    take_from(path)
    do_as_kafka()
    main()


if __name__ == "__main__":
    _, file, *sys.argv[1:] = sys.argv
    serve(Path(file))

"""External offsets: a member that keeps its offsets with its results, not with the coordinator.

One SQLite file for the whole group. What was read and how far that is goes in by one transaction,
so a member that dies loses both or neither; a message that is stored twice is an error at once.
"""

import sqlite3


class Store:
    def __init__(self, path: str) -> None:
        self._db = sqlite3.connect(path, timeout=60, check_same_thread=False)
        with self._db:
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS message"
                " (part INT, position INT, UNIQUE (part, position))"
            )
            self._db.execute("CREATE TABLE IF NOT EXISTS progress (part INT UNIQUE, position INT)")

    def positions(self, partitions: list[int]) -> dict[int, int]:
        """Where to begin, for each of them."""
        known = dict(self._db.execute("SELECT part, position FROM progress"))
        return {partition: known.get(partition, 0) for partition in partitions}

    def keep(self, read: dict[int, list[int]]) -> None:
        with self._db:
            for partition, offsets in read.items():
                self._db.executemany(
                    "INSERT INTO message VALUES (?, ?)", [(partition, o) for o in offsets]
                )
                self._db.execute(
                    "INSERT OR REPLACE INTO progress VALUES (?, ?)", (partition, offsets[-1] + 1)
                )

    def messages(self) -> list[tuple[int, int]]:
        return list(self._db.execute("SELECT part, position FROM message"))

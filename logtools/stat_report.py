"""Statistics report: log statistics as a table for people, and as JSON for programs."""

from collections.abc import Iterator, Sequence
from typing import Final

from logtools.kafka_json import Json
from logtools.layout import PartitionPlace
from logtools.stat import Counts, Freed, Share, Statistics
from seams.text import instant

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")
_TOPS: Final = {
    "groups": "group",
    "members": "member (of the group's newest generation)",
    "topics": "topic",
    "keys": "partition",
}
_COLUMNS: Final = (
    "log", "segments", "bytes", "batches", "records", "per batch", "live", "live bytes",
    "tombstones", "dirty", "frees now", "at most",
)  # fmt: skip


def statistics_table(statistics: Statistics) -> Iterator[str]:
    """Lines for a terminal."""
    rows = [_row(str(place), counts) for place, counts in statistics.partitions if counts.bytes]
    empty = len(statistics.partitions) - len(rows)
    rows.append(_row("total", statistics.total))
    yield from _aligned([_COLUMNS, *rows])
    if empty:
        yield f"({empty} more are empty)"
    yield ""
    yield from _facts(statistics.total)
    for kind, title in _TOPS.items():
        shares = statistics.tops.of(kind)
        if shares:
            yield ""
            yield from _aligned(
                [(title, "commits", "records", "bytes"), *(_share_row(share) for share in shares)]
            )


def _row(name: str, counts: Counts) -> tuple[str, ...]:
    return (
        name,
        str(counts.segments),
        size_text(counts.bytes),
        str(counts.batches),
        str(counts.records),
        f"{counts.records_per_batch:.1f}",
        str(counts.live_records),
        size_text(counts.live_bytes),
        str(counts.tombstones),
        "" if counts.dirty_ratio is None else f"{counts.dirty_ratio:.0%}",
        size_text(counts.frees_now.bytes),
        size_text(counts.frees_at_most.bytes),
    )


def _share_row(share: Share) -> tuple[str, ...]:
    return share.name, str(share.commits), str(share.records), size_text(share.bytes)


def _facts(total: Counts) -> Iterator[str]:
    types = ", ".join(f"{count} {name}" for name, count in total.by_type.most_common())
    if types:
        yield f"records by type  {types}"
    if total.oldest_ms is not None and total.newest_ms is not None:
        rate = total.commits_per_second
        per_second = "" if rate is None else f"; {rate:.3g} commits a second"
        yield f"from, to         {instant(total.oldest_ms)}, {instant(total.newest_ms)}{per_second}"
    if total.memberless_commits:
        yield f"not by members   {total.memberless_commits} of {total.commits} commits"
    now, most = total.frees_now, total.frees_at_most
    yield f"cleaning now     frees {size_text(now.bytes)} in {now.records} records"
    yield f"and at most      {size_text(most.bytes)} in {most.records} records"
    if total.damaged_bytes:
        yield f"damaged          {total.damaged_bytes} bytes; `rollcall log lint` says where"


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The first column to the left, numbers to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        yield "  ".join(cells).rstrip()


def size_text(count: int) -> str:
    """1536 -> 1.5 KiB."""
    amount = float(count)
    for unit in _UNITS:
        if abs(amount) < 1024 or unit == _UNITS[-1]:
            return f"{count} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    raise AssertionError("the last unit holds everything")


def as_json(statistics: Statistics) -> dict[str, Json]:
    return {
        "total": _counts(statistics.total),
        "partitions": [
            {**_place(place), **_counts(counts)} for place, counts in statistics.partitions
        ],
        "top": {
            kind: [
                {
                    "name": share.name,
                    "commits": share.commits,
                    "records": share.records,
                    "bytes": share.bytes,
                }
                for share in statistics.tops.of(kind)
            ]
            for kind in _TOPS
        },
    }


def _place(place: PartitionPlace) -> dict[str, Json]:
    return {"topic": place.topic, "partition": place.partition}


def _counts(counts: Counts) -> dict[str, Json]:
    return {
        "segments": counts.segments,
        "bytes": counts.bytes,
        "batches": counts.batches,
        "records": counts.records,
        "recordsPerBatch": round(counts.records_per_batch, 3),
        "liveRecords": counts.live_records,
        "liveBytes": counts.live_bytes,
        "tombstones": counts.tombstones,
        "commits": counts.commits,
        "commitsByNoMember": counts.memberless_commits,
        "commitsPerSecond": counts.commits_per_second,
        "damagedBytes": counts.damaged_bytes,
        "oldestTimestamp": counts.oldest_ms,
        "newestTimestamp": counts.newest_ms,
        "recordsByType": dict(counts.by_type),
        "dirtyRatio": counts.dirty_ratio,
        "cleaningFreesNow": _freed(counts.frees_now),
        "cleaningFreesAtMost": _freed(counts.frees_at_most),
    }


def _freed(freed: Freed) -> dict[str, Json]:
    return {"records": freed.records, "bytes": freed.bytes}

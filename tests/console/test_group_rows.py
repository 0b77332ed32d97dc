"""List of groups: search, filters, order and pages, on thousands of groups without a daemon."""

import pytest

from broker.observe.stats import LoopStalls
from console.group_rows import (
    ORDERS_MAX,
    SORTS,
    GroupPage,
    GroupQuery,
    GroupRow,
    GroupRows,
    find_page,
)
from console.slices import COMPARED_AT_ONCE, Slices, smallest_in_slices
from history.lag.model import LagStatus

STATUSES = (LagStatus.OK, LagStatus.WARN, LagStatus.ERR)


def row(number: int) -> GroupRow:
    is_known = number % 5 != 0
    return GroupRow(
        f"Team-{number % 7}.service-{number:05d}",
        "Stable" if number % 3 else "Empty",
        "consumer" if number % 11 == 0 else "classic",
        "consumer",
        number % 13,
        number,
        STATUSES[number % 3] if is_known else None,
        4,
        number * 7 % 1_000 if is_known else None,
        None,
        number / 10 if is_known else None,
        ("stuck_group",) if number % 100 == 0 else (),
    )


ROWS = [row(number) for number in range(3_000)]
ALL = GroupRows(ROWS, {}, {}, 0, 0.0, 0.0, {})


async def asked(query: GroupQuery) -> GroupPage:
    return await find_page(ALL, query, Slices(LoopStalls()))


async def every(query: GroupQuery) -> list[GroupRow]:
    """All pages, one after the other."""
    first = await asked(query)
    found = list(first.rows)
    for page in range(2, first.pages + 1):
        found += (await asked(query._replace(page=page))).rows
    assert len(found) == first.matched
    return found


async def test_pages_have_each_group_once() -> None:
    found = await every(GroupQuery(limit=999))
    assert sorted(found) == sorted(ROWS)


async def test_the_worst_status_comes_first_and_what_is_not_known_last() -> None:
    found = await every(GroupQuery(limit=1_000))
    assert found[0].status is LagStatus.ERR
    assert found[0].lag == max(each.lag or 0 for each in ROWS if each.status is LagStatus.ERR)
    unknown = sum(each.status is None for each in ROWS)
    assert unknown > 0
    assert all(each.status is None for each in found[-unknown:])
    assert all(each.status is not None for each in found[:-unknown])


@pytest.mark.parametrize("name", ["lag", "seconds", "members", "group", "generation"])
async def test_both_directions_keep_the_unknown_last(name: str) -> None:
    def value(each: GroupRow) -> object:
        field = {"seconds": "seconds_max", "group": "group_id"}.get(name, name)
        return getattr(each, field)

    for sort, is_reversed in ((name, False), (f"-{name}", True)):
        values = [value(each) for each in await every(GroupQuery(sort=sort, limit=1_000))]
        known = [each for each in values if each is not None]
        assert known == sorted(known, reverse=is_reversed)  # type: ignore[type-var]
        assert values[: len(known)] == known


async def test_search_and_filters() -> None:
    found = await every(GroupQuery(search="TEAM-3.serv", states=frozenset({"Empty"}), limit=500))
    assert found
    expected = [each for each in ROWS if "Team-3.serv" in each.group_id and each.state == "Empty"]
    assert sorted(found) == sorted(expected)
    troubled = await asked(GroupQuery(only_with_verdicts=True))
    assert troubled.matched == 30
    bad = await asked(GroupQuery(statuses=frozenset({"ERR"}), types=frozenset({"consumer"})))
    assert bad.matched == sum(
        each.status is LagStatus.ERR and each.group_type == "consumer" for each in ROWS
    )


async def test_a_page_after_the_last_is_the_last() -> None:
    page = await asked(GroupQuery(page=1_000_000, limit=800))
    assert (page.page, page.pages, len(page.rows)) == (4, 4, 600)
    empty = await asked(GroupQuery(search="nothing has this name", page=7))
    assert (empty.page, empty.pages, empty.matched, empty.rows) == (1, 1, 0, [])


async def test_orders_that_are_kept_are_bounded() -> None:
    rows = ALL._replace(ordered={})
    for sort in SORTS:
        for word in (sort, f"-{sort}"):
            await find_page(rows, GroupQuery(sort=word), Slices(LoopStalls()))
    assert len(rows.ordered) == ORDERS_MAX


@pytest.mark.parametrize("sort", ["nonsense", "lag,", "--lag", "lag," * 20 + "lag"])
async def test_an_unknown_order_is_refused(sort: str) -> None:
    with pytest.raises(ValueError, match="sort"):
        await asked(GroupQuery(sort=sort))


async def test_the_first_of_many_are_found_in_slices() -> None:
    numbers = [number * 7919 % 10_007 for number in range(3 * COMPARED_AT_ONCE + 1)]
    for limit in (1, 10, COMPARED_AT_ONCE + 1, len(numbers), 2 * len(numbers)):
        found = await smallest_in_slices(numbers, limit, lambda n: (n, "", 0), Slices(LoopStalls()))
        assert found == sorted(numbers)[:limit]
    assert await smallest_in_slices([], 5, lambda n: (n, "", 0), Slices(LoopStalls())) == []

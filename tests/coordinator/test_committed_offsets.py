"""Committed offsets: what the compiled build keeps in rows behaves as the dict of the sources."""

import copy
import pickle
import subprocess
import sys
from collections.abc import Mapping
from itertools import count
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.group import CommittedOffset
from coordinator.offsets.committed_offsets import CommittedOffsets, offsets_by_partition
from coordinator.offsets.plain_offsets import offsets_of_plain, plain_offsets
from protocol.compiled_codec import function_in_c
from protocol.names import TopicName
from storage.snapshot import pack
from tests.build import IS_COMPILED

compiled = pytest.mark.skipif(not IS_COMPILED, reason="of the compiled build")

INT32_MAX, INT64_MAX = (1 << 31) - 1, (1 << 63) - 1

partitions = st.one_of(
    st.integers(0, 12), st.integers(0, 60), st.sampled_from((-1, -1 << 31, 1 << 20, INT32_MAX))
)
commits = st.builds(
    CommittedOffset,
    st.sampled_from((-1, 0, 7, 1 << 40, INT64_MAX, -1 << 63)),
    st.sampled_from((-1, 0, 5, INT32_MAX, -1 << 31)),
    st.sampled_from(("", "", "note", "mö")),
    st.sampled_from((-1, 1_790_000_000_000, INT64_MAX)),
    st.sampled_from((-1, 1 << 41)),
    st.sampled_from((UUID(int=0), UUID(int=7))),
)
contents = st.dictionaries(partitions, commits)
steps = st.one_of(
    st.tuples(st.just("set"), partitions, commits),
    st.tuples(st.just("pop"), partitions),
    st.tuples(st.just("delete"), partitions),
    st.tuples(st.just("update"), contents),
    st.tuples(st.just("update from rows"), contents),
    st.tuples(st.just("update from pairs"), contents),
    st.tuples(st.just("clear")),
)


def step(table: CommittedOffsets, what: tuple[object, ...]) -> object:
    match what:
        case ("set", int(key), CommittedOffset() as commit):
            table[key] = commit
        case ("pop", int(key)):
            return table.pop(key, None)
        case ("delete", int(key)):
            try:
                del table[key]
            except KeyError as fault:
                return repr(fault)
        case ("update", dict(content)):
            table.update(content)
        case ("update from rows", dict(content)):
            table.update(offsets_by_partition(content))
        case ("update from pairs", dict(content)):
            table.update(content.items())
        case _:
            table.clear()
    return None


def assert_same(table: CommittedOffsets, model: dict[int, CommittedOffset]) -> None:
    assert len(table) == len(model)
    assert list(table) == list(model), "in the order in which they were added"
    assert list(table.items()) == list(model.items())
    assert list(table.values()) == list(model.values())
    assert list(table.keys()) == list(model.keys())
    assert table == model
    assert model == table
    assert repr(table) == repr(model)
    for key in (*model, 61, -7, 1 << 40):
        assert table.get(key) == model.get(key)
        assert (key in table) == (key in model)


@given(contents, st.lists(steps, max_size=30))
def test_any_steps(content: dict[int, CommittedOffset], what: list[tuple[object, ...]]) -> None:
    table, model = offsets_by_partition(content), dict(content)
    assert_same(table, model)
    for each in what:
        assert step(table, each) == step(model, each)
        assert_same(table, model)


@pytest.mark.parametrize("stride", [1, 7, -1, 389])
def test_many_partitions_come_and_go(stride: int) -> None:
    """In order, and in an order that needs an index."""
    model = {n * stride % 1009: CommittedOffset(n) for n in range(1009)}
    table = offsets_by_partition({})
    for key, commit in model.items():
        table[key] = commit
    assert_same(table, model)
    for key in list(model)[::3] + list(model)[1::3]:
        assert table.pop(key) == model.pop(key)
        assert key not in table
    assert_same(table, model)
    table.update(model)
    table[5], model[5] = CommittedOffset(1), CommittedOffset(1)
    assert_same(table, model)


def test_a_change_of_size_ends_an_iteration() -> None:
    table = offsets_by_partition({n: CommittedOffset(n) for n in range(3)})
    keys = iter(table)
    assert next(keys) == 0
    table[100] = CommittedOffset(1)
    with pytest.raises(RuntimeError, match="changed size"):
        next(keys)


def test_a_copy_has_its_own_commits() -> None:
    first = offsets_by_partition({3: CommittedOffset(7, metadata="mö" * 40)})
    others = [offsets_by_partition(first), copy.deepcopy(first), pickle.loads(pickle.dumps(first))]
    del first[3]
    assert others == [{3: CommittedOffset(7, metadata="mö" * 40)}] * 3
    assert not first


def test_an_answer_keeps_what_was_committed_when_it_was_decided() -> None:
    """Later commits, and deletions, change nothing in it: it may wait for the disk."""
    at_index_in_c = function_in_c("commits_at") if IS_COMPILED else None
    table = offsets_by_partition({n: CommittedOffset(n, 2, f"note {n}") for n in (3, 1, 40)})
    wanted = (40, 2, 3, 1, 1 << 40)
    found = [*map(table.get, wanted)] if at_index_in_c is None else at_index_in_c(table, wanted)

    table[40] = CommittedOffset(1)
    table.clear()

    assert list(found) == [
        CommittedOffset(40, 2, "note 40"),
        None,
        CommittedOffset(3, 2, "note 3"),
        CommittedOffset(1, 2, "note 1"),
        None,
    ]
    assert found[-1] is None
    assert found[-3] == found[2]
    with pytest.raises(IndexError):
        found[5]


@given(contents)
def test_a_snapshot_brings_them_back(content: dict[int, CommittedOffset]) -> None:
    if not content:
        return
    topic = TopicName("orders")
    plain = plain_offsets({topic: offsets_by_partition(content)})
    (found,) = offsets_of_plain(plain).values()
    assert type(found) is type(offsets_by_partition({}))
    assert_same(found, content)


@compiled
@pytest.mark.parametrize(
    ("key", "commit", "fault"),
    [
        (1 << 31, CommittedOffset(1), OverflowError),
        (0, CommittedOffset(1 << 63), OverflowError),
        (0, CommittedOffset(1, 1 << 31), OverflowError),
        (0, CommittedOffset(1, -1, "", 1 << 63), OverflowError),
        (0, None, TypeError),
        (0, 7, TypeError),
        (0, CommittedOffset(1, -1, None), TypeError),  # type: ignore[arg-type]
    ],
)
def test_what_fits_no_row_changes_nothing(
    key: int, commit: CommittedOffset, fault: type[Exception]
) -> None:
    table = offsets_by_partition({0: CommittedOffset(7)})
    for change in (lambda: table.update({key: commit}), lambda: table.update([(key, commit)])):
        with pytest.raises(fault):
            change()
    with pytest.raises(fault):
        table[key] = commit
    assert table == {0: CommittedOffset(7)}


@compiled
def test_texts_and_topic_ids_are_let_go() -> None:
    """As many references as commits: those of rows that were replaced, removed or copied too."""
    import sys

    metadata, topic_id = "kept " * 9, UUID(int=1 << 90)
    before = sys.getrefcount(metadata), sys.getrefcount(topic_id)
    commit_of = (CommittedOffset(n, 1, metadata, 5, -1, topic_id) for n in count())
    table = offsets_by_partition({n: next(commit_of) for n in range(40)})
    for n in range(20):
        table[n] = next(commit_of)
    for n in range(0, 40, 2):
        table.pop(n)
    copied: Mapping[int, CommittedOffset] | None = offsets_by_partition(table)
    found = function_in_c("commits_at")
    assert found is not None
    answer = found(table, (1, 2, 3))
    assert sys.getrefcount(metadata) == before[0] + 20 + 20 + 2
    assert len(answer) == 3
    del copied, answer
    table.clear()
    table[3] = CommittedOffset(1)
    assert (sys.getrefcount(metadata), sys.getrefcount(topic_id)) == before


def test_a_process_may_begin_with_the_offsets_of_a_snapshot() -> None:
    """Nothing has made or written one before the first is read."""
    columns = ("t", [0, 1], [7, 8], [5], ["note"], [1], [-1], [UUID(int=7).bytes])
    code = f"""if True:
        from rollcall.program import use_program_path
        use_program_path()
        from uuid import UUID
        from coordinator.offsets.plain_offsets import offsets_of_plain
        from protocol.compiled_codec import function_in_c
        in_c = function_in_c("plain_of_blob")
        (plain,) = [[{columns!r}]] if in_c is None else in_c({pack([[columns]])!r})
        print(offsets_of_plain(plain)["t"][1])
        """
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == repr(CommittedOffset(8, 5, "note", 1, -1, UUID(int=7)))

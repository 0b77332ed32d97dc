"""Blobs of a snapshot: what is read in C is what msgpack and `offsets_of_plain` make of them."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.group import CommittedOffset
from coordinator.offsets.committed_offsets import offsets_by_partition
from coordinator.offsets.plain_offsets import offsets_of_plain, plain_offsets
from protocol.compiled_codec import function_in_c
from protocol.names import TopicName
from storage.snapshot import pack, unpacked
from tests.build import IS_COMPILED

pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="of the compiled build")

WIDTHS = (7, 8, 15, 16, 31, 32, 63)
numbers = st.one_of(
    st.sampled_from([sign * (1 << width) - less for width in WIDTHS for sign in (1, -1)
                     for less in (0, 1) if -1 << 63 <= sign * (1 << width) - less < 1 << 63]),
    st.integers(-40, 300),
)  # fmt: skip
partitions = st.one_of(st.integers(0, 300), st.sampled_from((-1, 1 << 20, (1 << 31) - 1)))
texts = st.sampled_from(("", "note", "é" * 20, "x" * 300, "x" * 70_000))
fields = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, texts, texts.map(str.encode)),
    lambda inner: st.lists(inner, max_size=20),
    max_leaves=8,
)


@st.composite
def topics(draw: st.DrawFn) -> dict[int, CommittedOffset]:
    """Columns of one value, and of a value for each row."""
    found = draw(st.lists(partitions, min_size=1, max_size=70, unique=True))
    kept = [draw(st.booleans()) for _ in range(5)]
    first = CommittedOffset(
        7, draw(st.integers(-1, 9)), draw(texts), draw(numbers), draw(numbers), UUID(int=3)
    )
    return {
        partition: CommittedOffset(
            draw(numbers),
            first.leader_epoch if kept[0] else n,
            first.metadata if kept[1] else f"note {n}",
            first.committed_at_ms if kept[2] else n << 33,
            first.expire_at_ms if kept[3] else -n,
            first.topic_id if kept[4] else UUID(int=n),
        )
        for n, partition in enumerate(found)
    }


@st.composite
def blobs(draw: st.DrawFn) -> bytes:
    names = draw(st.lists(st.sampled_from(("orders", "clicks", "é")), max_size=2, unique=True))
    offsets = {TopicName(name): offsets_by_partition(draw(topics())) for name in names}
    return pack([*draw(st.lists(fields, max_size=12)), plain_offsets(offsets)])


def in_c(blob: bytes) -> list[object] | None:
    found = function_in_c("plain_of_blob")
    assert found is not None
    plain: list[object] | None = found(blob)
    return plain


def by_msgpack(blob: bytes) -> list[object]:
    *front, columns = unpacked(blob)  # type: ignore[misc]
    return [*front, offsets_of_plain(columns)]


@given(blobs())
def test_a_blob_says_what_msgpack_says(blob: bytes) -> None:
    found = in_c(blob)
    assert found is not None
    assert repr(found) == repr(by_msgpack(blob)), "down to the order, and to True in place of 1"
    assert all(
        type(commits) is type(offsets_by_partition({}))
        for commits in found[-1].values()  # type: ignore[attr-defined]
    )


@given(blobs(), st.data())
def test_damage_is_left_to_msgpack(blob: bytes, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(blob) - 1))
    cut = data.draw(st.booleans())
    damaged = blob[:at] if cut else blob[:at] + data.draw(st.binary(max_size=3)) + blob[at + 1 :]
    found = in_c(damaged)
    if found is not None:
        assert repr(found) == repr(by_msgpack(damaged))


@pytest.mark.parametrize(
    "columns",
    [
        ("t", [], [], [], [], [], [], []),
        ("t", [0, 1], [7], [5], [""], [1], [1], [bytes(16)]),
        ("t", [0, 1, 2], [7, 8, 9], [5, 6], [""], [1], [1], [bytes(16)]),
        ("t", [0], [1.5], [5], [""], [1], [1], [bytes(16)]),
        ("t", [0], [7], [5], [b""], [1], [1], [bytes(16)]),
        ("t", [0], [7], [5], [""], [1], [1], [bytes(15)]),
        ("t", [1 << 31], [7], [5], [""], [1], [1], [bytes(16)]),
        ("t", [0], [1 << 63], [5], [""], [1], [1], [bytes(16)]),
        (b"t", [0], [7], [5], [""], [1], [1], [bytes(16)]),
        ("t", [0], [7], [5], [""], [1], [1]),
    ],
)
def test_columns_that_do_not_fit_are_left_to_msgpack(columns: tuple[object, ...]) -> None:
    assert in_c(pack([1, [columns]])) is None


@pytest.mark.parametrize("plain", [None, [], {}, [1], [{}, []], [[], 1.5, []], ["t", 7]])
def test_what_is_no_group_is_left_to_msgpack(plain: object) -> None:
    assert in_c(pack(plain)) is None


def test_nothing_is_nested_without_end() -> None:
    assert in_c(b"\x92" + b"\x91" * 100_000 + b"\x90\x90") is None

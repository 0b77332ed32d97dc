"""Schema: what is a valid declaration, and what is refused."""

from typing import Annotated

import pytest
from msgspec import field

from protocol.schema import (
    INT32,
    NEVER,
    STRING,
    ArrayOf,
    Mark,
    Struct,
    StructOf,
    array,
    between,
    fields_of,
    nullable,
    since,
    tagged,
    until,
)


class Inner(Struct):
    number: Annotated[int, INT32] = 0


class Fine(Struct):
    first: Annotated[int, "a word of somebody else's", INT32] = 3
    second: Annotated[Inner, since(Inner, 2)] = field(default_factory=Inner)


def test_fields_stand_in_wire_order_with_mark_and_default() -> None:
    first, second = fields_of(Fine)

    assert (first.name, first.mark, first.default) == ("first", Mark(INT32), 3)
    assert (second.name, second.mark.wire, second.default) == ("second", StructOf(Inner), Inner())


def test_the_words_and_what_they_mean() -> None:
    assert since(STRING, 3) == Mark(STRING, first=3)
    assert since(STRING, 3, nullable=True) == Mark(STRING, first=3, nullable_since=3)
    assert since(STRING, 3, nullable=5, ignorable=True) == Mark(STRING, 3, NEVER, 5, ignorable=True)
    assert until(STRING, 3, nullable=2) == Mark(STRING, last=3, nullable_since=2)
    assert between(STRING, 1, 3) == Mark(STRING, 1, 3)
    assert nullable(STRING) == Mark(STRING, nullable_since=0)
    assert nullable(Inner, since=7) == Mark(StructOf(Inner), nullable_since=7)
    assert tagged(STRING, 4, since=2, nullable=True) == Mark(STRING, 2, NEVER, 2, tag=4)
    assert array(Inner) == ArrayOf(StructOf(Inner))


def test_versions_have_both_ends() -> None:
    mark = between(STRING, 1, 3, nullable=2)

    assert [mark.in_version(v) for v in range(5)] == [False, True, True, True, False]
    assert [mark.nullable_in(v) for v in (1, 2, 3)] == [False, True, True]


def test_a_field_needs_one_wire_type() -> None:
    class Bare(Struct):
        number: int = 0

    class Torn(Struct):
        number: Annotated[int, INT32, STRING] = 0

    with pytest.raises(TypeError, match=r"Bare\.number needs one wire type, has 0"):
        fields_of(Bare)
    with pytest.raises(TypeError, match=r"Torn\.number needs one wire type, has 2"):
        fields_of(Torn)


def test_a_field_needs_a_default() -> None:
    class Lacking(Struct):
        number: Annotated[int, INT32]

    with pytest.raises(TypeError, match=r"Lacking\.number has no default"):
        fields_of(Lacking)

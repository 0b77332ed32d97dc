"""Primitives: varints, lengths and odd strings, against values known from Java."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.primitives import (
    UTF8,
    Malformed,
    Unwritable,
    echoed,
    fits_string,
    read_uvarint,
    read_varint,
    skip_tags,
    string_length,
    uvarint,
    varint,
)


@pytest.mark.parametrize(
    ("value", "raw"),
    [
        (0, "00"),
        (1, "01"),
        (127, "7f"),
        (128, "8001"),
        (300, "ac02"),
        (16383, "ff7f"),
        (16384, "808001"),
        ((1 << 31) - 1, "ffffffff07"),
    ],
)
def test_unsigned_varints(value: int, raw: str) -> None:
    assert uvarint(value).hex() == raw
    assert read_uvarint(b"." + bytes.fromhex(raw), 1) == (value, 1 + len(raw) // 2)


@pytest.mark.parametrize(
    ("value", "raw"), [(0, "00"), (-1, "01"), (1, "02"), (63, "7e"), (-64, "7f"), (64, "8001")]
)
def test_zig_zag_varints(value: int, raw: str) -> None:
    assert varint(value).hex() == raw
    assert read_varint(bytes.fromhex(raw), 0) == (value, len(raw) // 2)


@settings(deadline=None)
@given(st.integers(0, (1 << 31) - 1))
def test_unsigned_varints_come_back(value: int) -> None:
    assert read_uvarint(uvarint(value), 0) == (value, len(uvarint(value)))


@pytest.mark.parametrize("raw", ["8080808008", "ffffffffff01", "ffffffff7f"])
def test_an_unsigned_varint_of_more_than_31_bits_is_malformed(raw: str) -> None:
    with pytest.raises(Malformed, match="more than 31 bits"):
        read_uvarint(bytes.fromhex(raw), 0)


def test_a_varint_without_end_is_malformed() -> None:
    with pytest.raises(Malformed, match="goes on after 5 bytes"):
        read_varint(b"\xff" * 20, 0)


def test_a_compact_string_is_no_longer_than_a_plain_one() -> None:
    assert string_length(0x7FFF + 1) == uvarint(0x8000)
    with pytest.raises(Unwritable, match="a string of 32768 bytes"):
        string_length(0x7FFF + 2)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("41c3a9e282acf09f8e89", "Aé€🎉"),
        ("ff41", "\ufffdA"),
        ("e28241", "\ufffdA"),
        ("c080", "\ufffd\ufffd"),
        ("eda08041", "\ufffdA"),  # An encoded surrogate: one mark in Java, three in Python.
        ("eda0", "\ufffd"),
        ("eda041", "\ufffdA"),
        ("edbfbfed", "\ufffd\ufffd"),
        ("f4edbf", "\ufffd\ufffd"),
    ],
)
def test_what_is_not_utf8_is_replaced_as_java_does(raw: str, text: str) -> None:
    assert bytes.fromhex(raw).decode(*UTF8) == text


def replaced_one_by_one(raw: bytes) -> str:
    """The same, in the slow way: Python names each fault, and one mark stands for it."""
    text, pos = "", 0
    while pos < len(raw):
        try:
            return text + raw[pos:].decode()
        except UnicodeDecodeError as error:
            text += raw[pos : pos + error.start].decode()
            pos, end = pos + error.start, pos + error.end
            if raw[pos] == 0xED and b"\xa0" <= raw[pos + 1 : pos + 2] < b"\xc0":
                end = pos + 2 + (b"\x80" <= raw[pos + 2 : pos + 3] < b"\xc0")
            text, pos = text + "\ufffd", end
    return text


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [b"a", b"\x80", b"\xbf", b"\xa0", b"\xc3", b"\xe2", b"\xed", b"\xf0", b"\xf4"]
        )
    ).map(b"".join)
)
def test_all_errors_of_a_string_are_replaced_at_once(raw: bytes) -> None:
    assert raw.decode(*UTF8) == replaced_one_by_one(raw)


def test_each_string_of_a_frame_is_replaced_to_its_end_and_no_further() -> None:
    assert b"\xff".decode(*UTF8) + b"b".decode(*UTF8) == "\ufffdb"
    assert (b"\xff" * 32_767).decode(*UTF8) == "\ufffd" * 32_767


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("", True),
        ("x" * 32_767, True),
        ("x" * 32_768, False),
        ("\ufffd" * 10_922, True),
        ("\ufffd" * 10_923, False),
        ("\U0001f993" * 8_191, True),
        ("\U0001f993" * 8_192, False),
    ],
)
def test_what_does_not_fit_into_a_string_is_echoed_as_far_as_it_does(text: str, fits: bool) -> None:
    assert fits_string(text) is fits
    assert (echoed(text) == text) is fits
    assert text.startswith(echoed(text))
    assert 32_767 - 4 < len(echoed(text).encode()) <= 32_767 or fits


def test_what_cannot_be_encoded_is_still_an_error() -> None:
    with pytest.raises(UnicodeEncodeError):
        "\ud800".encode(*UTF8)


def test_skipping_tags() -> None:
    tags = b"\x05\x02ab" + b"\xac\x02\x00"
    buf = b"\x02" + tags + b"next"

    assert skip_tags(buf, 1, 2, 7) == (1 + len(tags), 5)
    assert skip_tags(b"\x01\x05\x7fab", 1, 1)[0] > 5  # Beyond the end, which the reader will see.


def test_skipping_more_tags_than_one_byte_counts() -> None:
    buf = uvarint(200) + b"\x63\x01x" * 200

    assert skip_tags(buf, 1, buf[0], 200) == (len(buf), 0)
    with pytest.raises(Malformed, match="more tags"):
        skip_tags(buf, 1, buf[0], 199)

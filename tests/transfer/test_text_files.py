"""Text files: CSV as Kafka's tool has it, and JSON with every field of an offset."""

import errno
import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.names import GroupId
from tests.transfer.given import NOW_MS, TOPIC_ID, commit, shown
from transfer.contents import Contents
from transfer.errors import BadText
from transfer.sources import read_text_file
from transfer.text_files import from_csv, from_json, to_csv, to_json
from transfer.write_aside import write_aside


def one_group(name: str, **places: int) -> Contents:
    made = Contents()
    for place, offset in places.items():
        topic, _, partition = place.rpartition("_")
        made.group(GroupId(name)).offsets[topic, int(partition)] = (commit(offset), NOW_MS)
    return made


def test_four_columns_name_the_group() -> None:
    made = one_group("billing", orders_0=5, orders_1=7)
    assert to_csv(made, with_group=True) == "billing,orders,0,5\nbilling,orders,1,7\n"


def test_three_columns_are_about_one_group() -> None:
    made = one_group("billing", orders_0=5)
    assert to_csv(made, with_group=False) == "orders,0,5\n"
    back = from_csv("orders,0,5\n", "f.csv", "other", NOW_MS)
    assert shown(back) == {"other": {("orders", 0): 5}}
    assert back.groups[GroupId("other")].offsets["orders", 0][0].committed_at_ms == NOW_MS


def test_names_are_quoted_as_kafkas_tool_quotes_them() -> None:
    made = one_group('odd, "very"', orders_0=1)
    assert to_csv(made, with_group=True) == '"odd, ""very""",orders,0,1\n'
    long = "a-topic-with-a-rather-long-name-of-42-chars"
    assert to_csv(one_group("g", **{f"{long}_0": 1}), with_group=False) == f'"{long}",0,1\n'


def _encodes(text: str) -> bool:
    try:
        return bool(text.encode()) and "\x00" not in text
    except UnicodeEncodeError:
        return False


names = st.text(min_size=1, max_size=40).filter(_encodes)


@settings(max_examples=30)
@given(
    st.dictionaries(
        st.just("") | names,
        st.dictionaries(
            st.tuples(names, st.integers(0, 2**31 - 1)), st.integers(0, 2**63 - 1), min_size=1
        ),
    )
)
def test_what_is_written_is_read(groups: dict[str, dict[tuple[str, int], int]]) -> None:
    made = Contents()
    for name, places in groups.items():
        for place, offset in places.items():
            made.group(GroupId(name)).offsets[place] = (commit(offset), NOW_MS)
    assert shown(from_csv(to_csv(made, with_group=True), "f", None, NOW_MS)) == groups
    assert shown(from_json(to_json(made), "f", NOW_MS)) == groups


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("orders,0,5\n", "--for-group"),
        ("g,orders,0\ng,orders,0,5\n", "--for-group"),
        ("g,orders,0,5\norders,0,5\n", "line 2: 3 columns, 4 expected"),
        ("a,b\n", "line 1: 2 columns, 3 or 4 expected"),
        ("g,orders,x,5\n", "line 1: invalid partition: 'x'"),
        ("g,orders,0,-1\n", "invalid offset: '-1'"),
        ("g,orders,2147483648,1\n", "invalid partition"),
        ("g,orders,0,9223372036854775808\n", "invalid offset"),
        ("g,,0,1\n", "the topic name is empty"),
        ("g,orders,0,1\ng,orders,0,2\n", "orders-0 of g occurs twice"),
        ('g,"orders,0,1\n', "line"),
    ],
)
def test_csv_that_does_not_fit_is_refused_with_its_line(text: str, says: str) -> None:
    with pytest.raises(BadText, match=says):
        from_csv(text, "f.csv", None, NOW_MS)


def test_json_has_everything_that_an_offset_has() -> None:
    made = Contents()
    full = commit(5, NOW_MS - 9, leader_epoch=3, metadata="é", expire_at_ms=9, topic_id=TOPIC_ID)
    made.group(GroupId("g")).offsets["t", 0] = (full, NOW_MS)
    made.group(GroupId("g")).offsets["t", 1] = (commit(6, -1), NOW_MS)
    document = json.loads(to_json(made))
    assert document["groups"][0]["offsets"][0] == {
        "topic": "t",
        "partition": 0,
        "offset": 5,
        "leader_epoch": 3,
        "metadata": "é",
        "committed_at_ms": NOW_MS - 9,
        "expire_at_ms": 9,
        "topic_id": "ovKhwDH3TVqdGw9MOyoZCA",
    }
    assert document["groups"][0]["offsets"][1] == {"topic": "t", "partition": 1, "offset": 6}
    back = from_json(to_json(made), "f", NOW_MS).groups[GroupId("g")].offsets
    assert back["t", 0][0] == full
    assert back["t", 1][0].committed_at_ms == NOW_MS, "made now, as nobody says otherwise"


def document(**group: object) -> str:
    return json.dumps({"format": "rollcall-offsets", "version": 1, "groups": [group]})


GOOD = {"topic": "t", "partition": 0, "offset": 1}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "f.json"),
        ("[]", "expected an object"),
        ('{"format": "other"}', "rollcall-offsets"),
        ('{"format": "rollcall-offsets", "version": 2, "groups": []}', '"version": 1'),
        (document(group=1, offsets=[]), "expected text"),
        (document(group="g", offsets=[{**GOOD, "topic": ""}]), "the topic name is empty"),
        (document(group="g"), "expected a list"),
        (document(group="g", offsets=[GOOD, GOOD]), r"offsets\[1\]: t-0 occurs twice"),
        (document(group="g", offsets=[{**GOOD, "offset": True}]), "invalid offset: True"),
        (document(group="g", offsets=[{**GOOD, "offset": 1.5}]), "invalid offset: 1.5"),
        (document(group="g", offsets=[{**GOOD, "partition": -1}]), "invalid partition"),
        (document(group="g", offsets=[{**GOOD, "topic_id": "short"}]), "invalid topic id"),
        (document(group="g", offsets=[{"topic": "t", "partition": 0}]), "invalid offset: None"),
    ],
)
def test_json_that_does_not_fit_is_refused_with_its_place(text: str, says: str) -> None:
    with pytest.raises(BadText, match=says):
        from_json(text, "f.json", NOW_MS)


TOO_LONG = "\u20ac" * 10_923  # 32,769 bytes
LONGEST = "\u20ac" * 10_922 + "x"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (document(group="g", offsets=[{**GOOD, "metadata": TOO_LONG}]), "metadata has 32769 bytes"),
        (document(group="g", offsets=[{**GOOD, "topic": TOO_LONG}]), "topic has 32769|32769 bytes"),
        (document(group=TOO_LONG, offsets=[]), "32769 bytes"),
        (document(group="g", offsets=[{**GOOD, "metadata": "\ud800"}]), "half of a surrogate pair"),
        (document(group="\udfff", offsets=[]), "half of a surrogate pair"),
        (document(group="g", offsets=[{**GOOD, "topic": "\ud800"}]), "half of a surrogate pair"),
        ("[" * 100_000 + "]" * 100_000, "nested too deeply"),
        ('{"format":' + "[" * 990 + "]" * 990 + "}", "nested too deeply|not .format.: "),
        (f'{{"format": {"9" * 5_000}}}', "f.json"),
        (document(group="g", offsets=[{**GOOD, "offset": 10**4_000}]), "invalid offset: 1000"),
    ],
    ids=range(10),
)
def test_json_that_no_log_or_parser_can_hold_is_refused_in_one_line(text: str, says: str) -> None:
    with pytest.raises(BadText, match=says) as caught:
        from_json(text, "f.json", NOW_MS)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_the_longest_metadata_is_taken() -> None:
    assert len(LONGEST.encode()) == 32_767
    text = document(group="g", offsets=[{**GOOD, "metadata": LONGEST}])
    (commit_of,) = from_json(text, "f.json", NOW_MS).groups[GroupId("g")].offsets.values()
    assert commit_of[0].metadata == LONGEST


@pytest.mark.parametrize("number", ["9" * 4_301, "9" * 20, "\u0661", "1_0", "1\xa0"])
def test_csv_numbers_that_are_none(number: str) -> None:
    with pytest.raises(BadText, match="line 1: invalid offset"):
        from_csv(f"g,t,0,{number}\n", "f.csv", None, NOW_MS)


def test_a_carriage_return_in_a_name_survives(tmp_path: Path) -> None:
    made = one_group("one\rtwo", orders_0=5)
    path = tmp_path / "f.csv"
    write_aside(path, to_csv(made, with_group=True).encode())
    assert shown(read_text_file(path, None, NOW_MS).contents) == shown(made)
    path.write_bytes(b"g,t,0,1\r\ng,t,1,2\r\n")
    assert shown(read_text_file(path, None, NOW_MS).contents) == {"g": {("t", 0): 1, ("t", 1): 2}}


def test_a_file_is_replaced_as_a_whole_or_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out.json"
    write_aside(path, b"old")
    path.chmod(0o640)

    def full(_fd: int) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="no space"):
            write_aside(path, b"new")
    assert path.read_bytes() == b"old"
    (tmp_path / "link.json").symlink_to(path)
    write_aside(tmp_path / "link.json", b"new")
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o640
    assert {found.name for found in tmp_path.iterdir()} == {"out.json", "link.json"}

"""Lag text: `rollcall lag` for groups that have no offsets, or never committed."""

from cli.lag import _group_text, _groups_text


def row(group: str, **facts: object) -> dict[str, object]:
    nothing: dict[str, object] = dict.fromkeys(("lag", "lag_max", "seconds_max", "verdict"))
    entry = {"group": group, "state": "Stable", "members": 2, "partitions": 0, **nothing}
    return {**entry, "protocol_type": "consumer", **facts}


def test_a_group_of_another_type_has_no_offsets() -> None:
    lag = {"state": "Stable", "verdict": "OK", "partitions": [], "protocol_type": "connect"}
    assert _group_text("c", lag) == "Group c: Stable; a group of type connect has no offsets."
    lag["protocol_type"] = "consumer"
    assert "it has committed nothing and owns no partitions" in _group_text("c", lag)


def test_commits_on_partitions_that_do_not_exist_are_named() -> None:
    """A group that was imported before its topics."""
    unknown: dict[str, object] = dict.fromkeys(
        ("log_end_offset", "lag", "seconds", "verdict", "member", "catch_up_seconds")
    )
    rates = {"consumed_per_second": None, "produced_per_second": None}
    note = {"note": "no_partition", "note_words": "there is no such partition"}
    entry = {"topic": "orders", "committed_offset": 20, **note, **unknown, **rates}
    lag = {
        "state": "Empty",
        "verdict": "OK",
        "partitions": [{"partition": number, **entry} for number in range(2)],
        "protocol_type": "consumer",
        "lag": None,
    }
    said = _group_text("c", lag)
    assert said.startswith("Group c: Empty, status OK; 2 partitions with a commit do not exist")
    assert "orders-1: there is no such partition" in said


def test_all_groups_are_listed_also_those_that_never_committed() -> None:
    lines = _groups_text(
        {"at_ms": 1, "groups": [row("a", lag=3, verdict="OK"), row("b")]}
    ).splitlines()
    assert [line.split()[0] for line in lines] == ["GROUP", "a", "b"]
    assert lines[2].split() == ["b", "Stable", "2", "0", "-", "-", "-", "-"]


def test_types_have_a_column_if_there_are_others_than_consumers() -> None:
    lines = _groups_text({"at_ms": 1, "groups": [row("b", protocol_type="connect")]}).splitlines()
    assert lines[0].split()[:3] == ["GROUP", "TYPE", "STATE"]
    assert lines[1].split()[:3] == ["b", "connect", "Stable"]


def test_durations_are_written_as_everywhere() -> None:
    behind = [row("a", seconds_max=0), row("b", seconds_max=6.24), row("c", seconds_max=200)]
    lines = _groups_text({"at_ms": 1, "groups": behind}).splitlines()
    start = lines[0].index("BEHIND")
    shown = [line[start:].split("  ")[0] for line in lines[1:]]
    assert shown == ["0 ms", "6.2 s", "3 min 20 s"]

"""Event hub: what a stream is told, what it may miss, and what bounds it."""

from console.event_hub import CHANGED_MAX, KEPT_MAX, EventHub


def test_a_stream_hears_of_each_changed_group_once() -> None:
    hub = EventHub("b")
    stream, continues = hub.subscribe(None, "")
    assert not continues
    for group in ("a", "b", "a", "a"):
        hub.changed(group)
    assert stream.woken.is_set()
    assert stream.take() == (4, ("a", "b"), False)
    assert not stream.woken.is_set()
    assert stream.take() == (4, (), False)


def test_a_stream_of_one_group_hears_of_no_other() -> None:
    hub = EventHub("b")
    stream, _ = hub.subscribe("mine", "")
    hub.changed("other")
    assert not stream.woken.is_set()
    hub.changed("mine")
    assert stream.take() == (2, ("mine",), False)


def test_a_reader_that_takes_nothing_costs_a_bounded_memory() -> None:
    hub = EventHub("b")
    stream, _ = hub.subscribe(None, "")
    for number in range(10 * CHANGED_MAX):
        hub.changed(f"group-{number}")
    changes = stream.take()
    assert len(changes.groups) == CHANGED_MAX
    assert changes.is_more


def test_a_reconnect_continues_where_the_stream_ended() -> None:
    hub = EventHub("b")
    stream, _ = hub.subscribe(None, "")
    hub.changed("a")
    last = hub.event_id(stream.take().seq)
    hub.unsubscribe(stream)
    hub.changed("b")
    hub.changed("c")
    again, continues = hub.subscribe(None, last)
    assert continues
    assert again.take() == (3, ("b", "c"), False)
    _, continues = hub.subscribe(None, hub.event_id(3))
    assert continues


def test_a_reconnect_that_missed_something_starts_again() -> None:
    hub = EventHub("b")
    for unknown in (
        "",
        "b",
        "b-",
        "b-x",
        "b-7",
        "b--1",
        "another-0",
        "b-\u0663",
        f"b-{'0' * 5_000}",
    ):
        assert not hub.subscribe(None, unknown)[1], unknown
    for number in range(KEPT_MAX + 2):
        hub.changed(str(number))
    assert not hub.subscribe(None, "b-0")[1]
    assert not hub.subscribe(None, "b-1")[1]
    assert hub.subscribe(None, "b-2")[1]


def test_a_stop_wakes_every_stream() -> None:
    hub = EventHub("b")
    streams = [hub.subscribe(None, "")[0] for _ in range(3)]
    hub.close()
    assert all(stream.is_closed and stream.woken.is_set() for stream in streams)

"""Session timers: silence ends a membership, unless it is the broker who owes an answer."""

from tests.compare.client import LONG_MS, topics
from tests.compare.script import Script, pass_time, scenario


@scenario()
def a_silent_member_is_put_out_and_the_others_rejoin(script: Script) -> None:
    a, b = script.clients("a", "b")
    a.enter()
    a.sync({a: b"x"})
    b.join()
    b.join(session_ms=900, may_wait=True)
    a.join()
    b.sync(may_wait=True)
    a.sync({a: b"x", b: b"y"})
    script.until_state("PreparingRebalance")
    b.beat()
    a.beat()
    a.join()
    b.sync()
    b.join()


@scenario()
def a_silent_leader_is_replaced(script: Script) -> None:
    a, b = script.clients("a", "b")
    a.enter()
    a.sync({a: b"x"})
    b.join()
    b.join(may_wait=True)
    a.join(session_ms=900)
    b.sync(may_wait=True)
    a.sync({a: b"x", b: b"y"}, may_wait=True)
    script.until_state("PreparingRebalance")
    b.join()


@scenario()
def the_last_silent_member_leaves_an_empty_group(script: Script) -> None:
    a = script.client("a")
    a.enter(session_ms=700)
    a.sync({a: b"x"})
    script.until_state("Empty")
    a.describe()
    a.beat()
    a.enter(member_id="")


@scenario()
def a_silent_member_holds_a_rebalance_up_no_longer_than_its_session(script: Script) -> None:
    a, b = script.clients("a", "b")
    a.enter()
    a.sync({a: b"x"})
    b.join()
    b.join(session_ms=900, may_wait=True)
    a.join()
    b.sync(may_wait=True)
    a.sync({a: b"x", b: b"y"})
    a.join(may_wait=True)
    script.answers(a)


@scenario()
def a_member_whose_join_waits_is_not_put_out(script: Script) -> None:
    a, b = script.clients("a", "b")
    a.enter()
    a.sync({a: b"x"})
    b.join()
    b.join(may_wait=True)
    a.join(session_ms=300)
    a.sync({a: b"x", b: b"y"})
    a.join(session_ms=300, may_wait=True)
    pass_time(script, 700, "clock")
    b.join(session_ms=LONG_MS)


@scenario()
def a_member_whose_sync_waits_is_not_put_out(script: Script) -> None:
    a, b = script.clients("a", "b")
    a.enter()
    a.sync({a: b"x"})
    b.join()
    b.join(session_ms=500, may_wait=True)
    a.join()
    b.sync(may_wait=True)
    pass_time(script, 1_000, "clock")
    a.sync({a: b"x", b: b"y"})


@scenario()
def a_member_that_syncs_too_late_is_put_out_by_its_session(script: Script) -> None:
    a, b = script.clients("a", "b")
    a.enter()
    a.sync({a: b"x"})
    b.join()
    b.join(session_ms=500, may_wait=True)
    a.join()
    a.sync({a: b"x", b: b"y"})
    script.until_state("PreparingRebalance")
    b.sync()
    a.join()


@scenario()
def a_new_member_waits_longer_than_its_session(script: Script) -> None:
    a, b = script.clients("a", "b")
    a.enter()
    a.sync({a: b"x"})
    b.join(session_ms=300)
    b.join(session_ms=300, may_wait=True)
    pass_time(script, 700, "clock")
    a.join()


@scenario()
def a_silent_member_between_join_and_sync_takes_the_round_with_it(script: Script) -> None:
    a, b = script.clients("a", "b")
    a.enter()
    a.sync({a: b"x"})
    b.join()
    b.join(may_wait=True)
    a.join(session_ms=500)
    b.sync(may_wait=True)
    script.answers(b)
    b.join(protocols=(("range", topics("t")),))

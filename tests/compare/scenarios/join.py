"""JoinGroup: who is let in, who waits, and with whom a generation begins."""

from protocol.messages.join_group import JoinGroupRequest
from protocol.names import GroupId
from tests.compare.client import LONG_MS, RANGE, Client, topics
from tests.compare.script import Script, pass_time, scenario

BOTH = (("range", topics("r")), ("roundrobin", topics("rr")))


def stable_pair(script: Script, *, version: int = 9) -> tuple[Client, Client]:
    """A stable group of a (the leader) and b, with its assignments handed out."""
    a, b = script.client("a"), script.client("b")
    a.enter(version=version) if version >= 4 else a.join(version=version)
    a.sync({a: b"everything"})
    if version >= 4:
        b.join(version=version)
    b.join(may_wait=True, version=version)
    a.join(version=version)
    b.sync(may_wait=True)
    a.sync({a: b"half", b: b"other half"})
    return a, b


@scenario()
def a_join_without_a_group_id_is_invalid(script: Script) -> None:
    a = script.client("a")
    for version in range(10):
        a.join(group_id="", member_id="somebody", version=version)


@scenario()
def a_session_timeout_out_of_bounds_is_refused(script: Script) -> None:
    a = script.client("a")
    a.join(session_ms=0)
    a.join(session_ms=-1)
    a.join(session_ms=1_800_001)
    a.join(session_ms=1_800_001, member_id="somebody", instance_id="i", version=5)
    a.join(session_ms=1_800_000)
    a.join(session_ms=0, group_id="")


@scenario()
def a_group_that_nobody_knows_has_no_members(script: Script) -> None:
    a = script.client("a")
    for version in range(10):
        a.join(member_id="somebody", version=version)
    a.join(member_id="somebody", protocols=(), version=9)
    a.join(member_id="somebody", instance_id="i", version=9)
    a.describe()


@scenario()
def a_first_member_must_offer_a_protocol(script: Script) -> None:
    a = script.client("a")
    a.join(protocols=(), version=3)
    a.join(protocol_type="", version=3)
    a.join(protocol_type="", protocols=(), version=9)
    a.join(instance_id="i", protocols=())
    a.describe()
    a.list_groups()


@scenario()
def a_new_member_is_told_its_id_first(script: Script) -> None:
    a = script.client("a")
    for version in range(4, 10):
        group = f"{script.group}.{version}"
        a.join(group_id=group, member_id="", version=version)
        a.describe(group)
        a.join(group_id=group, version=version)


@scenario()
def an_old_client_joins_in_one_step(script: Script) -> None:
    a = script.client("a")
    for version in range(4):
        group = f"{script.group}.{version}"
        a.join(group_id=group, member_id="", version=version)
        a.describe(group)


@scenario()
def a_lone_member_lives_a_whole_life_in_every_version(script: Script) -> None:
    for version in range(10):
        a = script.client(f"a{version}")
        group = f"{script.group}.{version}"
        a.join(group_id=group, version=version, reason="because" if version >= 8 else None)
        if version >= 4:
            a.join(group_id=group, version=version)
        a.sync({a: b"mine"}, group_id=group, version=min(version, 5))
        a.beat(group_id=group, version=min(version, 4))
        a.leave(group_id=group, version=min(version, 5), reason="done" if version >= 5 else None)


@scenario()
def the_leader_alone_is_shown_the_members_in_every_version(script: Script) -> None:
    for version in range(10):
        a, b = script.clients(f"a{version}", f"b{version}")
        group = f"{script.group}.{version}"
        for client in (a, b) if version >= 4 else ():
            client.join(group_id=group, version=version)
        a.join(group_id=group, version=version)
        b.join(group_id=group, version=version, may_wait=True)
        a.join(group_id=group, version=version)


@scenario()
def a_client_without_a_name_gets_a_member_id_too(script: Script) -> None:
    script.client("a", client_id=None).join()
    script.client("b", client_id="").join()
    script.client("c", client_id="größer-☃").join(group_id=f"{script.group}.☃")


@scenario()
def a_static_member_is_named_after_its_instance(script: Script) -> None:
    a = script.client("a")
    a.join(instance_id="the-one", version=5)
    a.describe(version=4)


@scenario()
def a_second_member_starts_a_rebalance_and_waits(script: Script) -> None:
    a, b = script.clients("a", "b")
    a.enter()
    a.sync({a: b"everything"})
    b.join()
    script.client("c").describe()
    b.join(may_wait=True)
    script.client("d").describe()
    a.beat()
    a.join()
    script.client("e").describe()
    b.sync(may_wait=True)
    a.sync({a: b"half", b: b"other half"})
    script.client("f").describe()


@scenario()
def a_pending_member_holds_a_rebalance_up(script: Script) -> None:
    a, b = stable_pair(script)
    c = script.client("c")
    c.join()
    a.beat()
    b.join(protocols=(("range", topics("other topics")),), may_wait=True)
    a.join(may_wait=True)
    c.join(may_wait=True)


@scenario()
def a_pending_member_that_leaves_holds_nothing_up(script: Script) -> None:
    a, b = stable_pair(script)
    c = script.client("c")
    c.join()
    a.join(may_wait=True)
    b.join(may_wait=True)
    c.leave()


@scenario()
def a_pending_member_that_stays_away_is_forgotten(script: Script) -> None:
    a, b = stable_pair(script)
    c = script.client("c")
    c.join(session_ms=700)
    a.join(may_wait=True)
    b.join(may_wait=True)
    script.answers(a, b)
    c.join()


@scenario()
def a_pending_id_may_be_used_for_other_requests_in_vain(script: Script) -> None:
    a, c = script.clients("a", "c")
    a.enter()
    a.sync({a: b"x"})
    c.join()
    c.beat(generation_id=1)
    c.sync(generation_id=1)
    c.commit(script.topic(), {0: 1}, generation_id=1)
    c.join(instance_id="i")
    c.leave((c.member_id, "i"))
    c.join(may_wait=True)


@scenario()
def a_pending_member_of_an_empty_group_makes_no_generation(script: Script) -> None:
    a = script.client("a")
    a.join()
    a.describe()
    a.list_groups()
    a.leave()
    a.describe()
    a.join()


@scenario()
def a_member_must_speak_the_protocol_of_the_group(script: Script) -> None:
    a, b = script.clients("a", "b")
    a.enter(protocols=BOTH)
    for version in (3, 9):
        b.join(protocol_type="connect", version=version)
        b.join(protocols=(("sticky", topics()),), version=version)
        b.join(protocols=(), version=version)
        b.join(protocol_type="", version=version)
    b.join(instance_id="i", protocol_type="connect")
    a.join(protocol_type="connect")
    a.join(protocols=())
    a.describe()


@scenario()
def a_lone_member_cannot_change_to_a_foreign_protocol(script: Script) -> None:
    a = script.client("a")
    a.enter()
    a.sync({a: b"x"})
    a.join(protocols=(("sticky", topics("s")),))
    a.join(protocols=(("sticky", topics("s")), ("range", topics("r"))))


@scenario()
def an_unknown_member_is_refused_in_every_state(script: Script) -> None:
    a, b, x = script.clients("a", "b", "x")
    a.join(version=3)
    x.join(member_id="stranger")
    a.sync({a: b"x"})
    x.join(member_id="stranger")
    b.join(version=3, may_wait=True)
    x.join(member_id="stranger")
    a.leave()
    b.leave()
    x.join(member_id="stranger")
    x.join(member_id=a.member_id)


@scenario()
def the_leader_can_always_call_for_a_rebalance(script: Script) -> None:
    a, b = stable_pair(script)
    a.join(may_wait=True)
    b.beat()
    b.join()


@scenario()
def a_follower_that_joins_again_unchanged_is_told_its_generation(script: Script) -> None:
    a, b = stable_pair(script)
    for version in range(10):
        b.join(version=version)
    b.beat()
    a.beat()


@scenario()
def a_follower_with_other_topics_calls_for_a_rebalance(script: Script) -> None:
    a, b = stable_pair(script)
    b.join(protocols=(("range", topics("more topics")),), may_wait=True)
    a.beat()
    a.join()


@scenario()
def a_follower_with_one_more_protocol_calls_for_a_rebalance(script: Script) -> None:
    a, b = stable_pair(script)
    b.join(protocols=(*RANGE, ("roundrobin", topics("x"))), may_wait=True)
    a.join()


@scenario()
def a_lost_join_answer_is_sent_again(script: Script) -> None:
    a, b = script.clients("a", "b")
    a.enter()
    b.join()
    b.join(may_wait=True)
    a.join()
    for version in (2, 5, 9):
        a.join(version=version)
        b.join(version=version)
    b.sync(may_wait=True)
    a.sync({a: b"x", b: b"y"})


@scenario()
def a_changed_member_restarts_a_rebalance_that_was_complete(script: Script) -> None:
    a, b = script.clients("a", "b")
    a.enter()
    b.join()
    b.join(may_wait=True)
    a.join()
    b.sync(may_wait=True)
    a.join(protocols=(("range", topics("more topics")),), may_wait=True)
    b.join()


@scenario()
def a_new_member_interrupts_those_who_wait_for_the_assignment(script: Script) -> None:
    a, b, c = script.clients("a", "b", "c")
    a.enter()
    b.join()
    b.join(may_wait=True)
    a.join()
    b.sync(may_wait=True)
    c.join(version=3, may_wait=True)
    a.sync({a: b"too late"})
    a.beat()
    a.join(may_wait=True)
    b.join()


@scenario()
def a_second_join_takes_the_place_of_the_parked_one(script: Script) -> None:
    a, b = stable_pair(script)
    b_again = script.client("b-again")
    b.join(protocols=(("range", topics("1")),), may_wait=True)
    b_again.join(member_id=b.member_id, protocols=(("range", topics("2")),), may_wait=True)
    a.join()


@scenario()
def a_join_whose_connection_is_gone_still_counts(script: Script) -> None:
    a, b = stable_pair(script)
    b.join(protocols=(("range", topics("1")),), may_wait=True)
    member_id = b.member_id
    b.disconnect()
    a.join()
    back = script.client("b-back")
    back.join(member_id=member_id, protocols=(("range", topics("1")),))
    back.sync(may_wait=True)
    a.sync({a: b"x", back: b"y"})


@scenario()
def a_sync_whose_connection_is_gone_can_be_repeated(script: Script) -> None:
    a, b = script.clients("a", "b")
    a.enter()
    b.join()
    b.join(may_wait=True)
    a.join()
    b.sync(may_wait=True)
    member_id, generation_id = b.member_id, b.generation_id
    b.disconnect()
    a.sync({a: b"x", member_id: b"y"})
    back = script.client("b-back")
    back.sync(member_id=member_id, generation_id=generation_id)
    back.beat(member_id=member_id, generation_id=generation_id)


@scenario()
def the_protocol_with_most_votes_is_chosen(script: Script) -> None:
    a, b, c = script.clients("a", "b", "c")
    a.enter(protocols=BOTH)
    b.join(protocols=BOTH[::-1])
    c.join(protocols=BOTH[::-1])
    b.join(protocols=BOTH[::-1], may_wait=True)
    c.join(protocols=BOTH[::-1], may_wait=True)
    a.join(protocols=BOTH)
    script.client("d").describe()


@scenario()
def only_protocols_that_all_support_are_voted_on(script: Script) -> None:
    a, b, c = script.clients("a", "b", "c")
    a.enter(protocols=(("sticky", topics("s")), ("range", topics("r"))))
    b.join(protocols=(("sticky", topics("s")), ("range", topics("r"))))
    c.join(protocols=RANGE)
    b.join(protocols=(("sticky", topics("s")), ("range", topics("r"))), may_wait=True)
    c.join(protocols=RANGE, may_wait=True)
    a.join(protocols=(("sticky", topics("s")), ("range", topics("r"))))


@scenario()
def a_member_that_leaves_the_vote_changes_the_choice(script: Script) -> None:
    a, b = script.clients("a", "b")
    a.enter(protocols=BOTH)
    b.join(protocols=BOTH[1:])
    b.join(protocols=BOTH[1:], may_wait=True)
    a.join(protocols=BOTH)
    b.leave()
    a.join(protocols=BOTH)


@scenario()
def whoever_is_too_late_is_left_out_of_the_generation(script: Script) -> None:
    a, b = script.clients("a", "b")
    a.enter(rebalance_ms=900)
    b.join(rebalance_ms=900)
    b.join(rebalance_ms=900, may_wait=True)
    a.join(rebalance_ms=900)
    b.sync(may_wait=True)
    a.sync({a: b"x", b: b"y"})
    b.join(rebalance_ms=900, protocols=(("range", topics("more")),), may_wait=True)
    script.answers(b)
    a.beat()
    a.join(rebalance_ms=900)


@scenario()
def the_longest_rebalance_timeout_counts(script: Script) -> None:
    a, b = stable_pair(script)
    a.join(rebalance_ms=1, may_wait=True)
    b.join()
    b.sync(may_wait=True)
    a.sync({a: b"x", b: b"y"})
    b.join(protocols=(("range", topics("more")),), may_wait=True)
    pass_time(script, 600, "clock")
    a.join(rebalance_ms=1)


@scenario()
def an_old_client_waits_for_its_session_timeout(script: Script) -> None:
    a, b = script.clients("a", "b")
    a.join(version=0, session_ms=900)
    b.join(version=0, session_ms=900, may_wait=True)
    script.answers(b)
    a.beat()


@scenario()
def a_member_of_a_past_life_cannot_return_to_an_empty_group(script: Script) -> None:
    a, b = script.clients("a", "b")
    a.enter()
    a.leave()
    b.describe()
    a.join()
    b.join()
    b.join()
    b.describe()


@scenario()
def an_empty_group_may_change_its_protocol_type(script: Script) -> None:
    a, b = script.clients("a", "b")
    a.enter()
    a.leave()
    b.enter(protocol_type="connect", protocols=(("sessioned", b"url"),))
    b.describe()
    b.list_groups()


@scenario()
def a_group_of_commits_becomes_a_group_of_members(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    a.commit_simply(topic, {0: 7})
    a.describe()
    a.list_groups()
    a.join(member_id="somebody")
    a.enter()
    a.describe()
    a.fetch_offsets({topic: [0]})
    a.commit_simply(topic, {0: 8})


@scenario()
def a_member_that_never_syncs_is_put_out(script: Script) -> None:
    a = script.client("a")
    a.enter(rebalance_ms=700)
    script.until_state("Empty")
    a.beat()
    a.sync()
    a.describe()
    a.join()


@scenario()
def a_follower_that_never_syncs_is_put_out_of_a_stable_group(script: Script) -> None:
    a, b = script.clients("a", "b")
    a.enter(rebalance_ms=1_500)
    b.join(rebalance_ms=1_500)
    b.join(rebalance_ms=1_500, may_wait=True)
    a.join(rebalance_ms=1_500)
    a.sync({a: b"x", b: b"y"})
    a.describe()
    script.until_state("PreparingRebalance")
    a.beat()
    b.beat()
    a.join(rebalance_ms=1_500)


@scenario()
def a_request_without_two_steps_can_still_ask_for_everything(script: Script) -> None:
    """A raw request with the fields that the words of Client do not reach."""
    a = script.client("a")
    a.ask(JoinGroupRequest(GroupId(script.name), LONG_MS, LONG_MS, reason=""), 9)
    a.join(
        protocols=(("", topics()),), group_id=f"{script.group}.nameless", member_id="", version=3
    )

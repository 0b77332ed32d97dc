"""One connection: in which order requests are decided and answered, and what waits for what."""

import asyncio

import pytest

from coordinator.decision_failed import AnswerPending
from protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from protocol.names import ApiKey, GroupId
from tests.broker.shell import Shell, commit, heartbeat, join
from tests.broker.wire import Wire


async def test_a_commit_that_waits_for_the_disk_does_not_hold_up_the_next_decision() -> None:
    async with Shell() as shell:
        client = await shell.client()
        core = shell.core

        # When a heartbeat comes after two commits that are not stored yet.
        client.send(client.framed(commit()) + client.framed(commit()) + client.framed(heartbeat()))
        await core.until(lambda: len(core.asked) == 3)

        # Then all three were decided in order, and none is answered before the first is.
        first, second = core.tokens(OffsetCommitRequest)
        core.answer(second, OffsetCommitResponse())
        core.answer(first, OffsetCommitResponse())
        assert [(await client.answer())[0] for _ in range(3)] == [1, 2, 3]


async def test_what_follows_a_join_waits_until_the_join_is_answered() -> None:
    async with Shell() as shell:
        client = await shell.client()
        core = shell.core

        # When a client asks on, in one write and in further ones, while its join is parked.
        client.send(client.framed(join()) + client.framed(heartbeat("m-1")))
        await core.until(lambda: len(core.asked) == 1)
        client.send(client.framed(heartbeat("m-2")))
        other = await shell.client()
        await other.call(heartbeat("other"))  # bytes of a later connection were read meanwhile

        # Then nobody has looked at it.
        assert core.tokens(HeartbeatRequest) == [core.asked[1][1]]

        # And it is decided, in order, once the join is answered.
        core.answer(core.tokens(JoinGroupRequest)[0], JoinGroupResponse())
        assert [(await client.answer())[0] for _ in range(3)] == [1, 2, 3]
        members = [r.member_id for r, _ in core.asked if isinstance(r, HeartbeatRequest)]
        assert members == ["other", "m-1", "m-2"]


async def test_many_joins_in_one_write_are_taken_one_at_a_time() -> None:
    async with Shell() as shell:
        client = await shell.client()
        core = shell.core
        client.send(b"".join(client.framed(join()) for _ in range(50)))
        for done in range(50):
            await core.until(lambda done=done: len(core.asked) == done + 1)
            core.answer(core.asked[done][1], JoinGroupResponse())
            assert (await client.answer())[0] == done + 1


async def test_a_client_that_is_cut_off_while_it_waits_is_noticed() -> None:
    async with Shell() as shell:
        client = await shell.client()
        core = shell.core
        client.ask(join())
        await core.until(lambda: len(core.asked) == 1)

        client.reset()
        await core.until(lambda: len(core.gone) == 1)

        # The core may answer all the same, and may not be notified twice.
        assert core.gone == [core.asked[0][1]]
        core.answer(core.asked[0][1], JoinGroupResponse())
        assert core.gone == [core.asked[0][1]]


async def test_requests_in_pieces_and_in_heaps_are_the_same_requests() -> None:
    async with Shell() as shell:
        client = await shell.client()
        frames = b"".join(client.framed(heartbeat(f"m-{n}")) for n in range(200))
        for at in range(0, len(frames), 7):
            client.send(frames[at : at + 7])
            if at % 1_001 == 0:
                await client.writer.drain()
        assert [(await client.answer())[0] for _ in range(200)] == list(range(1, 201))


async def test_a_produce_that_wants_no_answer_gets_none() -> None:
    async with Shell() as shell:
        client = await shell.client()
        shell.core.on_request = lambda request, token: shell.server.reply(
            token, None if isinstance(request, OffsetCommitRequest) else JoinGroupResponse()
        )
        client.send(client.framed(commit()) + client.framed(join()))
        frame = await client.frame()
        assert int.from_bytes(frame[:4], "big") == 2


async def test_an_unexpected_exception_costs_its_connection_and_nothing_else() -> None:
    async with Shell() as shell:
        healthy, unlucky = await shell.client(), await shell.client()

        def fail(request: object, token: object) -> None:
            raise ZeroDivisionError("a mistake of ours")

        await healthy.call(heartbeat())
        shell.core.on_request = fail
        unlucky.ask(commit())
        assert await unlucky.closed() == b""
        shell.core.on_request = None

        await healthy.call(heartbeat())
        assert shell.dispatcher.routes[ApiKey.OFFSET_COMMIT].stats.failures == 1
        assert "ZeroDivisionError" in str(shell.events)


async def test_an_answer_that_cannot_be_written_costs_its_connection_and_nothing_else() -> None:
    async with Shell() as shell:
        healthy, unlucky = await shell.client(), await shell.client()
        unlucky.ask(join(), 5)
        await shell.core.until(lambda: len(shell.core.asked) == 1)
        too_long = JoinGroupResponse(leader="x" * 100_000)  # a length of int16 in this version
        shell.core.answer(shell.core.asked[0][1], too_long)
        assert await unlucky.closed() == b""
        await healthy.call(heartbeat())


async def test_an_answer_is_given_once() -> None:
    async with Shell() as shell:
        client = await shell.client()
        client.ask(commit())
        client.ask(commit())
        await shell.core.until(lambda: len(shell.core.asked) == 2)
        _, last = (token for _, token in shell.core.asked)
        shell.core.answer(last, OffsetCommitResponse())
        with pytest.raises(AssertionError, match="twice"):
            shell.core.answer(last, OffsetCommitResponse())


async def test_answers_of_many_turns_go_out_in_one_write_each() -> None:
    async with Shell() as shell:
        clients = [await shell.client() for _ in range(3)]
        for client in clients:
            client.ask(join())
        await shell.core.until(lambda: len(shell.core.asked) == 3)
        for _, token in shell.core.asked:
            shell.core.answer(token, JoinGroupResponse())
        answers = await asyncio.gather(*(client.answer() for client in clients))
        assert [correlation_id for correlation_id, _ in answers] == [1, 1, 1]


async def test_small_answers_behind_a_large_one_that_waited_go_out_too() -> None:
    async with Shell() as shell:
        client = await shell.client()
        core = shell.core
        large = FindCoordinatorResponse(error_message="x" * 20_000, host="h")
        core.on_request = lambda request, token: (
            None
            if isinstance(request, OffsetCommitRequest)
            else core.answer(
                token, HeartbeatResponse() if isinstance(request, HeartbeatRequest) else large
            )
        )

        # When all answers behind a commit are there before its own.
        client.send(
            client.framed(commit())
            + client.framed(FindCoordinatorRequest(key="g"), 2)
            + b"".join(client.framed(heartbeat()) for _ in range(100))
        )
        await core.until(lambda: len(core.asked) == 102)
        core.answer(core.tokens(OffsetCommitRequest)[0], OffsetCommitResponse())

        # Then all of them come.
        assert [(await client.answer())[0] for _ in range(102)] == list(range(1, 103))


def test_an_answer_that_comes_after_its_handler_failed_fails_no_other() -> None:
    """It stands behind another one: what is behind that one is not given up yet."""
    wire = Wire()
    pipe = wire.connect()

    def park_and_fail(request: object, _: object) -> None:
        if isinstance(request, LeaveGroupRequest):
            raise ZeroDivisionError("planted")

    wire.core.on_request = park_and_fail
    pipe.ask(commit(), LeaveGroupRequest(GroupId("g")), commit())
    wire.run_until_idle()
    first, last = wire.core.tokens(OffsetCommitRequest)
    (failed,) = wire.core.tokens(LeaveGroupRequest)
    wire.core.answer(failed, LeaveGroupResponse())
    wire.core.answer(last, OffsetCommitResponse())
    wire.core.answer(first, OffsetCommitResponse())
    wire.run_until_idle()
    assert pipe.answered == [1]
    assert pipe.is_lost


def test_a_failure_is_logged_while_the_answer_is_still_to_come() -> None:
    wire = Wire()
    pipe = wire.connect()

    def fail(_: object, __: object) -> None:
        raise AnswerPending(ZeroDivisionError("planted"))

    wire.core.on_request = fail
    pipe.ask(commit())
    wire.run_until_idle()
    assert wire.dispatcher.routes[ApiKey.OFFSET_COMMIT].stats.failures == 1
    (failure,) = wire.events
    assert "planted" in repr(failure)
    assert not pipe.is_lost
    wire.core.answer(wire.core.tokens(OffsetCommitRequest)[0], OffsetCommitResponse())
    wire.run_until_idle()
    assert pipe.answered == [1]

"""Fetch session against a model: at random, and compared with full requests.

The model of a session is an ordered list of partitions with the offset that was asked for last, and
the offsets of the last answer for each. An incremental request must read what a full request
without a session gets for the same partitions in the same order; the model removes what has not
changed. Topics are deleted and recreated, logs grow and lose their start, requests are refused.
"""

from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from protocol.messages.fetch import FetchPartition, FetchResponse, PartitionData
from protocol.names import ErrorCode, TopicId, TopicName
from tests.topics.plane import MEBIBYTE, Plane
from tests.topics.session_client import Key, ask, at, data_of

NAMES = ("a", "b", "c")
PARTITIONS = 2
UNKNOWN = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)

indexes = st.integers(0, PARTITIONS)  # the last one does not exist
offsets = st.integers(-1, 6)
names = st.sampled_from(NAMES)
limits = st.sampled_from([0, 1, 200, MEBIBYTE])


class Sent(NamedTuple):
    """The high watermark and log start that the last answer had."""

    high_watermark: int = -1
    log_start_offset: int = -1


class SessionOfAModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.plane = Plane()
        for name in NAMES[:2]:
            self.plane.given(name, PARTITIONS)
        self.names_of_ids: dict[TopicId, str] = {
            self.plane.topic_id(name): name for name in NAMES[:2]
        }
        self.session_id = 0
        self.epoch = 1
        self.version = 12
        self.asked: dict[Key, FetchPartition] = {}  # in the order in which they are read
        self.sent: dict[Key, Sent] = {}

    # The broker's side.

    @rule(name=names, index=st.integers(0, PARTITIONS - 1), count=st.integers(1, 3))
    def produce(self, name: str, index: int, count: int) -> None:
        if self.exists(name):
            self.plane.given_records(name, count, index)

    @rule(name=names, index=st.integers(0, PARTITIONS - 1), offset=st.integers(0, 6))
    def retention(self, name: str, index: int, offset: int) -> None:
        if self.exists(name):
            log = self.plane.log(name, index)
            log.delete_before(min(offset, log.high_watermark))

    @rule(name=names)
    def create_or_delete(self, name: str) -> None:
        if self.exists(name):
            request = DeleteTopicsRequest((DeleteTopicState(TopicName(name)),))
            self.plane.ask(request, 6, DeleteTopicsResponse)
        else:
            self.plane.given(name, PARTITIONS)
            self.names_of_ids[self.plane.topic_id(name)] = name

    # The client's side.

    @rule(
        data=st.data(),
        version=st.sampled_from([7, 12, 13, 18]),
        max_bytes=limits,
    )
    def begin(self, data: st.DataObject, version: int, max_bytes: int) -> None:
        self.version = version
        asked = self.drawn(data)
        expected = self.read(asked, max_bytes)
        answer = self.send(self.session_id, 0, asked, max_bytes=max_bytes)
        assert answer.error_code is ErrorCode.NONE
        assert answer.session_id > 0
        assert shown(answer) == expected
        self.session_id, self.epoch = answer.session_id, 1
        # The first answer has all partitions, those that are unknown last.
        self.asked = {key: asked[key] for key, _ in expected}
        self.sent = {
            key: Sent(data.high_watermark, data.log_start_offset) for key, data in data_of(answer)
        }

    @precondition(lambda self: self.session_id)
    @rule(data=st.data(), max_bytes=limits)
    def fetch_in_session(self, data: st.DataObject, max_bytes: int) -> None:
        changed = self.drawn(data)
        self.asked.update(changed)
        forgotten = self.drawn_forgotten(data)
        sessionless = self.read(changed, max_bytes)
        for key in forgotten:
            self.asked.pop(key, None)
            self.sent.pop(key, None)
        read = self.read(self.asked, max_bytes)
        answer = self.send(self.session_id, self.epoch, changed, forgotten, max_bytes)
        assert answer.error_code is ErrorCode.NONE
        if not self.asked:
            assert answer.session_id == 0
            assert shown(answer) == sessionless
            self.session_id = 0
            return
        assert answer.session_id == self.session_id
        self.epoch += 1
        assert shown(answer) == [(key, seen) for key, seen in read if self.is_changed(key, seen)]

    @precondition(lambda self: self.session_id)
    @rule(wrong=st.sampled_from([-3, 1, 2, 100]))
    def send_another_epoch(self, wrong: int) -> None:
        answer = self.send(self.session_id, self.epoch + wrong)
        if self.epoch + wrong > 0:
            assert answer.error_code is ErrorCode.INVALID_FETCH_SESSION_EPOCH
            assert answer.responses == ()
        elif self.epoch + wrong in (0, -1):
            self.session_id = answer.session_id  # it was a full request, of nothing
            self.epoch, self.asked, self.sent = 1, {}, {}

    @precondition(lambda self: self.session_id)
    @rule()
    def call_topics_by_the_other_name(self) -> None:
        version = 12 if self.version >= 13 else 13
        answer = ask(self.plane, self.session_id, self.epoch, version=version)
        assert answer.error_code is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR

    @precondition(lambda self: self.session_id)
    @rule()
    def end(self) -> None:
        assert self.send(self.session_id, -1).session_id == 0
        answer = self.send(self.session_id, self.epoch)
        assert answer.error_code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        self.session_id, self.asked, self.sent = 0, {}, {}

    @invariant()
    def the_cache_has_this_session_alone(self) -> None:
        cache = self.plane.data.fetch_sessions
        assert len(cache) == (self.session_id > 0)
        assert cache.partitions == len(self.asked)

    # The model.

    def is_changed(self, key: Key, seen: "Seen") -> bool:
        sent = self.sent.get(key, Sent())
        failed = seen.error_code is not ErrorCode.NONE
        self.sent[key] = Sent(-1 if failed else seen.high_watermark, seen.log_start_offset)
        if seen.records:
            self.asked[key] = self.asked.pop(key)
        return (
            failed or bool(seen.records) or sent != Sent(seen.high_watermark, seen.log_start_offset)
        )

    def read(self, asked: dict[Key, FetchPartition], max_bytes: int) -> list[tuple[Key, "Seen"]]:
        """What a full request gets; and the errors of topics that were replaced, in their order."""
        replaced = {key: self.error_of_a_replaced_topic(key) for key in asked}
        current = {key: asked[key] for key in asked if replaced[key] is None}
        found = dict(
            shown(ask(self.plane, 0, -1, current, version=self.version, max_bytes=max_bytes))
        )
        for key, error_code in replaced.items():
            if error_code is not None:
                found[key] = Seen(error_code)
        return sorted(
            ((key, found[key]) for key in asked), key=lambda pair: pair[1].error_code in UNKNOWN
        )

    def error_of_a_replaced_topic(self, key: Key) -> ErrorCode | None:
        """Of an id whose name the session knows, and that was deleted since."""
        topic = key[0]
        if isinstance(topic, str) or key not in self.asked:
            return None
        name = self.names_of_ids[topic]
        if not self.exists(name):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if self.plane.topic_id(name) == topic:
            return None
        # A partition that the new topic lacks is unknown; of the others the id is another one.
        if key[1] >= PARTITIONS:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.INCONSISTENT_TOPIC_ID

    def drawn(self, data: st.DataObject) -> dict[Key, FetchPartition]:
        """Partitions of topics that exist, or by name of any."""
        asked: dict[Key, FetchPartition] = {}
        for name, index, offset in data.draw(
            st.lists(st.tuples(names, indexes, offsets), min_size=1, max_size=5)
        ):
            if self.version < 13:
                asked[name, index] = at(index, offset)
            elif self.exists(name):
                asked[self.plane.topic_id(name), index] = at(index, offset)
        return asked

    def drawn_forgotten(self, data: st.DataObject) -> list[Key]:
        known = sorted(self.asked, key=str)
        return data.draw(st.lists(st.sampled_from(known), max_size=2)) if known else []

    def send(
        self,
        session_id: int,
        epoch: int,
        asked: dict[Key, FetchPartition] | None = None,
        forgotten: list[Key] | None = None,
        max_bytes: int = MEBIBYTE,
    ) -> FetchResponse:
        return ask(
            self.plane,
            session_id,
            epoch,
            asked,
            forgotten or (),
            version=self.version,
            max_bytes=max_bytes,
        )

    def exists(self, name: str) -> bool:
        return self.plane.data.registry.topic_id(TopicName(name)) is not None


class Seen(NamedTuple):
    """What an answer says of a partition."""

    error_code: ErrorCode
    high_watermark: int = -1
    log_start_offset: int = -1
    records: bytes = b""


def shown(answer: FetchResponse) -> list[tuple[Key, Seen]]:
    return [(key, _seen(data)) for key, data in data_of(answer)]


def _seen(data: PartitionData) -> Seen:
    return Seen(data.error_code, data.high_watermark, data.log_start_offset, data.records or b"")


TestSessionOfAModel = SessionOfAModel.TestCase
TestSessionOfAModel.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)

"""Records that a rebalance writes: the compiled writers write what the generated ones do."""

import random
import struct
from typing import Any, Final
from uuid import UUID

import pytest

from coordinator.classic.generation_messages import (
    BegunMember,
    GenerationBegunValue,
    OfferedProtocol,
)
from coordinator.record_schemas import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
    GroupKey,
    GroupMemberKey,
    GroupMetadataValue,
    MemberMetadata,
    TargetAssignmentMemberValue,
    TargetAssignmentMetadataValue,
    TopicPartitions,
    TopicPartitionsWithEpochs,
)
from protocol.compiled_codec import record_writer_in_c
from protocol.compiler import layout, writer
from protocol.primitives import Unwritable
from protocol.writer_source import compile_writer
from tests.build import IS_COMPILED

pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="of the compiled build")

TEXTS: Final = ("", "g", "größer", "\N{SNOWMAN}" * 40, "x" * 300, "y" * 40_000)
BYTES: Final = (b"", b"\0\1", b"z" * 1_000)
NUMBERS: Final = (0, 1, -1, 2**31 - 1, -(2**31))


class Values:
    """Random values, odd ones among them."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def text(self) -> str:
        return self._random.choice(TEXTS[:5] if self._random.random() < 0.98 else TEXTS)

    def maybe(self) -> str | None:
        return self._random.choice((None, self.text()))

    def data(self) -> bytes:
        return self._random.choice(BYTES)

    def number(self) -> int:
        return self._random.choice(NUMBERS if self._random.random() < 0.98 else (2**40,))

    def choice(self, *values: Any) -> Any:
        return self._random.choice(values)

    def several(self, make: Any) -> list[Any]:
        return [make() for _ in range(self._random.randrange(4))]

    def topic(self) -> TopicPartitions:
        return TopicPartitions(UUID(int=self._random.getrandbits(128)), self.several(self.number))

    def messages(self) -> list[tuple[Any, int]]:
        """One of each class, with its version."""
        return [
            (self._begun(), 0),
            *((self._metadata(), version) for version in GroupMetadataValue.VERSIONS),
            (TargetAssignmentMemberValue(self.several(self.topic)), 0),
            (ConsumerGroupMetadataValue(self.number(), self.choice(0, 1, -(2**63), 2**63)), 0),
            (self._member_metadata(), 0),
            (TargetAssignmentMetadataValue(self.number(), self.choice(0, 1_700_000_000_000)), 0),
            (self._current_assignment(), 0),
            (GroupKey(self.text()), 0),
            (GroupMemberKey(self.text(), self.text()), 0),
        ]

    def _begun(self) -> GenerationBegunValue:
        def member() -> BegunMember:
            return BegunMember(
                self.text(), self.maybe(), self.text(), self.text(), self.number(), self.number(),
                self.several(lambda: OfferedProtocol(self.text(), self.data())),
            )  # fmt: skip

        return GenerationBegunValue(
            self.number(), self.text(), self.text(), self.text(), 2**40, self.several(member)
        )

    def _member_metadata(self) -> ConsumerGroupMemberMetadataValue:
        classic = ClassicMemberMetadata(
            self.number(), self.several(lambda: ClassicProtocol(self.text(), self.data()))
        )
        return ConsumerGroupMemberMetadataValue(
            self.maybe(), self.maybe(), self.text(), self.text(), self.several(self.text),
            self.maybe(), self.number(), self.maybe(),
            self.choice(None, ClassicMemberMetadata(), classic),
        )  # fmt: skip

    def _current_assignment(self) -> ConsumerGroupCurrentMemberAssignmentValue:
        def topic() -> TopicPartitionsWithEpochs:
            topic_id = UUID(int=self._random.getrandbits(128))
            many = [7] * self.choice(0, 1, 30, 31, 32, 33, 5_000)  # around a size of one byte
            return TopicPartitionsWithEpochs(
                topic_id, self.several(self.number), self.choice(None, (), many)
            )

        return ConsumerGroupCurrentMemberAssignmentValue(
            self.number(), self.number(), self.choice(0, 1, 127, 128), self.several(topic),
            self.several(topic),
        )  # fmt: skip

    def _metadata(self) -> GroupMetadataValue:
        def member() -> MemberMetadata:
            return MemberMetadata(
                self.text(), self.maybe(), self.text(), self.text(), self.number(), self.number(),
                self.data(), self.data(),
            )  # fmt: skip

        return GroupMetadataValue(
            self.text(), self.number(), self.maybe(), self.maybe(), -1, self.several(member)
        )


def test_the_compiled_writers_write_what_the_generated_ones_do() -> None:
    values = Values(seed=20261128)
    written = refused = 0
    for _ in range(300):
        for message, version in values.messages():
            cls = type(message)
            write = writer(cls, version, prefix=b"\0\4")
            assert type(write.__self__).__name__ == "RecordWriter"  # type: ignore[attr-defined]
            oracle = compile_writer([layout(cls, version)], prefix=b"\0\4")
            try:
                expected = oracle(message)
            except (Unwritable, struct.error) as fault:
                refused += 1
                with pytest.raises(type(fault)):
                    write(message)
                continue
            written += 1
            assert write(message) == expected
    assert written > 1_000
    assert refused > 10


@pytest.mark.parametrize(
    "message",
    [
        ConsumerGroupMetadataValue(7, -5),
        ConsumerGroupMemberMetadataValue(
            None, None, "c", "/h", ["t"], None, 1, None, ClassicMemberMetadata(9)
        ),
        ConsumerGroupMemberMetadataValue("i", "r", "c", "/h", ["t"], "", 1, "uniform", None),
        TargetAssignmentMetadataValue(7, 1_700_000_000_000),
        ConsumerGroupCurrentMemberAssignmentValue(
            7, 6, 0, [TopicPartitionsWithEpochs(UUID(int=1), [0, 1], [7, 7])], []
        ),
        GroupKey("g"),
        GroupMemberKey("g", "m"),
    ],
    ids=lambda message: type(message).__name__,
)
def test_what_a_rebalance_writes_is_not_left_to_the_oracle(message: Any) -> None:
    def no_oracle() -> Any:
        raise AssertionError

    write = record_writer_in_c(type(message), 0, b"", no_oracle)
    assert write(message) == compile_writer([layout(type(message), 0)])(message)

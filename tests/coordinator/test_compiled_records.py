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
    GroupMetadataValue,
    MemberMetadata,
    TargetAssignmentMemberValue,
    TopicPartitions,
)
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

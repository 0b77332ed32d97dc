"""Generation numbers: which one follows, and which of two is the later?

A generation is an int32 on the wire and in the log. After the last number comes 1 again. Kafka
differs: its number wraps to the smallest int32, and a member of a negative generation is taken for
a client that is no member. Nobody counts that far; a log that was made elsewhere may.
"""

from typing import Final

from protocol.names import GenerationId
from protocol.schema import INT32_MAX

FIRST_GENERATION: Final = GenerationId(1)
LAST_GENERATION: Final = GenerationId(INT32_MAX)


def next_generation(newest: GenerationId) -> GenerationId:
    """The one after the newest that was ever used."""
    return FIRST_GENERATION if newest >= LAST_GENERATION else GenerationId(newest + 1)


def is_later(generation_id: GenerationId, than: GenerationId) -> bool:
    """Does it come after the other? Numbers far apart have wrapped around in between."""
    ahead = generation_id - than
    return ahead > 0 if abs(ahead) < LAST_GENERATION // 2 else ahead < 0

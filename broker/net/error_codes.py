"""Error codes of a response: all that are not NONE, found by a generated function per class.

The function is generated from the class's declaration on first use, as the codec is: each answer
passes here. Kafka counts every error of a response, those of its partitions and groups too;
so do we, without a table typed by hand. The compiled codec says of the usual answers whether there
is one at all. Kafka's counterpart: `AbstractResponse.errorCounts`.
"""

from collections.abc import Callable, Iterator
from typing import Final, cast

from protocol.compiled_codec import function_in_c
from protocol.messages import Response
from protocol.messages.offset_fetch import CommittedPartitions, OffsetFetchResponsePartitions
from protocol.schema import ERROR_CODE, ArrayOf, Struct, StructOf, fields_of

_ErrorCodes = Callable[[Response], list[int]]

_generated: dict[type[Struct], _ErrorCodes] = {}

_HAS_ERRORS_IN_C: Final = function_in_c("has_errors")


def errors_in(response: Response) -> list[int]:
    """Every code in the response that is not NONE, as often as it stands there."""
    if _HAS_ERRORS_IN_C is not None and _HAS_ERRORS_IN_C(response) is False:
        return []
    collect = _generated.get(type(response))
    if collect is None:
        collect = _generated[type(response)] = _compiled(type(response))
    return collect(response)


def _compiled(cls: type[Struct]) -> _ErrorCodes:
    lines = ["def collect(v0):", " found = []", *_lines(cls, 0), " return found"]
    namespace: dict[str, object] = {"CommittedPartitions": CommittedPartitions}
    exec("\n".join(lines), namespace)
    return cast("_ErrorCodes", namespace["collect"])


def _lines(cls: type[Struct], depth: int) -> Iterator[str]:
    """The statements that look into one value, `v<depth>`; none if no code is in it."""
    indent = " " * (depth + 1)
    for spec in fields_of(cls):
        wire, value = spec.mark.wire, f"v{depth}.{spec.name}"
        if wire is ERROR_CODE:
            yield f"{indent}if {value}: found.append({value})"
        elif isinstance(wire, ArrayOf) and isinstance(wire.element, StructOf):
            below = [*_lines(wire.element.cls, depth + 1)]
            if wire.element.cls is OffsetFetchResponsePartitions:
                value = f"type({value}) is not CommittedPartitions and {value}"
            if below:
                yield f"{indent}for v{depth + 1} in {value} or ():"
                yield from below

"""Which error codes does an answer carry? Found by a collector for each class of response.

A collector is made from the class's declaration when it is first needed. Kafka counts every error
of a response, those of its partitions and groups too; so do we, without a table typed by hand.
Kafka's counterpart: `AbstractResponse.errorCounts`.
"""

from collections.abc import Callable, Iterable
from operator import attrgetter

from protocol.messages import Response
from protocol.schema import ERROR_CODE, ArrayOf, Struct, StructOf, fields_of

Collector = Callable[[object, list[int]], None]

_collectors: dict[type[Struct], Collector | None] = {}


def errors_in(response: Response) -> list[int]:
    """Every code in the response that is not NONE, as often as it stands there."""
    cls = type(response)
    if cls not in _collectors:
        _collectors[cls] = _collector(cls)
    collect = _collectors[cls]
    found: list[int] = []
    if collect is not None:
        collect(response, found)
    return found


def _collector(cls: type[Struct]) -> Collector | None:
    """None for a class without error codes."""
    own: list[attrgetter[int]] = []
    below: list[tuple[attrgetter[Iterable[object] | None], Collector]] = []
    for spec in fields_of(cls):
        wire = spec.mark.wire
        if wire is ERROR_CODE:
            own.append(attrgetter(spec.name))
        elif isinstance(wire, ArrayOf) and isinstance(wire.element, StructOf):
            collect_one = _collector(wire.element.cls)
            if collect_one is not None:
                below.append((attrgetter(spec.name), collect_one))
    if not own and not below:
        return None

    def collect(value: object, found: list[int]) -> None:
        for get_code in own:
            code = get_code(value)
            if code:
                found.append(code)
        for get_elements, collect_one in below:
            for element in get_elements(value) or ():
                collect_one(element, found)

    return collect

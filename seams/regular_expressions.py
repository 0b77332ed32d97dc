"""Regular expressions of clients: whether one is valid, and which names it matches.

Members of consumer groups send them in ConsumerGroupHeartbeat, tools in ListTransactions. An
expression matches a name if it matches the whole of it; internal topics are not left out. The
engine is RE2, whose time is linear in the length of a name; `re2j_syntax.py` has the differences
from Kafka's RE2J. Kafka's counterparts: `Utils.throwIfRegularExpressionIsInvalid`,
`TopicRegexResolver`.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from seams.re2j_syntax import UNCLOSED, adapt, words_of

if TYPE_CHECKING:
    import re2

N = TypeVar("N", bound=str)

REGEX_MEMORY_MAX_BYTES: Final = 8 << 20
"""Of one compiled expression, or of all that are matched together, with the states that RE2 adds
while it matches. Kafka has no limit. A list of 1,000 names needs less than 1 MiB; with less than 8
MiB RE2 matches large expressions slowly. Its length is limited by the protocol: 32,767 bytes."""

TOGETHER_INSTRUCTIONS_MAX: Final = 500
"""Of an expression that is matched together with others, in RE2's program; a usual one has 20 to
200. A large one multiplies the states of all others: a match can take 1 ms instead of 4 us."""

TOGETHER_MAX: Final = 25
"""Expressions that are matched together, for the same reason: 100 together are twice as slow."""

UNICODE_CLASSES_MAX: Final = 100
"""In one expression, such as `\\pL`. RE2 needs up to 0.2 ms for each before it looks at the memory:
2 s for as many as a string holds, in which no client is served. Kafka has no limit."""

_TOO_MANY_CLASSES: Final = f"the expression has more than {UNICODE_CLASSES_MAX} Unicode classes"
_TOO_LARGE: Final = f"the expression needs more than {REGEX_MEMORY_MAX_BYTES} bytes of memory"


def check_regex(pattern: str) -> str | None:
    """The text of the error INVALID_REGULAR_EXPRESSION; None if it is a regular expression."""
    compiled = _compile(pattern)
    if not isinstance(compiled, str):
        return None
    return f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {compiled}."


def resolve(patterns: Iterable[str], names: Iterable[N]) -> dict[str, frozenset[N]]:
    """The names that each expression matches. One that is not valid matches none.

    10,000 names take 10 ms with one expression, 70 ms with 100. Large ones are matched one by one.
    """
    found: dict[str, set[N]] = {pattern: set() for pattern in patterns}
    all_names = tuple(names)
    small: list[_Expression[N]] = []
    for pattern, matched in found.items():
        compiled = _compile(pattern)
        if isinstance(compiled, str):
            continue
        expression = _Expression(compiled.pattern, matched)
        if compiled.programsize > TOGETHER_INSTRUCTIONS_MAX:
            _match_alone(expression, all_names)
        else:
            small.append(expression)
    for begin in range(0, len(small), TOGETHER_MAX):
        _match_together(small[begin : begin + TOGETHER_MAX], all_names)
    return {pattern: frozenset(matched) for pattern, matched in found.items()}


def _compile(pattern: str) -> "re2._Regexp | str":
    """The compiled expression, or why it is not valid, in RE2J's words."""
    if pattern.count("\\p") + pattern.count("\\P") > UNICODE_CLASSES_MAX:
        return _TOO_MANY_CLASSES
    adapted = adapt(pattern)
    compiled = _compile_re2(adapted.pattern)
    if adapted.refusal is None:
        return compiled
    # What stands before is refused first. That it ends in the middle is no error.
    is_first = isinstance(compiled, str) and compiled not in UNCLOSED
    return compiled if is_first else adapted.refusal


def _compile_re2(pattern: str) -> "re2._Regexp | str":
    import re2  # Loaded with the first expression: a start does not need it.

    try:
        return re2.compile(pattern, _options())
    except re2.error as error:
        text = error.args[0].decode()
        return _TOO_LARGE if text.startswith("pattern too large") else words_of(text)
    finally:
        re2.purge()  # its cache would keep 128 expressions for the life of the process


def _options() -> "re2.Options":
    import re2

    options = re2.Options()
    options.max_mem = REGEX_MEMORY_MAX_BYTES
    options.log_errors = False  # to stderr
    options.never_capture = True
    return options


class _Expression(NamedTuple, Generic[N]):
    pattern: str
    names: set[N]  # those that it matches are added


def _match_together(expressions: Sequence[_Expression[N]], names: Sequence[N]) -> None:
    """Match each name against all expressions at once; one by one where memory does not allow it.

    A set of RE2 does not tell lack of memory from no match. So it has one more expression, which
    matches everything: an answer without it is no answer.
    """
    import re2

    together = re2.Set.FullMatchSet(_options())
    for expression in expressions:
        together.Add(expression.pattern)
    everything = together.Add("(?s).*")
    unanswered: Sequence[N] = names
    with suppress(re2.error):  # it does not compile: too large
        together.Compile()
        unanswered = []
        for name in names:
            matched = together.Match(name.encode()) or ()
            if everything not in matched:
                unanswered.append(name)
                continue
            for index in matched:
                if index != everything:
                    expressions[index].names.add(name)
    if unanswered:
        for expression in expressions:
            _match_alone(expression, unanswered)


def _match_alone(expression: _Expression[N], names: Sequence[N]) -> None:
    """RE2 needs less memory for this: it can do without the states that it would keep."""
    compiled = _compile_re2(expression.pattern)
    if not isinstance(compiled, str):
        expression.names.update(n for n in names if compiled.fullmatch(n.encode()) is not None)

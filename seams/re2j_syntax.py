"""RE2J syntax: where Kafka's expressions differ from RE2's, and RE2J's words for errors.

Kafka compiles subscribed regular expressions with RE2J 1.8, a port of RE2. It accepts and refuses
nearly the same. `adapt` finds what RE2 accepts and RE2J refuses, and rewrites what only RE2J
accepts. It reads just enough of the syntax for that: RE2 checks the rest. Kafka's counterpart:
`com.google.re2j.Parser`.
"""

from typing import Final, NamedTuple

REPEAT_MAX: Final = 1_000
"""Of one counted repetition, in RE2 and RE2J. RE2 limits the product of nested ones as well."""

BAD_CLASS: Final = "invalid character class range"
BAD_ESCAPE: Final = "invalid escape sequence"
BAD_NAME: Final = "invalid named capture"
BAD_COUNT: Final = "invalid repeat count"
BAD_REPEAT: Final = "invalid nested repetition operator"
DUPLICATE_NAME: Final = "duplicate capture group name"
UNCLOSED: Final = frozenset(("missing closing )", "missing closing ]"))

_WORDS: Final = {
    "bad repetition operator": BAD_REPEAT,
    "invalid UTF-8": BAD_ESCAPE,  # RE2 reads beyond the end of `\\x{`
    "invalid named capture group": BAD_NAME,
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid repetition size": BAD_COUNT,
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "trailing \\": "trailing backslash at end of expression",
    "unexpected )": "regexp/syntax: internal error",
}
_NAME_STARTS: Final = ("(?P<", "(?<")


class Adapted(NamedTuple):
    """An expression for RE2. With `refusal`, `pattern` is only the part before what is refused."""

    pattern: str
    refusal: str | None = None


def words_of(error: str) -> str:
    """RE2J's words for an error of RE2, `<kind>: <part of the expression>`."""
    kind, _, part = error.partition(": ")
    if kind == "invalid perl operator" and part.startswith(_NAME_STARTS):
        return BAD_NAME
    return _WORDS.get(kind, kind)


def adapt(pattern: str) -> Adapted:
    return _Scan(pattern).run()


class _Scan:
    """One pass over an expression from left to right."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._last_name_end = pattern.rfind(":]")  # of a named class
        self._at = 0
        self._out: list[str] = []
        self._names: set[str] = set()
        self._refusal: str | None = None

    def run(self) -> Adapted:
        after_brace = False  # RE2J refuses a repetition after a { that is a literal
        while self._at < len(self._pattern) and self._refusal is None:
            char = self._pattern[self._at]
            repeat = self._repeat() if char in "*+?{" else ""
            if repeat and (after_brace or _has_bad_count(repeat)):
                self._refusal = BAD_COUNT if _has_bad_count(repeat) else BAD_REPEAT
                break
            after_brace = char == "{" and not repeat
            if repeat:
                self._take(len(repeat))
            elif char == "\\":
                self._escape()
            elif char == "[":
                self._class()
            elif char == "(":
                self._group()
            else:
                self._take(1)
        return Adapted("".join(self._out), self._refusal)

    def _take(self, length: int) -> None:
        self._out.append(self._pattern[self._at : self._at + length])
        self._at += length

    def _take_past(self, end: str, begin: int) -> None:
        """Take all up to and with `end`, or the rest."""
        found = self._pattern.find(end, begin)
        stop = len(self._pattern) if found < 0 else found + len(end)
        self._take(stop - self._at)

    def _repeat(self) -> str:
        """The repetition here; empty for a { that is a literal."""
        if self._pattern[self._at] != "{":
            return self._pattern[self._at]
        repeat = self._pattern[self._at : self._pattern.find("}", self._at) + 1]
        return repeat if _counts(repeat) else ""

    def _escape(self) -> None:
        escaped = self._pattern[self._at + 1 : self._at + 2]
        if escaped == "Q":
            self._take_past("\\E", self._at + 2)
        elif escaped == "C":
            self._refusal = BAD_ESCAPE  # one byte, in RE2
        elif escaped in {"x", "p", "P"} and self._pattern.startswith("{", self._at + 2):
            self._take_past("}", self._at + 3)  # not a repetition
        else:
            self._escaped_literal()

    def _escaped_literal(self) -> None:
        """RE2J lets any character outside ASCII be escaped, RE2 none."""
        if self._pattern[self._at + 1 : self._at + 2] > "\x7f":
            self._at += 1
            self._take(1)
        else:
            self._take(2)

    def _class(self) -> None:
        """A class in brackets: only escapes and named classes matter in it."""
        self._take(2 if self._pattern.startswith("^", self._at + 1) else 1)
        if self._pattern.startswith("]", self._at):
            self._take(1)
        while self._at < len(self._pattern) and self._refusal is None:
            if self._pattern.startswith("\\", self._at):
                self._escaped_literal()
            elif self._pattern.startswith("[:]", self._at):
                self._refusal = BAD_CLASS  # a named class without a name
            elif self._pattern.startswith("[:", self._at) and self._at + 2 <= self._last_name_end:
                self._take_past(":]", self._at + 2)
            elif self._pattern.startswith("]", self._at):
                self._take(1)
                return
            else:
                self._take(1)

    def _group(self) -> None:
        start = next((s for s in _NAME_STARTS if self._pattern.startswith(s, self._at)), None)
        end = self._pattern.find(">", self._at)
        if start is None:
            self._take(1)
            return
        name = self._pattern[self._at + len(start) : end]
        if end < 0 or not name.isascii():
            self._refusal = BAD_NAME
        elif name in self._names:
            self._refusal = DUPLICATE_NAME
        else:
            self._names.add(name)
            self._take(end + 1 - self._at)


def _counts(repeat: str) -> list[int]:
    """The bounds of `{n}`, `{n,}` and `{n,m}`; none if it is not such a repetition."""
    low, comma, high = repeat[1:-1].partition(",")
    bounds = [low, high] if comma and high else [low]
    if not all(map(_is_count, bounds)):
        return []
    # RE2 takes a longer number for a literal.
    return [REPEAT_MAX + 1 if len(bound) > len("1000") else int(bound) for bound in bounds]


def _is_count(bound: str) -> bool:
    return bound.isascii() and bound.isdecimal() and (bound == "0" or not bound.startswith("0"))


def _has_bad_count(repeat: str) -> bool:
    counts = _counts(repeat)
    return bool(counts) and (counts[0] > counts[-1] or max(counts) > REPEAT_MAX)

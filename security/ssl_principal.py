"""SSL principal: which user a certificate's distinguished name stands for.

`ssl.principal.mapping.rules` is a list of DEFAULT and RULE:pattern/replacement/[LU]; the first rule
whose pattern fits the whole name makes the user. A backslash before a slash or a comma makes it an
ordinary character of the rule. Patterns mean what they mean in Java; one that Python would read in
another way is refused, as it might give a client another's name.
Kafka's counterpart: `SslPrincipalMapper`.
"""

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

DEFAULT_RULES: Final = "DEFAULT"

_RULE: Final = re.compile(
    r"(?P<default>DEFAULT)"
    r"|RULE:(?P<pattern>(?:\\.|[^\\/])*)/(?P<replacement>(?:\\.|[^\\/])*)/(?P<case>[LU]?)"
)

_LINE_ENDS: Final = r"\n\r\x85\u2028\u2029"
_JAVA_ESCAPES: Final = {"\\z": r"\Z", "\\Z": rf"(?=(?:\r\n|[{_LINE_ENDS}])?\Z)"}
_PIECE: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?<(?![=!])|.", re.DOTALL)
_IN_CLASS: Final = re.compile(r"\[|&&")
_DOT_IS_ALL: Final = re.compile(r"\(\?[a-zA-Z]*s")


class BadRules(ValueError):
    """Rules that cannot be read."""


class NoMatchingRule(Exception):
    """The client has a certificate whose name no rule takes."""


_Part = str | int
"""Of a replacement: a text, or the number of a group."""


class _Rule(Struct, frozen=True):
    pattern: re.Pattern[str] | None  # None: DEFAULT
    replacement: tuple[_Part, ...] = ()
    case: str = ""

    def apply(self, name: str) -> str | None:
        if self.pattern is None:
            return name
        if self.pattern.fullmatch(name) is None:
            return None
        replaced = self.pattern.sub(self._replace, name)
        if self.case == "L":
            return replaced.lower()
        return replaced.upper() if self.case == "U" else replaced

    def _replace(self, match: re.Match[str]) -> str:
        return "".join(
            part if isinstance(part, str) else match[part] or "" for part in self.replacement
        )


class SslPrincipalMapper:
    """The rules of one listener. Without rules no certificate names a user."""

    def __init__(self, rules: str = DEFAULT_RULES) -> None:
        """Raises BadRules."""
        self._rules = _parse(rules.strip())

    def user(self, distinguished_name: str) -> str:
        """Of a name in the form of RFC 2253. Raises NoMatchingRule."""
        for rule in self._rules:
            user = rule.apply(distinguished_name)
            if user is not None:
                return user
        raise NoMatchingRule(f"No rules apply to {distinguished_name}: ssl.principal.mapping.rules")


def _parse(text: str) -> list[_Rule]:
    rules: list[_Rule] = []
    at = 0
    while at < len(text):
        at = _skip_spaces(text, at)
        if text.startswith(",", at):  # empty rules are ignored
            at += 1
            continue
        match = _RULE.match(text, at)
        if match is None:
            raise BadRules(f"Invalid rule: {text[at:]!r}: must be DEFAULT or RULE:a/b/[LU]")
        rules.append(_rule(match))
        at = _skip_spaces(text, match.end())
        if at < len(text):
            if text[at] != ",":
                raise BadRules(f"Invalid rule: a comma is missing before {text[at:]!r}")
            at = _skip_spaces(text, at + 1)
    return rules


def _skip_spaces(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _rule(match: re.Match[str]) -> _Rule:
    if match["default"]:
        return _Rule(None)
    written = match["pattern"]
    try:
        pattern = re.compile(_python_pattern(written), re.ASCII)
    except (re.error, OverflowError, RecursionError) as bad:
        raise BadRules(f"Invalid rule: {written!r} is no pattern: {bad}") from None
    return _Rule(pattern, tuple(_replacement(match["replacement"], pattern)), match["case"])


def _python_pattern(written: str) -> str:
    """Java's dot takes no end of a line, and names of groups have no P.

    Sets like [a-z&&[^b]] and [a[b]] would be other ones in Python. Raises BadRules.
    """
    is_dot_all = _DOT_IS_ALL.search(written) is not None

    def piece(found: re.Match[str]) -> str:
        match found[0]:
            case "." if not is_dot_all:
                return f"[^{_LINE_ENDS}]"
            case "(?<":
                return "(?P<"
            case str(text) if text[0] == "[" and _IN_CLASS.search(re.sub(r"\\.", "", text[1:])):
                raise BadRules(f"Invalid rule: {text!r}: no sets of characters in sets")
            case text:
                return _JAVA_ESCAPES.get(text, text)

    return _PIECE.sub(piece, written)


def _replacement(text: str, pattern: re.Pattern[str]) -> Iterator[_Part]:
    """As in `Matcher.replaceAll`; a group that there is not stays as written. Raises BadRules."""
    at = 0
    while at < len(text):
        char, at = text[at], at + 1
        if char == "\\":
            yield text[at]
            at += 1
        elif char != "$":
            yield char
        elif text.startswith("{", at):
            name, brace, _ = text[at + 1 :].partition("}")
            if not brace or name not in pattern.groupindex:
                raise BadRules(f"Invalid rule: {text!r} has a name of no group")
            yield pattern.groupindex[name]
            at += len(name) + 2
        else:
            number, at = _group_number(text, at, pattern.groups)
            yield "$" if number is None else number


def _group_number(text: str, at: int, groups: int) -> tuple[int | None, int]:
    """As many digits as make the number of a group; None for none that there is."""
    digit = text[at : at + 1]
    is_digit = digit.isascii() and digit.isdecimal()
    if not is_digit or (not groups and digit != "0"):
        raise BadRules(f"Invalid rule: {text!r} has a $ without a group")
    number = int(digit)
    if number > groups:
        return None, at
    at += 1
    while text[at : at + 1].isdecimal() and text[at].isascii():
        longer = number * 10 + int(text[at])
        if longer > groups:
            break
        number, at = longer, at + 1
    return number, at

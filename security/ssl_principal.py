"""SSL principal: which user a certificate's distinguished name stands for.

`ssl.principal.mapping.rules` is a list of DEFAULT and RULE:pattern/replacement/[LU]; the first rule
whose pattern fits the whole name makes the user. A backslash before a slash or a comma makes it an
ordinary character of the rule. Kafka's counterpart: `SslPrincipalMapper`.
"""

import re
from typing import Final

from msgspec import Struct

DEFAULT_RULES: Final = "DEFAULT"

_RULE: Final = re.compile(
    r"(?P<default>DEFAULT)"
    r"|RULE:(?P<pattern>(?:\\.|[^\\/])*)/(?P<replacement>(?:\\.|[^\\/])*)/(?P<case>[LU]?)"
)
_GROUP: Final = re.compile(r"\$(\d+)")


class BadRules(ValueError):
    """Rules that cannot be read."""


class NoMatchingRule(Exception):
    """The client has a certificate whose name no rule takes."""


class _Rule(Struct, frozen=True):
    pattern: re.Pattern[str] | None  # None: DEFAULT
    replacement: str = ""
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
        """Java's `$1`; a group that there is not stays as it is written."""
        groups = match.re.groups

        def group(found: re.Match[str]) -> str:
            number = int(found[1])
            return (match[number] or "") if number <= groups else found[0]

        return _GROUP.sub(group, self.replacement)


class SslPrincipalMapper:
    """The rules of one listener."""

    def __init__(self, rules: str = DEFAULT_RULES) -> None:
        """Raises BadRules."""
        self._rules = _parse(rules.strip() or DEFAULT_RULES)

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
    try:
        pattern = re.compile(match["pattern"])
    except re.error as bad:
        raise BadRules(f"Invalid rule: {match['pattern']!r} is no pattern: {bad}") from None
    return _Rule(pattern, match["replacement"], match["case"])

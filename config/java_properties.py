"""Java properties: reads a server.properties file by the rules of java.util.Properties.

Exactly Java's rules, because operators bring files that Java has read for years: three
separators, comments only at a line's start, continuation lines, escapes, Latin-1 with \\uXXXX.
Where a name occurs twice the later one counts. Kafka's counterpart: Utils.loadProps.
"""

import re

_BLANKS = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_UNICODE = re.compile(r"[0-9A-Fa-f]{4}")


class BadProperties(ValueError):
    """A line that Java refuses too; the only such mistake is a malformed \\uXXXX."""

    def __init__(self, line_number: int) -> None:
        super().__init__(f"line {line_number}: \\u must be followed by four hexadecimal digits")


def parse_properties(content: bytes) -> dict[str, str]:
    """Names and values, in the order of the file."""
    return properties_of(content.decode("latin-1"))


def properties_of(text: str) -> dict[str, str]:
    """The same of text: Kafka's config providers read UTF-8."""
    found: dict[str, str] = {}
    for line_number, line in _logical_lines(text):
        name, value = _split(line)
        try:
            found[_unescape(name)] = _unescape(value)
        except ValueError:
            raise BadProperties(line_number) from None
    return found


def _logical_lines(content: str) -> list[tuple[int, str]]:
    """Lines with their continuations joined, without comments and blank lines; numbers from 1."""
    lines: list[tuple[int, str]] = []
    # Not splitlines(): Java ends a line at \n, \r and \r\n only.
    natural = re.split(r"\r\n|\r|\n", content)
    number = 0
    while number < len(natural):
        first = number + 1
        line = natural[number].lstrip(_BLANKS)
        number += 1
        if line in ("", "\\") or line[0] in "#!":
            continue  # a lone backslash continues nothing: the next line may be a comment
        while _continues(line):
            line = line[:-1]
            if number == len(natural):
                break
            line += natural[number].lstrip(_BLANKS)
            number += 1
        lines.append((first, line))
    return lines


def _continues(line: str) -> bool:
    """An odd number of backslashes at the end: the last of them escapes the line's end."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _split(line: str) -> tuple[str, str]:
    """At the first unescaped blank, = or :. Between blanks there may be one = or :."""
    end = 0
    while end < len(line) and line[end] not in "=:" + _BLANKS:
        end += 2 if line[end] == "\\" else 1
    rest = line[end:].lstrip(_BLANKS)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANKS)
    return line[:end], rest


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    units: list[str] = []
    at = 0
    while at < len(text):
        if text[at] != "\\":
            units.append(text[at])
            at += 1
            continue
        letter = text[at + 1 : at + 2]
        at += 2
        if letter != "u":
            units.append(_ESCAPES.get(letter, letter))
            continue
        if _UNICODE.match(text, at) is None:
            raise ValueError(text)
        units.append(chr(int(text[at : at + 4], 16)))
        at += 4
    # Two escapes may be the halves of one character beyond the first 65,536.
    return "".join(units).encode("utf-16", "surrogatepass").decode("utf-16", "replace")

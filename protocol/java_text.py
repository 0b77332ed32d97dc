"""Java's text rules: which characters are blank and what is a whole number, where Kafka reads text.

Python's own rules differ: `str.strip()` takes U+00A0 and leaves U+0000, `isdecimal()` takes the
digits of every script, `int()` raises for more than 4,300 digits, and `\\s` in a regular expression
has blanks that Java's has not. A check by one rule and a conversion by the other is a crash, or a
value that a Kafka would refuse.
"""

import re
from typing import Final

INT_MIN, INT_MAX = -(2**31), 2**31 - 1
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1

_TRIMMED: Final = "".join(map(chr, range(0x21)))  # String.trim: up to and with U+0020
_COMMA: Final = re.compile(r"[ \t\n\x0b\f\r]*,[ \t\n\x0b\f\r]*")  # Pattern's \s*,\s*
_INTEGER: Final = re.compile(r"(?P<sign>[+-]?)0*(?P<digits>[0-9]{1,19})")


def trim(text: str) -> str:
    """As `String.trim()`."""
    return text.strip(_TRIMMED)


def split_list(text: str) -> tuple[str, ...]:
    """As `ConfigDef.parseType` splits a list; empty for a blank text."""
    trimmed = trim(text)
    return tuple(_COMMA.split(trimmed)) if trimmed else ()


def integer(text: str, low: int = LONG_MIN, high: int = LONG_MAX) -> int | None:
    """The number that a trimmed text is, in ASCII digits; None if it is none from low to high."""
    match = _INTEGER.fullmatch(trim(text))
    if match is None:
        return None
    number = int(match["sign"] + match["digits"])
    return number if low <= number <= high else None

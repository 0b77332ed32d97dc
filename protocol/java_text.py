"""Java's text rules: which characters are blank, what is a whole number, how a double is written.

For text that Kafka reads. Python's rules differ: `str.strip()` removes U+00A0 and keeps U+0000,
`int()` raises for more than 4,300 digits, and `\\s` in a regular expression matches blanks that
Java's does not. To check by one rule and convert by the other is a crash, or a value that Kafka
would refuse.
"""

import re
from typing import Final

SHORT_MIN, SHORT_MAX = -(2**15), 2**15 - 1
INT_MIN, INT_MAX = -(2**31), 2**31 - 1
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1

_TRIMMED: Final = "".join(map(chr, range(0x21)))  # String.trim: up to and with U+0020
_COMMA: Final = re.compile(r"[ \t\n\x0b\f\r]*,[ \t\n\x0b\f\r]*")  # Pattern's \s*,\s*
_NOT_FINITE: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
_INTEGER: Final = re.compile(r"(?P<sign>[+-]?)0*(?P<digits>[0-9]{1,19})")


def trim(text: str) -> str:
    """As `String.trim()`."""
    return text.strip(_TRIMMED)


def split_list(text: str) -> tuple[str, ...]:
    """As `ConfigDef.parseType` splits a list; empty for a blank text."""
    trimmed = trim(text)
    return tuple(_COMMA.split(trimmed)) if trimmed else ()


def parse_integer(text: str, low: int = LONG_MIN, high: int = LONG_MAX) -> int | None:
    """The number in a trimmed text, in ASCII digits; None if it is not one from low to high."""
    match = _INTEGER.fullmatch(trim(text))
    if match is None:
        return None
    number = int(match["sign"] + match["digits"])
    return number if low <= number <= high else None


def double_text(value: float) -> str:
    """As `Double.toString`: 0.001, 9.9E-4, 1.0E7, Infinity."""
    if str(value) in _NOT_FINITE:
        return _NOT_FINITE[str(value)]
    sign, size = "-" if value < 0 else "", abs(value)
    if size == 0 or 1e-3 <= size < 1e7:
        return str(value)
    text, _, exponent = str(size).partition("e")
    whole, _, fraction = text.partition(".")
    digits = (whole + fraction).lstrip("0")
    power = int(exponent or 0) + len(whole) - 1 - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{power}"

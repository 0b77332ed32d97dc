"""JAAS configuration: the users of PLAIN, as `sasl.jaas.config` has them.

One entry: `LOGIN-MODULE required user_NAME="PASSWORD" ...;`. A text is cut into words as Java's
`StreamTokenizer` does: text in double or single quotes with Java's escapes, comments, and words,
which cannot begin with a digit. Messages never show a value.
Kafka's counterparts: `JaasConfig`, `PlainServerCallbackHandler`.
"""

from typing import Final

from msgspec import Struct

PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"

_FLAGS: Final = frozenset(("required", "requisite", "sufficient", "optional"))
_USER: Final = "user_"

_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_OCTAL: Final = "01234567"
_DIGITS: Final = "0123456789.-"
_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-$"
_FIRST_FOREIGN_LETTER: Final = "\xa0"
_OCTAL_DIGITS_MAX: Final = 3


class _Word(Struct, frozen=True):
    text: str
    is_sign: bool = False
    """One character that is no word, or a number: neither can be a name or a value."""


_EQUALS: Final = _Word("=", is_sign=True)
_END: Final = _Word(";", is_sign=True)


class BadJaas(ValueError):
    """A text that is no JAAS configuration of PLAIN; the message shows nothing of it."""


def plain_users(text: str) -> dict[str, str]:
    """Passwords by user; none for an empty text. Raises BadJaas."""
    if not text.strip():
        return {}
    words = _words(text)
    if len(words) < 3 or words[-1] != _END:
        raise BadJaas('must be of the form MODULE required user_NAME="PASSWORD" ... ;')
    module, flag, *options = words[:-1]
    if module.text != PLAIN_MODULE:
        raise BadJaas(f"the login module must be {PLAIN_MODULE}")
    if flag.text.lower() not in _FLAGS:
        raise BadJaas("the word after the login module must be required")
    if _END in options:
        raise BadJaas("it must have one login module")
    if len(options) % 3:
        raise BadJaas('each option must be NAME="VALUE"')
    users: dict[str, str] = {}
    for name, equals, value in zip(options[::3], options[1::3], options[2::3], strict=True):
        if equals != _EQUALS or name.is_sign or value.is_sign:
            raise BadJaas('each option must be NAME="VALUE"')
        if name.text.startswith(_USER):
            users[name.text.removeprefix(_USER)] = value.text
    return users


def _words(text: str) -> list[_Word]:
    """Raises BadJaas."""
    words: list[_Word] = []
    at = 0
    while at < len(text):
        char = text[at]
        if char <= " ":
            at += 1
        elif char == "/":
            at = _after_comment(text, at)
        elif char in "\"'":
            word, at = _quoted(text, at + 1, char)
            words.append(_Word(word))
        elif char in _DIGITS:
            at = _after_number(text, at)
            words.append(_Word("", is_sign=True))
        elif _is_letter(char):
            end = at
            while end < len(text) and (_is_letter(text[end]) or text[end] in _DIGITS):
                end += 1
            words.append(_Word(text[at:end]))
            at = end
        else:
            words.append(_Word(char, is_sign=True))
            at += 1
    return words


def _is_letter(char: str) -> bool:
    return char in _LETTERS or char >= _FIRST_FOREIGN_LETTER


def _after_comment(text: str, at: int) -> int:
    """A slash always begins one: to the end of the line, or from /* to */."""
    if text.startswith("/*", at):
        end = text.find("*/", at + 2)
        return len(text) if end < 0 else end + 2
    while at < len(text) and text[at] not in "\r\n":
        at += 1
    return at


def _after_number(text: str, at: int) -> int:
    """Or after a minus that begins none."""
    end = at + 1 if text[at] == "-" else at
    if end > at and text[end : end + 1] not in tuple(_DIGITS[:-1]):
        return end
    dots = 0
    while end < len(text) and (text[end] in _DIGITS[:10] or (text[end] == "." and not dots)):
        dots += text[end] == "."
        end += 1
    return end


def _quoted(text: str, at: int, quote: str) -> tuple[str, int]:
    word: list[str] = []
    while at < len(text) and text[at] not in "\r\n":
        char = text[at]
        at += 1
        if char == quote:
            return "".join(word), at
        if char == "\\" and at < len(text):
            char, at = _escaped(text, at)
        word.append(char)
    raise BadJaas("a quotation mark is missing")


def _escaped(text: str, at: int) -> tuple[str, int]:
    """What stands behind a backslash; of octal digits three up to \\377, otherwise two."""
    char = text[at]
    if char not in _OCTAL:
        return _ESCAPES.get(char, char), at + 1
    digits_max = _OCTAL_DIGITS_MAX if char <= "3" else _OCTAL_DIGITS_MAX - 1
    end = at + 1
    while end < len(text) and end - at < digits_max and text[end] in _OCTAL:
        end += 1
    return chr(int(text[at:end], 8)), end

"""Printable text: what clients chose, such as a group id, written so that a terminal shows it.

A client id, a group id or a topic in an old log may hold control characters, terminal escapes, line
ends or signs that turn the direction of writing. Wherever people read (log lines for people, tables
and stories of the command line) they are escaped as in a string literal: `\\x1b`, `\\n`, `\\u202e`.
JSON is for programs and has its own escapes.
"""


def printable(text: str) -> str:
    """A backslash stays as it is, or every Windows path would be doubled."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)

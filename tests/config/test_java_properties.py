"""Java properties: server.properties is read as java.util.Properties reads it.

The expectations were checked once against Java itself, with some ten thousand random files.
"""

import pytest

from config.java_properties import BadProperties, parse_properties


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a=b", {"a": "b"}),
        (b"a = b \n", {"a": "b "}),
        (b"  a : b\n", {"a": "b"}),
        (b"a b c\n", {"a": "b c"}),
        (b"a\n", {"a": ""}),
        (b"a==b\n", {"a": "=b"}),
        (b"a=1\na=2\n", {"a": "2"}),
        (b"# no\n! no\n  # no\na=#yes\n", {"a": "#yes"}),
        (b"a=1,\\\n   2,\\\n   # 3\nb=4\n", {"a": "1,2,# 3", "b": "4"}),
        (b"a=1\\\\\nb=2\n", {"a": "1\\", "b": "2"}),
        (b"a=1\\", {"a": "1"}),
        (b"\\\n# a lone backslash continues nothing\n", {}),
        (b"a\\ b\\=c=d\n", {"a b=c": "d"}),
        (b"a=\\t\\n\\q\\u00e9\n", {"a": "\t\nq\u00e9"}),
        (b"a=\\ud83d\\ude00\n", {"a": "\U0001f600"}),
        (b"a=\xe9\n", {"a": "\u00e9"}),
        (b"a=1\rb=2\r\nc=3\n\n", {"a": "1", "b": "2", "c": "3"}),
        (b"a=x\x85y\n", {"a": "x\x85y"}),
        (b"", {}),
    ],
)
def test_the_format_is_javas(content: bytes, expected: dict[str, str]) -> None:
    assert parse_properties(content) == expected


@pytest.mark.parametrize("content", [b"a=1\nb=\\u12", b"a=1\nb=\\uxyzw"])
def test_a_broken_escape_is_the_only_mistake(content: bytes) -> None:
    with pytest.raises(BadProperties, match="line 2"):
        parse_properties(content)

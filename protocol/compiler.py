"""Compiler: makes the functions that read and write one message at one version.

They are generated from declarations (`schema.py`), compiled on first use, and kept. There are some
five hundred; a daemon uses a few dozen. `codec.py` uses this for requests and responses, headers
included. Code that stores or embeds a struct of its own calls:

    read = reader(OffsetCommitValue, 4)             # read(buf, pos, end) -> OffsetCommitValue
    write = writer(OffsetCommitValue, 4, prefix=b"\\x00\\x04")  # write(value) -> bytes

A reader raises `Malformed` and nothing else, a writer `Unwritable`.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from protocol.compiled_codec import record_writer_in_c
from protocol.reader_source import compile_reader
from protocol.schema import Message
from protocol.source import MessageLayout
from protocol.writer_source import compile_writer

M = TypeVar("M", bound=Message)


def layout(cls: type[Message], version: int) -> MessageLayout:
    """A declaration at one of its versions."""
    if version not in cls.VERSIONS:
        raise ValueError(f"{cls.__name__} has no version {version}")
    return MessageLayout(cls, version, flexible=version >= cls.FLEXIBLE_SINCE)


def reader(cls: type[M], version: int) -> Callable[[bytes, int, int], M]:
    """The function (buf, pos, end) that reads one message; bytes that follow it are ignored."""
    read: Callable[[bytes, int, int], M] = _reader(cls, version)
    return read


def writer(cls: type[M], version: int, *, prefix: bytes = b"") -> Callable[[M], bytes]:
    """The function that answers a message's bytes, after `prefix`."""
    write: Callable[[M], bytes] = _writer(cls, version, prefix)
    return write


@cache
def _reader(cls: type[Message], version: int) -> Callable[..., Any]:
    return compile_reader([layout(cls, version)])


@cache
def _writer(cls: type[Message], version: int, prefix: bytes) -> Callable[..., Any]:
    def generated() -> Callable[..., Any]:
        return compile_writer([layout(cls, version)], prefix=prefix)

    layout(cls, version)  # raises for a version that there is not
    return record_writer_in_c(cls, version, prefix, generated)

"""Compiled codec: readers and writers in C of the messages of a consumer group's daily life.

The compiled build has them (native/codec_source.py makes them from the same declarations). They
read and write what is usual, and leave the rest to the generated Python, which is handed to them.
"""

from collections.abc import Callable
from typing import Any

try:
    import rollcall_codec
except ImportError:
    rollcall_codec = None


def reader_in_c(
    api_key: int, version: int, oracle: Callable[[], Callable[..., Any]]
) -> Callable[..., Any]:
    """The reader of a request, or what `oracle` makes if there is none."""
    if rollcall_codec is None or api_key not in rollcall_codec.READERS:
        return oracle()
    read: Callable[..., Any] = rollcall_codec.RequestReader(api_key, version, oracle).read
    return read


def writer_in_c(
    api_key: int, version: int, oracle: Callable[[], Callable[..., Any]]
) -> Callable[..., Any]:
    """The writer of a response, or what `oracle` makes if there is none."""
    if rollcall_codec is None or api_key not in rollcall_codec.WRITERS:
        return oracle()
    write: Callable[..., Any] = rollcall_codec.ResponseWriter(api_key, version, oracle).write
    return write


def record_writer_in_c(
    cls: type, version: int, prefix: bytes, oracle: Callable[[], Callable[..., Any]]
) -> Callable[..., Any]:
    """The writer of a record or of another struct, or what `oracle` makes if there is none."""
    module, name = cls.__module__, cls.__name__
    if rollcall_codec is None or f"{module}.{name}" not in rollcall_codec.RECORD_WRITERS:
        return oracle()
    write: Callable[..., Any] = rollcall_codec.RecordWriter(
        module, name, version, prefix, oracle
    ).write
    return write


def function_in_c(name: str) -> Callable[..., Any] | None:
    """A function or a class of native/*.pxi; None if there is none."""
    return None if rollcall_codec is None else getattr(rollcall_codec, name)

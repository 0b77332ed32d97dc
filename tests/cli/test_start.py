"""The daemon's start without click: does it read a command line as click does, or leave it?"""

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.serve import serve
from cli.start import MANY_VALUES, ONE_VALUE, REPAIR, read_words, serve_at_once

NAMES = [REPAIR, *ONE_VALUE, *MANY_VALUES]
VALUES = ["x", "127.0.0.1:0", "a=b", "=", "a b", "é", "", "-x", "--", "--lis", "--help", "serve"]
WORDS = st.lists(
    st.one_of(
        st.sampled_from(NAMES).map(lambda name: [name]),
        st.sampled_from(VALUES).map(lambda value: [value]),
        st.tuples(st.sampled_from(NAMES[1:]), st.sampled_from(VALUES)).map(list),
        st.tuples(st.sampled_from(NAMES), st.sampled_from(VALUES)).map(
            lambda pair: ["=".join(pair)]
        ),
    ),
    max_size=5,
).map(lambda parts: [word for part in parts for word in part])


@given(WORDS)
def test_words_that_are_read_mean_what_click_says(words: list[str]) -> None:
    options = read_words(words)
    if options is None:
        return
    params = serve.make_context("serve", list(words)).params
    file = params["config_file"]
    assert options.repair == params["repair"]
    assert options.single == {
        name: value
        for name, value in (
            ("data_dir", params["data_dir"]),
            ("admin", params["admin"]),
            ("config_file", None if file is None else str(file)),
        )
        if value is not None
    }
    assert {name: tuple(given) for name, given in options.repeated.items()} == {
        name: params[name] for name in MANY_VALUES.values()
    }


def test_every_option_of_serve_is_read() -> None:
    options = [each.opts for each in serve.params if isinstance(each, click.Option)]
    assert sorted(NAMES) == sorted(name for names in options for name in names)
    words = [word for name in [*ONE_VALUE, *MANY_VALUES] for word in (name, "x")]
    assert read_words([REPAIR, *words]) is not None


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["--listen"],
        ["--set", "group.max.size=-1"],
        ["--set", "no.such.key=1", "--config", "missing.toml"],
        ["--data-dir", __file__],
        ["--config", os.fspath(Path(__file__).parent)],
    ],
)
def test_what_is_wrong_is_left_to_click(words: list[str]) -> None:
    assert serve_at_once(words) is None


def test_a_start_without_tls_loads_neither_openssl_nor_click() -> None:
    """What a daemon imports before it serves: `rollcall serve` reads its options first."""
    program = """
import sys
from rollcall.program import use_program_path
use_program_path()
from rollcall.lean_imports import import_without
import_without("typing_extensions", "msgspec")
import cli.main, cli.start
from broker.loop.without_openssl import import_event_loop
import_event_loop()
import broker.main, console.start
unwanted = {"ssl", "_ssl", "_hashlib", "click", "typing_extensions"}
print(sorted(unwanted & sys.modules.keys()))
import asyncio, ssl, typing_extensions, uvloop
print(ssl.create_default_context().verify_mode.name, uvloop.Loop.__name__)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.splitlines() == ["[]", "CERT_REQUIRED Loop"]


def test_what_else_uvloop_may_take_from_ssl_is_the_real_one() -> None:
    program = """
import sys
from rollcall.program import use_program_path
use_program_path()
from broker.loop.without_openssl import _Placeholder
sys.modules["ssl"] = _Placeholder("ssl")
import ssl
found = ssl.PROTOCOL_TLS_SERVER
import ssl
assert ssl.PROTOCOL_TLS_SERVER is found and type(ssl).__name__ == "module"
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)

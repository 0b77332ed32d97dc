"""Client kcat: it lists, produces and consumes; a skipped test where it is not installed."""

import shutil
import subprocess

import pytest

from tests.broker.daemon import Daemon
from tests.interop.conftest import create_topic

TIMEOUT_S = 60


def kcat(daemon: Daemon, *arguments: str, stdin: str = "") -> str:
    """What it prints; its standard error must be empty."""
    program = shutil.which("kcat") or shutil.which("kafkacat")
    if program is None:
        pytest.skip("no kcat in PATH")
    done = subprocess.run(
        [program, "-q", "-b", daemon.bootstrap, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_kcat_lists_produces_and_consumes(daemon: Daemon) -> None:
    create_topic(daemon.bootstrap, "orders", 1)
    assert 'topic "orders" with 1 partitions' in kcat(daemon, "-L")

    idempotent = ("-X", "enable.idempotence=true")
    kcat(daemon, "-P", "-t", "orders", "-K:", "-z", "gzip", *idempotent, stdin="a:1\nb:2\n")
    kcat(daemon, "-P", "-t", "orders", "-K:", "-H", "from=kcat", stdin="c:3\n")
    layout = "%o %k %s %h\n"
    whole = kcat(daemon, "-C", "-t", "orders", "-o", "beginning", "-e", "-f", layout)
    assert whole == "0 a 1 \n1 b 2 \n2 c 3 from=kcat\n"
    assert kcat(daemon, "-C", "-t", "orders", "-o", "-1", "-e", "-f", "%s\n") == "3\n"
    assert kcat(daemon, "-Q", "-t", "orders:0:-1") == "orders [0] offset 3\n"

    group = ("-G", "readers", "-o", "beginning", "-e", "-f", "%s\n")
    options = ("-X", "auto.offset.reset=earliest", "-c", "3")
    assert kcat(daemon, *options, *group, "orders") == "1\n2\n3\n"

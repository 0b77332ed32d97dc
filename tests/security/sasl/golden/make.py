"""Golden exchanges: what the SASL servers of Kafka 4.3.1 answer to messages.

    python -m tests.security.sasl.golden.make LIBS    # LIBS: the libs directory of a Kafka

Needs Java on the PATH; the tests do not. Each line of `exchanges.jsonl` is one exchange: the
messages and the answers, as text with one character for each byte, and the principal.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final

HERE = Path(__file__).parent

PLAIN: Final = (
    "\0alice\0alice-secret", "alice\0alice\0alice-secret", "bob\0alice\0alice-secret",
    "\0alice\0wrong", "\0nobody\0alice-secret", "\0\0alice-secret", "\0alice\0", "\0\0", "", "\0",
    "alice\0alice-secret", "\0alice\0alice-secret\0", "\0alice\0alice-secret\0more\0",
    "a\0\0\0\0\0",
    "bob\0alice\0wrong", "\0\xc3\xa4\0\xc3\xbc", "\0\xe4\0\xfc", "\xff\0alice\0alice-secret",
    "\0a,b=c\0x=,y", "\0alice\0alice-secret\n", "\0 alice\0alice-secret",
)  # fmt: skip

SCRAM_FIRST: Final = (
    "n,,n=alice,r=abc", "n,a=alice,n=alice,r=abc", "n,a=bob,n=alice,r=abc", "n,a=,n=alice,r=abc",
    "n,a=bob,n=nobody,r=abc", "y,,n=alice,r=abc", "p=tls-unique,,n=alice,r=abc", "n,,n=nobody,r=a",
    "n,,n=a=2Cb=3Dc,r=abc", "n,,n=a=2cb,r=abc", "n,,n=a=b,r=abc", "n,,n=,r=abc", "n,,n=alice,r=",
    "n,,n=alice,r=a b", "n,,n=alice,r=a\x7f", "n,,r=abc,n=alice", "n,,m=x,n=alice,r=abc", "",
    "n,,n=alice,r=abc,tokenauth=true", "n,,n=alice,r=abc,tokenauth=TRUE", "n,,n=alice",
    "n,,n=alice,r=abc,tokenauth=false", "n,,n=alice,r=abc,x=y", "n,,n=alice,r=abc,x=", "n", "n,",
    "n,,n=alice,r=abc,", "n,,n=alice,r=abc,1=2", "n,,n=alice\n,r=abc", "n,,n=\xc3\xa4,r=abc",
    "n,,n=\xff,r=abc", "n,,n=alice,r=abc\n", " n,,n=alice,r=abc", "N,,n=alice,r=abc", "\0",
    "n,,n=alice,r=abc,x=y,tokenauth=true", "n,,n=bob,r=~!@#$%^&*()_+|}{:?><=-",
)  # fmt: skip

SCRAM_FINAL: Final = (
    "c=biws,r={nonce},p={proof}", "c=biws,r={nonce}x,p={proof}", "c=biws,r=abc,p={proof}",
    "c=biws,r={nonce},p=", "c=biws,r={nonce},p=AAAA", "c=biws,r={nonce}", "", "r={nonce},p={proof}",
    "c=biws,r={nonce},p={proof},x=y", "c=biw,r={nonce},p={proof}", "c=,r={nonce},p={proof}",
    "c=biws,r={nonce},p={proof}\n", "n,,n=alice,r=abc", "c=eSws,r={nonce},p={proof}",
    "c=biws,r={nonce},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=", "c=biws,r={nonce},p=!!!!",
)  # fmt: skip

OAUTH: Final = (
    ["n,,\1auth=Bearer good\1\1"], ["n,a=alice,\1auth=Bearer good\1\1"],
    ["n,a=bob,\1auth=Bearer good\1\1"], ["n,,\1auth=bearer good\1\1"],
    ["n,,\1auth=BEARER  good\1\1"], ["n,,\1auth=Basic good\1\1"], ["n,,\1auth=Bearergood\1\1"],
    ["n,,\1auth=Bearer\1\1"], ["n,,\1auth=Bearer go od\1\1"], ["n,,\1auth=Bearer good=\1\1", "\1"],
    ["n,,\1\1"], ["n,,\1x=y\1\1"], ["n,,\1x=y\1auth=Bearer good\1\1"],
    ["n,,\1x=\1auth=Bearer good\1\1"],
    ["n,,\1auth=Bearer good\1x=y\1\1"], ["n,,\1auth=Bearer good\1x=y=z\1\1"], ["", "\1"], ["\1"],
    ["n,,\1auth=Bearer good\1"], ["n,,auth=Bearer good\1\1"], ["y,,\1auth=Bearer good\1\1"],
    ["n,,\1auth=Bearer bad\1\1", "\1"], ["n,,\1auth=Bearer bad\1\1", ""],
    ["n,,\1auth=Bearer bad\1\1", "\1\1"], ["n,,\1auth=Bearer bad\1\1", "n,,\1auth=Bearer good\1\1"],
    ["n,,\1auth=Bearer bad\1\1", "n,,\1auth=Bearer worse\1\1", "\1"],
    ["n,,\1auth=Bearer good\1auth=Bearer bad\1\1", "\1"], ["n,,\1auth=Bearer \xc3\xa4\1\1"],
    ["n,,\1auth=Bearer good\1key1=a\tb\r\nc\1\1"], ["n,,\1auth=Bearer good\1key=\xff\1\1"],
    ["n,,\1auth=Bearer good\1AuTh=x\1\1"], ["n,,\1auth=Bearer a.b-c_d~e+f/g==\1\1", "\1"],
)  # fmt: skip

RANDOM_EXCHANGES: Final = 300


def exchanges() -> Iterator[dict[str, object]]:
    for message in PLAIN:
        yield {"mechanism": "PLAIN", "messages": [message]}
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        for first in SCRAM_FIRST:
            yield {"mechanism": mechanism, "messages": [first, SCRAM_FINAL[0]]}
        for final in SCRAM_FINAL:
            yield {"mechanism": mechanism, "messages": [SCRAM_FIRST[0], final]}
    for messages in OAUTH:
        yield {"mechanism": "OAUTHBEARER", "messages": messages}
    yield from _mutations()


def _mutations() -> Iterator[dict[str, object]]:
    """A right message with one byte removed, changed or inserted."""
    random = Random(18)
    for number in range(RANDOM_EXCHANGES):
        mechanism, right = (
            ("PLAIN", "\0alice\0alice-secret"),
            ("SCRAM-SHA-256", "n,,n=alice,r=abc"),
            ("OAUTHBEARER", "n,,\1auth=Bearer good\1x=y\1\1"),
        )[number % 3]
        at = random.randrange(len(right))
        new = random.choice(("", chr(random.randrange(256)), *",=\0\1 \n"))
        changed = right[:at] + new + right[at + random.randrange(2) :]
        yield {"mechanism": mechanism, "messages": [changed]}


def main(libs: str) -> None:
    lines = "".join(json.dumps(exchange) + "\n" for exchange in exchanges())
    done = subprocess.run(
        ["java", "-cp", f"{libs}/*", str(HERE / "SaslRecorder.java")],
        input=lines.encode(),
        stdout=subprocess.PIPE,
        check=True,
    )
    (HERE / "exchanges.jsonl").write_bytes(done.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Golden answers: what Kafka 4.3.1 makes of regular expressions, and its metadata hashes.

    python -m tests.coordinator.consumer.golden.make LIBS    # LIBS: the libs directory of a Kafka

Needs Java on the PATH; the tests do not. Each line of `regexes.jsonl` is an expression with the
names that match it (RE2J, `Matcher.matches`) or the refusal (`getDescription`), the first line the
list of all names. Each line of `hashes.jsonl` is a group's topics with the hashes of
`org.apache.kafka.coordinator.group.Utils`.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Final
from uuid import UUID

HERE = Path(__file__).parent

NAMES: Final = (
    "a", "b", "ab", "aa", "aaa", "abc", "A", "AB", "k", "s", "S", "K", "x", "0", "10", "_", "a.b",
    "a-b", "orders", "Orders", "orders.eu", "orders-1", "__consumer_offsets", "a" * 249,
)  # fmt: skip

# By subject; the random ones below mix them.
REGEXES: Final = (
    # What people subscribe with.
    "orders.*", r"orders\..*", "^orders.*$", ".*", ".+", "[^_].*", "(?i)ORDERS", "a|b|ab", "",
    r"orders-\d+", "(orders|a)(-.*)?", "a{1,3}", r"\pL{1,249}", "a{249}", "__.*", "orders",
    # Repetition.
    "*", "a**", "a*?*", "a*+", "a++", "a?+", "a??", "a*?", "a+?b", "a{1}?", "{2}", "a{2}{3}",
    "a{2}*", "a{1000}", "a{1001}", "a{3,2}", "a{,2}", "a{", "a{2", "a{a}", "{", "}", "{+", "{{2}",
    "a{99999999999}", "a{1,99999999999}", "a{0001}", "a{00}", "a??{2,1}", "x{0}", "(x*)*", "(|a)+",
    "((a{10}){10}){10}", "^*", "$*", r"\Q*\E*", r"\Qab\E+", "(a{1000}){0}", "|", "a|", "|a",
    # Groups and flags.
    "a(", "a)", ")", "(a", "((a)", "(?:a", "()", "(?:)", "(?)a", "(?", "(?:", "(?i", "(?i:",
    "(?i)ab", "(?i:ab)", "(?-i)a", "(?U)a+", "(?x)a b", "(?m)^a$", "(?s).", "(?ims-U)a", "(?i-)a",
    "(?--i)a", "(?ii)a", "(?i:a)b", "(?=a)", "(?!a)", "(?<=a)", "(?<!a)", "(?>a)", "(?#c)a",
    "(?|a)", "(?R)", "(?<n>a)", "(?P<n>a)", "(?'n'a)", "(?P<>a)", "(?<1>a)", "(?P=n)", "(?P<n",
    "(?P<", "(?<", "(?P", "(?P<n>", "(?P<n\u00e4>a)", "(?P<n-x>a)", "(?P<n>a)(?P<n>b)",
    "(?P<n>a)|(?<n>b)",
    # Escapes.
    "\\", "a\\", r"\C", r"a\C+", r"(\C", r"\E", r"\Q", r"\Qa.b", r"\Qa.b\E", r"\Qa\Eb", "\\Qa\\",
    r"\1", r"\8", r"\0", r"\101", r"\x41", r"\x4", r"\x{41}", r"\x{}", r"\x{", r"\x{1001}",
    r"\x{110000}", r"\u0041", r"\a", r"\f\t\n\r\v", r"\Aa\z", r"a\Z", r"\Ga", r"a\b", r"\Ba",
    r"\d+", r"\D", r"\w+", r"\W", r"\S*", r"\h", r"\R", r"\X", r"\e", r"\cA", r"\N", r"\K",
    r"\k<n>", r"\g1", r"\_", r"\-", r"\.", r"\/", r"\ ", "\\\u00e4", "\\\u00e4*a", "[\\\u00e4-z]+",
    # Classes.
    "[", "[a", "[a-", "[a\\", "[]", "[^]", "[]a]", "[^]a]", "[a-]", "[-a]", "[z-a]", r"[a-\d]",
    r"[\d-z]", r"[\w.]+", r"[\b]", r"[\C]", r"[\Q]\E]", "[[a]]", "[a&&b]", "[[:alpha:]]+",
    "[[:^alpha:]]", "[[:word:]]*", "[[:foo:]]", "[:alpha:]", "[[:]", "[[:a", "[^\\n]", "(?i)[^a]",
    "(?i)[a-z]+", r"[^\x00-\x{10FFFF}]", r"\pL+", r"\pN+", r"\PL", r"\p{^L}", r"\p{Lu}",
    r"(?i)\p{Lu}", r"\p{Latin}+", r"\p{Greek}", r"\p{Any}", r"\p{Foo}", r"\p{L", r"\p", r"\pX",
    r"\p{IsAlpha}", r"\p{javaLowerCase}", r"\p{Cn}", r"\p{1001}",
    # Characters outside ASCII: no name has one, but case folding reaches them.
    "\u00e4", "[\u00e4-\u00fc]", "\u212a", "(?i)\u212a", "(?i)\u017f", "\U0001f600?a", "\x00",
    "a\nb",
)  # fmt: skip
# Their results differ from RE2's: docs/differences.md names them.
DIFFERENT: Final = ("((a{10}){10}){11}", "(a{500}){3}", r"\pL{1000}", r"[a\p")
_PARTS: Final = (
    *"abk01_-.*+?|()[]^$<>=!:,", "??", "*?", "(?:", "(?i)", "(?s)", "(?U)", "(?P<n>", "(?<m>",
    "(?<", "[^", "[a-z]", "[[:alpha:]]", "[:", r"\d", r"\W", r"\b", r"\Q", r"\E", r"\pL", r"\p{Lu}",
    r"\x", r"\x{61}", r"\C", r"\.", "\\", "{", "}", "{2}", "{1,2}", "{,2}", "{1001}", "{2,1}",
    "\u00e4", "\\\u00e4", "\u017f", "orders",
)  # fmt: skip
RANDOM_REGEXES: Final = 1_200


def random_regexes() -> list[str]:
    random = Random(431)
    made = {
        "".join(random.choice(_PARTS) for _ in range(random.randint(2, random.choice((4, 6, 10)))))
        for _ in range(RANDOM_REGEXES)
    }
    return sorted(made)


def topic(name: str, number: int, racks: Sequence[Sequence[str]]) -> dict[str, object]:
    return {"name": name, "id": str(UUID(int=number)), "racks": racks}


GROUPS: Final = (
    [],
    [topic("orders", 0x6F1D3C1E5B7A4F0E9D670C7B1A2F3E4D, [[]])],
    [topic("orders", 0x6F1D3C1E5B7A4F0E9D670C7B1A2F3E4D, [[]] * 3)],
    [topic("orders", 0xFFFFFFFFFFFFFFFF8000000000000001, [["a"], ["b"], ["a"]])],
    [topic("orders", 1, [["b", "a", "c"], [], ["\u00e4\U0001f600", "\uff5e", "east-1"]])],
    [topic("a" * 249, 2, [["rack-1", "rack-1"]] * 40)],  # XXH3 hashes by length: here over 1 KiB
    [topic("t", 1 << 127, [])],
    [topic("b", 1, [[]]), topic("a", 2, [[]] * 2), topic("a.b", 3, [[]]), topic("B", 4, [[]])],
    [topic(f"t-{n}", n, [[]] * (n % 7)) for n in range(200)],
    *([topic("x" * n, n, [[]])] for n in (1, 2, 3, 60, 61, 100, 103, 104, 105, 110, 111, 112)),
)


def run(recorder: str, libs: str, lines: Sequence[object]) -> str:
    return subprocess.run(
        ["java", "-cp", f"{libs}/*", str(HERE / recorder)],
        input="".join(json.dumps(line) + "\n" for line in lines).encode(),
        capture_output=True,
        check=True,
    ).stdout.decode()


def main(libs: str) -> None:
    regexes = list(dict.fromkeys((*REGEXES, *DIFFERENT, *random_regexes())))
    answers = run("RegexRecorder.java", libs, [NAMES, *regexes])
    (HERE / "regexes.jsonl").write_text(json.dumps(NAMES) + "\n" + answers)
    (HERE / "hashes.jsonl").write_text(run("HashRecorder.java", libs, GROUPS))


if __name__ == "__main__":
    main(sys.argv[1])

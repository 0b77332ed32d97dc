"""Metric family: names, and how samples are written, by Prometheus' rules and our own."""

import math
import re

import pytest
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as parse_openmetrics,
)
from prometheus_client.parser import text_string_to_metric_families as parse_text

from broker.metrics.family import UNITS, Family, MetricKind, escaped, number
from broker.metrics.scrape import all_families, exposition
from broker.observe.stats import Histogram
from docs.make_metrics import PATH, metrics_text

FAMILIES = all_families()
OWN = [family for family in FAMILIES if not family.exporter]
NOBODYS_UNITS = re.compile(
    r"_(ms|millis\w*|micros\w*|nanos\w*|minutes|hours|kilobytes|megabytes|percent)(_|$)"
)

PREFIXES = ("group_coordinator_", "transaction_coordinator_", "rollcall_", "process_", "python_")


def test_no_name_is_declared_twice() -> None:
    names = [family.name for family in FAMILIES]
    assert len(names) == len(set(names)) > 80


@pytest.mark.parametrize("family", OWN, ids=lambda family: family.name)
def test_own_names_keep_the_conventions(family: Family) -> None:
    """What promtool's linter requires, and the project's prefixes."""
    name = family.name
    assert re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name)
    assert name.startswith(PREFIXES)
    assert name.endswith("_total") == (family.kind is MetricKind.COUNTER)
    assert name.endswith("_info") == (family.kind is MetricKind.INFO)
    assert not name.endswith(("_bucket", "_count", "_sum"))
    assert not NOBODYS_UNITS.search(name)
    words = name.removesuffix("_total").split("_")
    assert not {"counter", "gauge", "histogram", "summary"} & set(words)
    assert not set(UNITS) & set(words[:-1]), "the unit comes last"
    for label in family.labels:
        assert re.fullmatch(r"[a-z]+(_[a-z]+)*", label)
        assert label not in ("le", "quantile", "job", "instance")


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_each_has_a_meaning_in_a_sentence(family: Family) -> None:
    assert len(family.help) > 5
    assert "\n" not in family.help
    assert family.help.endswith(".")


def test_no_help_text_is_anothers() -> None:
    texts = [family.help for family in OWN]
    assert len(texts) == len(set(texts))


EVIL = [
    'quo"te',
    "back\\slash",
    "new\nline",
    "\\n",
    '\\"',
    "tab\tand\rreturn",
    "grün 漢字 \U0001f600",
    "",
    " ",
    "\0",
    '",x="y',
    "{}# TYPE",
]


@pytest.mark.parametrize("value", EVIL)
def test_a_label_says_what_it_was_given(value: str) -> None:
    family = Family("rollcall_example", MetricKind.GAUGE, "Example.", ("group", "state"))
    portion = family.samples([((value, "a"), 1), (("b", value), 2.5)])

    for openmetrics, parse in ((False, parse_text), (True, parse_openmetrics)):
        written = "".join(filter(None, exposition(iter([portion]), openmetrics=openmetrics)))
        (parsed,) = parse(written)
        assert [(sample.labels, sample.value) for sample in parsed.samples] == [
            ({"group": value, "state": "a"}, 1.0),
            ({"group": "b", "state": value}, 2.5),
        ]


def test_what_utf8_has_no_bytes_for_is_spelled_out() -> None:
    first, second = escaped("a\ud800"), escaped("a\ud801")
    assert first != second
    assert first.encode("utf-8") == b"a\\\\ud800"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0, "0"),
        (True, "1"),
        (2**63, "9223372036854775808"),
        (0.5, "0.5"),
        (1e-5, "1e-05"),
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
        (math.nan, "NaN"),
    ],
)
def test_numbers_are_written_as_prometheus_reads_them(value: float, written: str) -> None:
    assert number(value) == written


def test_a_histogram_counts_from_below_and_ends_with_all() -> None:
    histogram = Histogram((0.5, 1.0))
    for amount in (0.25, 0.5, 0.75, 3.0):
        histogram.add(amount)
    family = Family("rollcall_example_seconds", MetricKind.HISTOGRAM, "Example.", ("request",))
    portion = family.histograms({("Join",): histogram})

    for openmetrics, parse in ((False, parse_text), (True, parse_openmetrics)):
        written = "".join(filter(None, exposition(iter([portion]), openmetrics=openmetrics)))
        (parsed,) = parse(written)
        assert parsed.type == "histogram"
        values = {(s.name, s.labels.get("le")): s.value for s in parsed.samples}
        assert values == {
            ("rollcall_example_seconds_bucket", "0.5"): 2,
            ("rollcall_example_seconds_bucket", "1.0"): 3,
            ("rollcall_example_seconds_bucket", "+Inf"): 4,
            ("rollcall_example_seconds_count", None): 4,
            ("rollcall_example_seconds_sum", None): 4.5,
        }


def test_openmetrics_names_a_counters_family_without_its_ending() -> None:
    counter = Family("rollcall_seconds_total", MetricKind.COUNTER, "Example.")
    assert "# TYPE rollcall_seconds counter\n# UNIT rollcall_seconds seconds\n" in counter.header(
        openmetrics=True
    )
    assert counter.header(openmetrics=False).endswith("# TYPE rollcall_seconds_total counter\n")


def test_the_page_is_what_the_declarations_say() -> None:
    assert PATH.read_text() == metrics_text(), "run `make docs`"

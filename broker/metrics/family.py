"""Metric family: its declaration, and its samples as text.

The text is written here and not by the metrics library: a scrape of 10,000 groups is some 500,000
samples, and the library takes ten microseconds for each (ADR 0009). A subject's file declares its
families and yields `Portion`s of finished lines; between two portions the event loop may run other
work. Samples look alike in Prometheus' text format and in OpenMetrics; only the headers differ.
docs/metrics.md is made from the declarations.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from msgspec import Struct

from broker.observe.stats import Histogram

UNITS: Final = ("seconds", "bytes", "ratio", "records")
"""A name ends with its unit, before `_total`."""

_ESCAPES: Final = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})
_HELP_ESCAPES: Final = str.maketrans({"\\": r"\\", "\n": r"\n"})
_TOTAL: Final = "_total"

Number = float | int | bool


class MetricKind(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    INFO = "info"


class Portion(NamedTuple):
    """Lines of one family: about as many as may be made without polling the sockets."""

    family: "Family"
    lines: Sequence[str]


Portions = Iterator[Portion | None]
"""What a subject yields; a None is a pause without lines."""


class Family(Struct, frozen=True):
    """`kafka` is Kafka's name of the same number; `exporter` is where an alias is from."""

    name: str
    kind: MetricKind
    help: str
    labels: tuple[str, ...] = ()
    kafka: str = ""
    exporter: str = ""

    @property
    def unit(self) -> str:
        word = self.name.removesuffix(_TOTAL).rpartition("_")[2]
        return word if word in UNITS else ""

    def header(self, *, openmetrics: bool) -> str:
        """HELP and TYPE. In OpenMetrics a counter's family is named without `_total`."""
        name, kind = self.name, self.kind
        if openmetrics and kind is MetricKind.COUNTER:
            name = name.removesuffix(_TOTAL)
        elif openmetrics and kind is MetricKind.INFO:
            name = name.removesuffix("_info")
        elif kind is MetricKind.INFO:
            kind = MetricKind.GAUGE
        help_text = self.help.translate(_HELP_ESCAPES)
        unit = f"# UNIT {name} {self.unit}\n" if openmetrics and self.unit else ""
        return f"# HELP {name} {help_text}\n# TYPE {name} {kind.value}\n{unit}"

    # Portions of few samples. Families with many write their own lines, see group_series.py.

    def sample(self, value: Number) -> Portion:
        return Portion(self, (f"{self.name} {number(value)}\n",))

    def by_label(self, values: Mapping[str, Number]) -> Portion:
        """By the value of the only label."""
        return self.samples(((label,), value) for label, value in values.items())

    def samples(self, rows: Iterable[tuple[Sequence[str], Number]]) -> Portion:
        name = self.name
        return Portion(
            self,
            [f"{name}{{{self.labelled(values)}}} {number(value)}\n" for values, value in rows],
        )

    def histograms(self, histograms: Mapping[tuple[str, ...], Histogram]) -> Portion:
        """By the values of the labels; `()` where there are none."""
        lines: list[str] = []
        for values, histogram in histograms.items():
            lines += self._histogram(self.labelled(values), histogram)
        return Portion(self, lines)

    def _histogram(self, labels: str, histogram: Histogram) -> Iterator[str]:
        name, below = self.name, 0
        before = f"{labels}," if labels else ""
        # A copy: the journal's thread may count while we write, and the buckets have to add up.
        for bound, count in zip(
            (*histogram.bounds, math.inf), tuple(histogram.counts), strict=True
        ):
            below += count
            yield f'{name}_bucket{{{before}le="{number(float(bound))}"}} {below}\n'
        at = f"{{{labels}}}" if labels else ""
        yield f"{name}_count{at} {below}\n"
        yield f"{name}_sum{at} {number(histogram.total)}\n"

    def labelled(self, values: Sequence[str]) -> str:
        """The labels between the braces."""
        return ",".join(
            f'{label}="{escaped(value)}"' for label, value in zip(self.labels, values, strict=True)
        )


def escaped(value: str) -> str:
    """A label's value as written between the quotes. Lone surrogates, which UTF-8 has no bytes for,
    are spelled out, so that two ids never become the same series.
    """
    if not value.isascii():
        value = value.encode("utf-8", "backslashreplace").decode()
    return value.translate(_ESCAPES)


def number(value: Number) -> str:
    if isinstance(value, int):
        return str(int(value))
    if math.isfinite(value):
        return repr(value)
    return "NaN" if math.isnan(value) else ("+Inf" if value > 0 else "-Inf")


def declared(names: Mapping[str, object]) -> list[Family]:
    """The families among a module's names, in the order of their declarations."""
    return [value for value in names.values() if isinstance(value, Family)]

"""docs/metrics.md: what does each metric mean, and what does Kafka call it?

Made from the declarations of broker/metrics/; `make docs` writes the file, a test compares it.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from broker.metrics import kafka_exporter, kafka_lag_exporter
from broker.metrics.family import Family, declared
from broker.metrics.scrape import SUBJECTS

PATH: Final = Path(__file__).with_name("metrics.md")

INTRODUCTION: Final = """\
# Metrics

<!-- Made by `make docs` from broker/metrics/. -->

`GET /metrics` on the admin port (`rollcall.admin.listener`, 127.0.0.1:9180) answers in Prometheus'
text format, or in OpenMetrics for whoever prefers it, compressed with gzip where that is accepted.
`deploy/` has a Grafana dashboard and alert rules over these names.

- A scrape is written in slices: it never stalls the event loop, and scrapers that come together
  share one. Each sample is read at one instant, all of them within the time of the scrape.
- Series by group and partition are bounded: `rollcall.metrics.groups.max`,
  `rollcall.metrics.partitions.max`. Groups that lag most come first. What is left out is told by
  `rollcall_metrics_groups_left_out`, `rollcall_metrics_left_out_lag_records`,
  `rollcall_metrics_partitions_left_out` and `rollcall_metrics_topic_partitions_left_out`.
- Lag in records is exact at the instant of the scrape and never negative. Lag in seconds and
  statuses are as of the last sample (`rollcall.lag.interval.ms`).
- Counters begin at 0 when the daemon starts. Those by cause have a series for each cause from then
  on, so that no rate misses the first one.
- "Kafka" is what Kafka's JMX beans call the same number. Where Kafka has a rate or a percentile,
  use `rate()` or `histogram_quantile()` of ours.
"""


def metrics_text() -> str:
    parts = [INTRODUCTION]
    for subject in SUBJECTS:
        families = declared(vars(subject))
        question = (subject.__doc__ or "").partition("\n")[0]
        parts.append(f"## {question}\n")
        if subject in (kafka_exporter, kafka_lag_exporter):
            paragraphs = (subject.__doc__ or "").strip().split("\n\n")
            parts += [f"{paragraph}\n" for paragraph in paragraphs[1:]]
        parts.append(_table(families))
    return "\n".join(parts)


def _table(families: Iterable[Family]) -> str:
    families = list(families)
    with_kafka = any(family.kafka for family in families)
    heads = ["name", "type", "labels", "unit", "meaning", *(["Kafka"] if with_kafka else [])]
    lines = [_line(heads), _line(["---"] * len(heads))]
    for family in families:
        cells = [
            f"`{family.name}`",
            family.kind.value,
            ", ".join(family.labels),
            family.unit,
            family.help,
        ]
        lines.append(_line([*cells, family.kafka] if with_kafka else cells))
    return "\n".join(lines) + "\n"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    PATH.write_text(metrics_text())

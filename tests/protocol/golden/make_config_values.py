"""Record how Kafka 4.3.1 reads configuration values: what it takes, and its words of refusal.

    python -m tests.protocol.golden.make_config_values LIBS    # LIBS: the libs directory of a Kafka

Needs Java on the PATH; the tests do not. Each line of `config_values.jsonl` is a value read as a
type (ConfigDef.parseType), as a broker's key (AbstractKafkaConfig.CONFIG_DEF) or as a topic's
(LogConfig), with the value that came of it, as Kafka writes it, or the text of the refusal.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

HERE = Path(__file__).parent

_WORDS: Final = (
    "",
    "  ",
    " true ",
    "TRUE",
    "tRuE",
    "false",
    "fal\u017fe",
    "yes",
    "1",
    "true\u00a0",
)
_INTEGERS: Final = (
    "", " ", "0", "1", "-0", "+0", " +5 ", "00012", "1_000", "1.0", "1e3", "0x10", "1L", "--1",
    "+", "-", "1\u00a0", "\u00001\u0000", "\u0665", "\uff15", "\U0001d7d3", "32767", "32768",
    "-32768", "-32769", "2147483647", "2147483648", "-2147483648", "-2147483649",
    "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
)  # fmt: skip
_DOUBLES: Final = (
    "", " ", "0", "-0", "1", " +5 ", "0.5", "0.5d", "0.5F", "5e-1", ".5", "5.", "5.d", "1d", "1dd",
    "1e5f", "1e", "e1", "1_0.0", "1\u00a0", "\u0665", "0x1", "0x1p-1", "0x1.8p0D", "0x.8p0f",
    "0x1p99999", "-0x1p99999", "1e400", "-1e400", "1e-400", "nan", "inf", "infinity", "Infinity",
    "-Infinity", "1e7", "9999999", "1e-3", "0.00099", "1e-5", "12345678.9", "9223372036854775807",
    "1.7976931348623157e308",
)  # fmt: skip
_LISTS: Final = (
    "", "  ", "a", "a,b", " a , b\t,\nc ", "a,,b,", ",", "a,a", "a , a", "a\u00a0,\u00a0b",
    "\u0085a,b", "a\u000b,b", "a;b", "delete", "Delete", "delete,delete", "compact , delete",
    "delete,compact,delete", "delete,", ",delete", "delete,x,x",
)  # fmt: skip
_REPLICAS: Final = (
    "", "*", " * ", "*,*", "0:1", "0:1,0:1", "0:1, 1:2", "0:1,", ",", "0:1,*", "0:-1", "0 :1",
    "\u0660:1", "1",
)  # fmt: skip

TYPES: Final = {
    "BOOLEAN": _WORDS,
    "SHORT": _INTEGERS,
    "INT": _INTEGERS,
    "LONG": _INTEGERS,
    "DOUBLE": (*_DOUBLES, "NaN", "-NaN"),
    "LIST": _LISTS,
    "STRING": ("", " x ", "\u00a0x", "a,b"),
}
BROKER: Final = {
    "auto.create.topics.enable": _WORDS,
    "offsets.topic.replication.factor": _INTEGERS,
    "group.max.size": _INTEGERS,
    "log.cleaner.max.compaction.lag.ms": _INTEGERS,
    "log.cleaner.min.cleanable.ratio": _DOUBLES,
    "log.cleanup.policy": _LISTS,
    "compression.type": ("", " gzip ", "Gzip", "none"),
    "compression.gzip.level": ("-1", "0", "1", "9", "10", "-2", "x"),
    "compression.lz4.level": ("0", "17", "18"),
    "log.message.timestamp.type": ("CreateTime", "createtime"),
    "broker.rack": (" r ", ""),
    "group.coordinator.rebalance.protocols": (
        "",
        "classic",
        " classic , consumer ",
        "classic,classic",
        "CLASSIC",
        "classic,x",
        "share",
    ),
    "group.consumer.assignors": ("", "range", " range , uniform ", "range,range", "range,,x", ","),
    "group.consumer.migration.policy": (
        "",
        "DISABLED",
        "Upgrade",
        "downGRADE",
        " bidirectional ",
        "none",
    ),
    "group.consumer.regex.refresh.interval.ms": ("9999", "10000"),
}
TOPIC: Final = {
    "preallocate": _WORDS,
    "segment.bytes": _INTEGERS,
    "retention.ms": _INTEGERS,
    "min.cleanable.dirty.ratio": _DOUBLES,
    "cleanup.policy": _LISTS,
    "compression.type": ("", " gzip ", "Gzip", "none"),
    "compression.gzip.level": ("-1", "0", "1", "9", "10", "-2", "x"),
    "compression.zstd.level": ("-131073", "22", "23"),
    "message.timestamp.type": ("CreateTime", "createtime"),
    "leader.replication.throttled.replicas": _REPLICAS,
}
CASES: Final = tuple(
    (kind, name, value)
    for kind, table in (("type", TYPES), ("broker", BROKER), ("topic", TOPIC))
    for name, values in table.items()
    for value in values
)


def main(libs: Path) -> None:
    recorded = subprocess.run(
        ["java", "-cp", f"{libs}/*", HERE / "ConfigRecorder.java"],
        input="".join(f"{json.dumps(case)}\n" for case in CASES),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    (HERE / "config_values.jsonl").write_text(recorded)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

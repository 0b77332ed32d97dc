"""docs/configuration.md: what can be configured, how, and with what effect?

Prints the page from the table in broker/config.py, so that it cannot fall behind; the words around
the tables stand here.
"""

from broker.config import keys
from broker.config_key import Key, Value, as_text
from broker.kafka_names import kafka_names

_PAGE = """\
<!-- Printed by `rollcall config --markdown`; renew it with `make docs`. -->
# Configuration

Rollcall reads Kafka's own property names, with Kafka 4.3.1's types, ranges and defaults; where a
default differs, the table says so. Its own keys begin with `rollcall.`. `rollcall config` prints
the values in force and where each comes from.

## Where values come from

The strongest first:

1. the command line: `--set NAME=VALUE`, and `--data-dir` (`log.dirs`), `--listen` (`listeners`),
   `--advertise` (`advertised.listeners`), `--admin` (`rollcall.admin.listener`);
2. the environment, named as in Kafka's container images: `KAFKA_` and the name in upper case, with
   `_` for a dot, `__` for an underscore and `___` for a hyphen (`KAFKA_GROUP_MAX_SIZE`); own keys
   likewise, without `KAFKA_` (`ROLLCALL_FLUSH`);
3. the file of `--config` or `ROLLCALL_CONFIG`: a `.toml` whose keys are the property names, or a
   `server.properties` as Java reads it;
4. the default.

In TOML a dotted name may be written as it is, in a table, or in quotes. Quotes are needed where
one name is the beginning of another, because TOML cannot hold both otherwise:

```toml
group.initial.rebalance.delay.ms = 0
rollcall.flush = "commit"

"max.connections" = 1000
"max.connections.per.ip" = 50
```

## What is refused, and what is passed over

- A name that nobody knows, a value of the wrong type or out of range: `rollcall` ends with exit
  code 2 and one line that names the key. A `KAFKA_` or `ROLLCALL_` variable that is no
  configuration gets a warning if it resembles a name, and is ignored otherwise: images,
  Kubernetes and scripts set such variables for themselves.
- A name that Kafka knows and Rollcall has no use for is accepted, with one warning.
- Except where passing over it would weaken security or durability: `ssl.*`, `sasl.*`, listeners
  that are not PLAINTEXT, `authorizer.class.name` and its like, more than one replica
  (`min.insync.replicas`, `*.replication.factor`), `log.flush.interval.ms`, remote storage. With
  those the daemon does not start.

## Kafka's keys

Durations are in ms and sizes in bytes unless the name says otherwise.

{kafkas}
## Rollcall's own keys

{own}"""


def reference() -> str:
    """The whole page."""
    rows = sorted(keys().values(), key=lambda key: key.name)
    return _PAGE.format(
        kafkas=_table([key for key in rows if not key.name.startswith("rollcall.")]),
        own=_table([key for key in rows if key.name.startswith("rollcall.")]),
    )


def _table(rows: list[Key]) -> str:
    lines = ["| name | type | default | range | meaning |", "| --- | --- | --- | --- | --- |"]
    lines.extend(
        f"| `{key.name}` | {key.rule.kind.value} | {_default(key)} | {key.rule.range} "
        f"| {key.rule.doc} |"
        for key in rows
    )
    return "\n".join(lines) + "\n"


def _default(key: Key) -> str:
    """The default; Kafka's beside it where ours differs."""
    ours = _code(key.default)
    kafkas = kafka_names("broker").get(key.name)
    if kafkas is None or kafkas.default in (None, as_text(key.default)):
        return ours
    return f"{ours} (Kafka: {_code(kafkas.default)})"


def _code(value: Value) -> str:
    text = as_text(value)
    return f"`{text}`" if text else "not set"

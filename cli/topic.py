"""`rollcall topic`: the topics of any Kafka cluster.

Kafka's counterpart: `TopicCommand`.
"""

from pathlib import Path

import click

from cli.cluster_options import cluster_options, open_cluster, print_json
from cli.groups import Commands
from cli.tables import cell, say, table

_INT32_MAX = 2**31 - 1


class TopicCommands(Commands):
    opens_logs = False


@click.group(cls=TopicCommands)
def topic() -> None:
    """List, create, describe, alter and delete topics of a running cluster, Rollcall or Kafka."""


@topic.command(name="list")
@cluster_options
@click.option("--exclude-internal", is_flag=True, help="Without topics such as __consumer_offsets.")
def list_topic_command(
    *, bootstrap: str | None, command_config: Path | None, as_json: bool, exclude_internal: bool
) -> None:
    """All topics, and how many partitions each has."""
    from client.topics import list_topics

    with open_cluster(bootstrap, command_config) as cluster:
        found = [t for t in list_topics(cluster) if not (exclude_internal and t.internal)]
    if as_json:
        print_json(
            [{"topic": t.topic, "partitions": t.partitions, "internal": t.internal} for t in found]
        )
        return
    rows = [(t.topic, str(t.partitions), "yes" if t.internal else "no") for t in found]
    click.echo(table(("TOPIC", "#PARTITIONS", "INTERNAL"), rows))


_config_option = click.option(
    "--config",
    "pairs",
    metavar="NAME=VALUE",
    multiple=True,
    help="A config of the topic, such as retention.ms=60000. May be repeated.",
)


@topic.command(name="create")
@click.argument("name", metavar="NAME")
@cluster_options
@click.option(
    "--partitions",
    type=click.IntRange(1, _INT32_MAX),
    help="How many.  [default: num.partitions of the broker]",
)
@click.option(
    "--replication-factor",
    type=click.IntRange(1, 2**15 - 1),
    help="Copies of each partition.  [default: that of the broker]",
)
@_config_option
@click.option("--if-not-exists", is_flag=True, help="An existing topic is no error.")
def create_topic_command(
    *,
    name: str,
    bootstrap: str | None,
    command_config: Path | None,
    as_json: bool,
    partitions: int | None,
    replication_factor: int | None,
    pairs: tuple[str, ...],
    if_not_exists: bool,
) -> None:
    """Create a topic."""
    from client.errors import RequestRefused
    from client.topics import BROKER_DEFAULT, create_new_topic
    from protocol.names import ErrorCode

    configs = _configs(pairs)
    is_new = True
    with open_cluster(bootstrap, command_config) as cluster:
        try:
            create_new_topic(
                cluster,
                name,
                partitions or BROKER_DEFAULT,
                replication_factor or BROKER_DEFAULT,
                configs,
            )
        except RequestRefused as refused:
            if not if_not_exists or refused.error_code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise
            is_new = False
    if as_json:
        print_json({"topic": name, "created": is_new})
    else:
        say([f"Created topic {name}." if is_new else f"Topic {name} exists already."])


def _configs(pairs: tuple[str, ...]) -> dict[str, str]:
    configs: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise click.UsageError(f"--config {pair}: give NAME=VALUE")
        configs[key.strip()] = value
    return configs


@topic.command(name="describe")
@click.argument("name", metavar="NAME")
@cluster_options
def describe_topic_command(
    *, name: str, bootstrap: str | None, command_config: Path | None, as_json: bool
) -> None:
    """One topic: partitions, leaders, offsets and its own configs."""
    from client.topics import describe_topic

    with open_cluster(bootstrap, command_config) as cluster:
        found = describe_topic(cluster, name)
    if as_json:
        print_json(
            {
                "topic": found.topic,
                "topic_id": found.topic_id,
                "internal": found.internal,
                "partitions": [
                    {
                        "partition": p.partition,
                        "leader": p.leader,
                        "replicas": list(p.replicas),
                        "isr": list(p.isr),
                        "log_start_offset": p.log_start_offset,
                        "log_end_offset": p.log_end_offset,
                    }
                    for p in found.partitions
                ],
                "configs": dict(found.configs),
            }
        )
        return
    configs = ", ".join(f"{key}={cell(value)}" for key, value in found.configs.items())
    head = f"Topic {found.topic}: {len(found.partitions)} partitions, id {found.topic_id}"
    say([f"{head}, configs: {configs or 'none of its own'}"])
    click.echo()
    rows = [
        (
            str(p.partition),
            cell(p.leader),
            ",".join(map(str, p.replicas)),
            ",".join(map(str, p.isr)),
            cell(p.log_start_offset),
            cell(p.log_end_offset),
        )
        for p in found.partitions
    ]
    header = ("PARTITION", "LEADER", "REPLICAS", "ISR", "LOG-START-OFFSET", "LOG-END-OFFSET")
    click.echo(table(header, rows))


@topic.command(name="alter")
@click.argument("name", metavar="NAME")
@cluster_options
@click.option(
    "--partitions",
    type=click.IntRange(1, _INT32_MAX),
    help="How many the topic is to have; more than it has.",
)
@_config_option
@click.option(
    "--delete-config", "removed", metavar="NAME", multiple=True, help="Back to the default."
)
def alter_topic_command(
    *,
    name: str,
    bootstrap: str | None,
    command_config: Path | None,
    as_json: bool,
    partitions: int | None,
    pairs: tuple[str, ...],
    removed: tuple[str, ...],
) -> None:
    """Add partitions to a topic, or change its configs."""
    from client.topics import add_partitions, alter_configs

    changed = _configs(pairs)
    if partitions is None and not changed and not removed:
        raise click.UsageError("give --partitions, --config or --delete-config")
    with open_cluster(bootstrap, command_config) as cluster:
        if changed or removed:
            alter_configs(cluster, name, changed, removed)
        if partitions is not None:
            add_partitions(cluster, name, partitions)
    if as_json:
        print_json(
            {
                "topic": name,
                "partitions": partitions,
                "configs": changed,
                "deleted_configs": list(removed),
            }
        )
    else:
        say([f"Altered topic {name}."])


@topic.command(name="delete")
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@cluster_options
def delete_topic_command(
    *, names: tuple[str, ...], bootstrap: str | None, command_config: Path | None, as_json: bool
) -> None:
    """Delete topics with their records."""
    from client.topics import delete_topic

    deleted: list[str] = []
    with open_cluster(bootstrap, command_config) as cluster:
        try:
            for name in names:
                delete_topic(cluster, name)
                deleted.append(name)
        finally:
            if as_json:
                print_json({"deleted": deleted})
            elif deleted:
                say(f"Deleted topic {name}." for name in deleted)

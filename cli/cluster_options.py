"""Cluster options: how the commands of groups and topics reach a cluster, and how they answer."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from client.cluster import Cluster

DEFAULT_BOOTSTRAP = "127.0.0.1:9092"

CommandFunction = TypeVar("CommandFunction", bound=Callable[..., object])

_OPTIONS = (
    click.option(
        "--bootstrap",
        metavar="HOST:PORT[,HOST:PORT...]",
        envvar="ROLLCALL_BOOTSTRAP",
        show_envvar=True,
        help="Any broker of the cluster, Rollcall or Kafka.  [default: bootstrap.servers of "
        f"--command-config, else {DEFAULT_BOOTSTRAP}]",
    ),
    click.option(
        "--command-config",
        metavar="FILE",
        type=click.Path(path_type=Path),
        envvar="ROLLCALL_COMMAND_CONFIG",
        show_envvar=True,
        help="Client properties, as for Kafka's tools: security.protocol, ssl.*, sasl.*.",
    ),
    click.option("--json", "as_json", is_flag=True, help="Print one JSON document, for programs."),
)


def cluster_options(command: CommandFunction) -> CommandFunction:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def open_cluster(bootstrap: str | None, command_config: Path | None) -> "Cluster":
    """Raises ClusterFault, BadClientProperties."""
    from client.cluster import Cluster
    from client.errors import ClusterFault
    from client.properties import ClientProperties, read_client_properties

    properties = ClientProperties()
    if command_config is not None:
        properties = read_client_properties(command_config)
    address = bootstrap or properties.bootstrap or DEFAULT_BOOTSTRAP
    try:
        return Cluster(address, properties)
    except ClusterFault as fault:
        if "Connection refused" not in str(fault):
            raise
        remedy = "start it (`rollcall serve`), or give a broker's address with --bootstrap"
        raise ClusterFault(f"nobody answers at {address}: {remedy}") from None


def print_json(document: object) -> None:
    click.echo(json.dumps(document, indent=2))

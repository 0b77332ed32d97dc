"""Cluster view: what the data plane knows of its node: ids, rack, addresses, configuration.

`broker/cluster_view.py` implements `ClusterView`; tests have their own. The data plane knows only
the address that a client may be given, not how the client is connected.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from msgspec import Struct

from protocol.config_def import ConfigType
from protocol.names import ConfigSource
from seams.reply_token import ReplyToken
from topics.broker_properties import BrokerProperties, ConfigSynonym


class Node(NamedTuple):
    """The node's id and its address by one listener."""

    node_id: int
    host: str
    port: int


class BrokerConfig(Struct, frozen=True):
    """One key of the broker's configuration, for DescribeConfigs."""

    name: str
    value: str | None
    config_type: ConfigType
    synonyms: tuple[ConfigSynonym, ...] = ()
    """Where the value is set, the strongest first; the last one is the default, if there is one."""
    documentation: str | None = None
    is_sensitive: bool = False
    is_read_only: bool = True

    @property
    def source(self) -> ConfigSource:
        return self.synonyms[0].source if self.synonyms else ConfigSource.DEFAULT_CONFIG


class LogDirSpace(NamedTuple):
    """The volume that the log directory is on; usable is what an unprivileged process may write."""

    total_bytes: int
    usable_bytes: int


class ClusterView(Protocol):
    @property
    def cluster_id(self) -> str: ...

    @property
    def node_id(self) -> int: ...

    @property
    def rack(self) -> str | None: ...

    @property
    def transaction_version(self) -> int:
        """The finalized level of that feature."""

    @property
    def log_dir(self) -> str:
        """The absolute path of the log directory."""

    def log_dir_space(self) -> LogDirSpace:
        """For any thread. Raises OSError."""

    def endpoint(self, token: ReplyToken) -> Node:
        """The node's address by the listener that received the request."""

    def broker_configs(self, properties: BrokerProperties) -> Sequence[BrokerConfig]:
        """Every key of the broker, with its value."""

    def cluster_configs(self, properties: BrokerProperties) -> Sequence[BrokerConfig]:
        """The dynamic configs of the whole cluster."""

"""Quota limits: which quota holds for a user and a client id, and with whom they share it.

Kafka's order: (user, client id), (user, default client), user, (default user, client id), (default
user, default client), default user, client id, default client. A quota of a user alone is shared by
all client ids of that user, one of a client id alone by all users; a default gives each user or
client id a measure of its own. Each kind of quota has a table of its own. Pure.
Kafka's counterpart: `DefaultQuotaCallback` of `ClientQuotaManager`.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from ipaddress import IPv6Address, ip_address
from typing import Final

from msgspec import Struct

ABSENT: Final = ""
"""In place of a name that an entity or a measure does not have. No name is empty."""

DEFAULT_ENTITY: Final = None
"""In place of a name: the default of all that have no quota of their own."""

UNLIMITED: Final = float("inf")

ENTITY_NAME_MAX: Final = 1_024
"""Characters of a user's name or a client id in a quota, and in the key of a measure."""

ClientEntity = tuple[str | None, str | None]
"""The user and the client id of a quota, each a name, ABSENT or DEFAULT_ENTITY."""

SharedBy = tuple[str, str]
"""The user and the client id of a measure, each a name or ABSENT. Kafka's metric tags."""


class QuotaKey(StrEnum):
    """The names of quotas in requests."""

    PRODUCE = "producer_byte_rate"
    FETCH = "consumer_byte_rate"
    REQUEST = "request_percentage"
    CONTROLLER_MUTATION = "controller_mutation_rate"
    CONNECTION_CREATION = "connection_creation_rate"


CLIENT_QUOTA_KEYS: Final = frozenset(QuotaKey) - {QuotaKey.CONNECTION_CREATION}
"""Of users and client ids; CONNECTION_CREATION is of addresses."""


class EntityType(StrEnum):
    USER = "user"
    CLIENT_ID = "client-id"
    IP = "ip"


QuotaEntityNames = tuple[tuple[str, str | None], ...]
"""An entity as it is stored: (type, name or DEFAULT_ENTITY) of each part, sorted by type."""

QuotaTable = Mapping[QuotaEntityNames, Mapping[str, float]]
"""All quotas: by entity and by key."""


class ClientLimits(Struct, frozen=True):
    """The quotas of one kind, by entity."""

    by_entity: Mapping[ClientEntity, float]
    has_clients: bool
    has_users: bool
    has_both: bool

    @property
    def is_empty(self) -> bool:
        return not self.by_entity

    def shared_by(self, user: str, client_id: str) -> SharedBy:
        """Whose measure counts what this user does with this client id."""
        if not self.has_users and not self.has_both:
            return ABSENT, client_id
        if not self.has_clients:
            if not self.has_both:
                return user, ABSENT
            if not self.has_users:
                return user, client_id
        found = self.by_entity
        if (user, client_id) in found or (user, DEFAULT_ENTITY) in found:
            return user, client_id
        if (user, ABSENT) in found:
            return user, ABSENT
        if (DEFAULT_ENTITY, client_id) in found or (DEFAULT_ENTITY, DEFAULT_ENTITY) in found:
            return user, client_id
        return (user, ABSENT) if (DEFAULT_ENTITY, ABSENT) in found else (ABSENT, client_id)

    def limit(self, shared_by: SharedBy) -> float:
        """The quota of a measure."""
        user, client_id = shared_by
        if user and client_id:
            order = (
                (user, client_id),
                (user, DEFAULT_ENTITY),
                (DEFAULT_ENTITY, client_id),
                (DEFAULT_ENTITY, DEFAULT_ENTITY),
            )
            return self._first(order)
        if user:
            return self._first(((user, ABSENT), (DEFAULT_ENTITY, ABSENT)))
        if client_id:
            return self._first(((ABSENT, client_id), (ABSENT, DEFAULT_ENTITY)))
        return UNLIMITED

    def _first(self, order: Iterable[ClientEntity]) -> float:
        for entity in order:
            bound = self.by_entity.get(entity)
            if bound is not None:
                return bound
        return UNLIMITED


def client_limits(by_entity: Mapping[ClientEntity, float]) -> ClientLimits:
    return ClientLimits(
        by_entity,
        has_clients=any(user == ABSENT for user, _ in by_entity),
        has_users=any(client_id == ABSENT for _, client_id in by_entity),
        has_both=any(ABSENT not in entity for entity in by_entity),
    )


NO_LIMITS: Final = client_limits({})


class IpLimits(Struct, frozen=True):
    """New connections per second, by address."""

    by_address: Mapping[str, float]
    default: float = UNLIMITED

    @property
    def is_empty(self) -> bool:
        return not self.by_address and self.default == UNLIMITED

    def limit(self, address: str) -> float:
        return self.by_address.get(address, self.default)


def limits_of_key(table: QuotaTable, key: QuotaKey) -> ClientLimits:
    """The quotas of one kind for users and client ids."""
    by_entity: dict[ClientEntity, float] = {}
    for names, values in table.items():
        entity = dict(names)
        if key in values and EntityType.IP not in entity:
            user = entity.get(EntityType.USER, ABSENT)
            by_entity[user, entity.get(EntityType.CLIENT_ID, ABSENT)] = values[key]
    return client_limits(by_entity)


def ip_limits(table: QuotaTable) -> IpLimits:
    """Whole numbers, as in Kafka."""
    by_address: dict[str, float] = {}
    default = UNLIMITED
    for names, values in table.items():
        bound = values.get(QuotaKey.CONNECTION_CREATION)
        if bound is None or EntityType.IP not in (entity := dict(names)):
            continue
        address = entity[EntityType.IP]
        if address is None:
            default = float(int(bound))
        else:
            by_address[plain_address(address) or address] = float(int(bound))
    return IpLimits(by_address, default)


def plain_address(text: str) -> str | None:
    """An address as connections have it; None: it is none."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(address)

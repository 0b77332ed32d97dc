"""Random use of quotas: what some clients do under quotas that change, from a seed.

The steps do not depend on their results, so that Kafka's classes and ours can go through the same.
"""

from collections.abc import Iterator
from random import Random

from msgspec import Struct

from security.quotas.limits import ABSENT, DEFAULT_ENTITY, ClientEntity

START_MS = 1_700_000_000_000
USERS = ("amy", "ben")
CLIENT_IDS = ("app", "etl", "")
STEPS = 60
SEEDS = range(80)


class SetQuota(Struct, frozen=True):
    """`bound` None: it is removed."""

    kind: str
    entity: ClientEntity
    bound: float | None


class Use(Struct, frozen=True):
    """A negative value is taken back, without a throttle."""

    kind: str
    user: str
    client_id: str
    value: float


class AskWindow(Struct, frozen=True):
    """How much may be fetched at once?"""

    user: str
    client_id: str


KINDS = ("produce", "request", "strict", "permissive")
Step = tuple[int, SetQuota | Use | AskWindow]


def steps(seed: int) -> Iterator[Step]:
    """(time, step)."""
    random = Random(seed)
    now_ms = START_MS + random.randrange(100_000)
    entities = [
        (user, client_id)
        for user in (*USERS, DEFAULT_ENTITY, ABSENT)
        for client_id in ("app", "etl", DEFAULT_ENTITY, ABSENT)
        if (user, client_id) != (ABSENT, ABSENT)
    ]
    known = random.sample(entities, random.randint(1, len(entities)))
    for _ in range(random.randint(2, 8)):
        yield now_ms, _quota(random, known, removable=False)
    for _ in range(STEPS):
        now_ms += _pause_ms(random)
        kind = random.random()
        if kind < 0.12:
            yield now_ms, _quota(random, known, removable=True)
        elif kind < 0.2:
            yield now_ms, AskWindow(random.choice(USERS), random.choice(CLIENT_IDS))
        else:
            yield now_ms, _use(random)


def _pause_ms(random: Random) -> int:
    longest = random.choices((0, 50, 1_500, 12_000, 40_000), (30, 30, 30, 8, 2))[0]
    return random.randint(0, longest)


def _quota(random: Random, entities: list[ClientEntity], *, removable: bool) -> SetQuota:
    bound = random.choice((1.0, 0.5, 10.0, 123.25, 1_000.0, 100_000.0))
    is_removed = removable and random.random() < 0.3
    # The two kinds of mutations share their quotas.
    kind = random.choice(("produce", "request", "strict"))
    return SetQuota(kind, random.choice(entities), None if is_removed else bound)


def _use(random: Random) -> Use:
    kind = random.choice(KINDS)
    value = {
        "produce": lambda: float(random.randint(1, 20_000)),
        "request": lambda: random.randint(1_000, 900_000_000) * 1e-7,
    }.get(kind, lambda: float(random.randint(1, 40)))()
    if kind == "produce" and random.random() < 0.1:
        value = -value
    return Use(kind, random.choice(USERS), random.choice(CLIENT_IDS), value)

"""ACLs: what does a decision cost, kept and searched, and a change? Best µs of several runs.

    .venv/bin/python bench/acls.py [--acls N] [--repeats N]

The table has N entries: half of them literal, half prefixed, for 100 users. A search is asked for
a topic that a literal and a prefixed entry apply to, for one with 50 prefixes of its name, and for
one that no entry is about. One core, no I/O.
"""

import argparse
from collections.abc import Callable
from timeit import repeat

from protocol.acl_codes import AclOperation, PatternType, PermissionType, ResourceType
from protocol.names import GroupId
from seams.authorizer import ALLOW_ALL
from seams.principal import Principal
from seams.reply_token import ReplyToken
from security.acls.authorizer import AclAuthorizer
from security.acls.entry import Acl, AclFilter
from topics.acl_store import _dump

RUNS_S = 0.05
USERS = 100
NESTED = "orders-of-every-country-and-of-every-day-of-the-year-2026"
AMY = ReplyToken(0, "client", "/10.0.0.1", Principal("User", "user-7"))
READ, TOPIC = AclOperation.READ, ResourceType.TOPIC


def entry(name: str, user: int, pattern_type: PatternType) -> Acl:
    principal = f"User:user-{user}"
    return Acl(TOPIC, pattern_type, name, principal, "*", READ, PermissionType.ALLOW)


def entries(count: int) -> list[Acl]:
    nested = [entry(NESTED[:end], 7, PatternType.PREFIXED) for end in range(5, 55)]
    literal = [entry(f"t{n}", n % USERS, PatternType.LITERAL) for n in range(count // 2)]
    rest = count - len(nested) - len(literal)
    prefixed = [entry(f"t{n}-", n % USERS, PatternType.PREFIXED) for n in range(rest)]
    return [*nested, *literal, *prefixed]


def best_us(run: Callable[[], object], repeats: int) -> float:
    times = 1
    while (took := min(repeat(run, number=times, repeat=1))) < RUNS_S:
        times = max(times * 2, int(times * RUNS_S / max(took, 1e-9)))
    return min(repeat(run, number=times, repeat=repeats)) / times * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--acls", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    acls = entries(options.acls)
    authorizer = AclAuthorizer()
    authorizer.change(acls, ())
    table = authorizer.acls
    extra = [entry("t7", 7, PatternType.PREFIXED)]

    def searched(name: str) -> Callable[[], object]:
        return lambda: table.allows("User:user-7", "10.0.0.1", READ, TOPIC, name)

    def changed() -> None:
        authorizer.change(extra, ())
        authorizer.change((), extra)

    group = GroupId("g")
    matching = AclFilter(TOPIC, PatternType.MATCH, "t7-x")
    for what, run in (
        ("without an authorizer", lambda: ALLOW_ALL.may_read_group(AMY, group)),
        ("kept decision", lambda: authorizer.allows(AMY, READ, TOPIC, "t7")),
        ("kept, as a heartbeat asks", lambda: authorizer.may_read_group(AMY, group)),
        ("searched: literal", searched("t7")),
        ("searched: prefixed", searched("t107-x")),
        ("searched: 50 prefixes", searched(NESTED)),
        ("searched: no entry", searched("zebra")),
        ("searched: any topic", lambda: table.allows_any("User:user-7", "h", READ, TOPIC)),
        ("add and remove an entry", changed),
        ("filter all entries", lambda: [acl for acl in table if matching.matches(acl)]),
        ("write all entries", lambda: _dump(table)),
    ):
        print(f"{what:<28}{best_us(run, options.repeats):>12,.2f} µs")
    print(f"{len(table):,} entries")


if __name__ == "__main__":
    main()

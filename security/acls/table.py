"""ACL table: the entries, indexed so that a decision costs little with thousands of them.

A pattern has, for each (principal, host), two sets of operations as bit fields: the allowed and
the denied ones. A decision reads the literal pattern of the resource, the wildcard, and the
prefixed patterns that its name begins with (`PrefixIndex`). The order of entries has no effect: a
DENY that fits wins over every ALLOW. Kafka's counterparts: `StandardAuthorizerData`, `AclCache`;
for `allows_any` the default of `Authorizer.authorizeByResourceType`.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from protocol.acl_codes import AclOperation, PatternType, PermissionType, ResourceType
from security.acls.entry import WILDCARD, WILDCARD_PRINCIPAL, Acl
from security.acls.prefix_index import PrefixIndex

_PROBE: Final = "hardcode"
"""Kafka asks for this resource first when any of a type will do. The name is an accident, but a
client can see its effect: with `allow.everyone.if.no.acl.found`, and if an ACL names it."""

_IMPLYING: Final = {
    AclOperation.DESCRIBE: (
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.DELETE,
        AclOperation.ALTER,
    ),
    AclOperation.DESCRIBE_CONFIGS: (AclOperation.ALTER_CONFIGS,),
}


def _bits(*operations: AclOperation) -> int:
    return sum(1 << operation for operation in set(operations))


_DENYING: Final = {each: _bits(each, AclOperation.ALL) for each in AclOperation}
"""The operations of a DENY that forbids this one. Those of an ALLOW are more."""

_ALLOWING: Final = {each: _DENYING[each] | _bits(*_IMPLYING.get(each, ())) for each in AclOperation}


class _Rights(NamedTuple):
    allowed: int = 0
    denied: int = 0


_NO_RIGHTS: Final = _Rights()

_Subject = tuple[str, str]  # (principal, host)
_Pattern = tuple[PatternType, str]


class AclTable:
    """Not thread-safe: used on one thread."""

    def __init__(self, *, allows_without_acl: bool = False) -> None:
        """`allows_without_acl`: the answer for a resource that no entry is about."""
        self.allows_without_acl = allows_without_acl
        self._acls: dict[Acl, None] = {}  # a set that keeps the order
        self._by_pattern: dict[tuple[ResourceType, PatternType, str], dict[_Subject, _Rights]] = {}
        self._by_subject: dict[tuple[ResourceType, _Subject], dict[_Pattern, _Rights]] = {}
        self._prefixes = {kind: PrefixIndex() for kind in ResourceType}

    def __len__(self) -> int:
        return len(self._acls)

    def __contains__(self, acl: Acl) -> bool:
        return acl in self._acls

    def __iter__(self) -> Iterator[Acl]:
        """In the order in which they were added."""
        return iter(self._acls)

    def change(self, added: Iterable[Acl], removed: Iterable[Acl]) -> None:
        """Remove entries, then add others. An entry that is there, or not, is no error."""
        for acl in removed:
            if acl in self._acls:
                del self._acls[acl]
                self._index(acl, is_there=False)
        for acl in added:
            if acl not in self._acls:
                self._acls[acl] = None
                self._index(acl, is_there=True)

    def _index(self, acl: Acl, *, is_there: bool) -> None:
        kind, pattern = acl.resource_type, (acl.pattern_type, acl.name)
        subject = (acl.principal, acl.host)
        of_pattern = self._by_pattern.setdefault((kind, *pattern), {})
        of_subject = self._by_subject.setdefault((kind, subject), {})
        allowed, denied = of_pattern.get(subject, _NO_RIGHTS)
        if acl.permission is PermissionType.ALLOW:
            allowed ^= 1 << acl.operation
        else:
            denied ^= 1 << acl.operation
        if allowed or denied:
            of_pattern[subject] = of_subject[pattern] = _Rights(allowed, denied)
        else:
            del of_pattern[subject], of_subject[pattern]
        if not of_subject:
            del self._by_subject[kind, subject]
        if not of_pattern:
            del self._by_pattern[kind, *pattern]
        if acl.pattern_type is PatternType.PREFIXED:
            if not of_pattern:
                self._prefixes[kind].remove(acl.name)
            elif is_there:
                self._prefixes[kind].add(acl.name)

    # Decisions

    def allows(
        self,
        principal: str,
        host: str,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
    ) -> bool:
        """Whether the principal, from this host, may do it to the resource."""
        allowing, denying = _ALLOWING[operation], _DENYING[operation]
        subjects = _subjects(principal, host)
        has_acls = is_allowed = False
        for rights_of in self._patterns_of(resource_type, name):
            has_acls = True
            for subject in subjects:
                rights = rights_of.get(subject)
                if rights is not None:
                    if rights.denied & denying:
                        return False
                    is_allowed = is_allowed or rights.allowed & allowing != 0
        return is_allowed if has_acls else self.allows_without_acl

    def _patterns_of(self, kind: ResourceType, name: str) -> Iterator[dict[_Subject, _Rights]]:
        by_pattern = self._by_pattern
        literal = by_pattern.get((kind, PatternType.LITERAL, name))
        if literal is not None:
            yield literal
        # Kafka's search passes over the wildcard where the name itself begins with its asterisk.
        if not name.startswith(WILDCARD):
            wildcard = by_pattern.get((kind, PatternType.LITERAL, WILDCARD))
            if wildcard is not None:
                yield wildcard
        for prefix in self._prefixes[kind].prefixes_of(name):
            yield by_pattern[kind, PatternType.PREFIXED, prefix]

    def allows_any(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType
    ) -> bool:
        """Whether there is a resource that the principal may do it to, as far as entries show.

        As in Kafka no operation implies another one here.
        """
        if self.allows(principal, host, operation, resource_type, _PROBE):
            return True
        bits = _DENYING[operation]
        allowed: set[_Pattern] = set()
        denied: set[_Pattern] = set()
        for subject in _subjects(principal, host):
            for pattern, rights in self._by_subject.get((resource_type, subject), {}).items():
                if rights.denied & bits:
                    denied.add(pattern)
                if rights.allowed & bits:
                    allowed.add(pattern)
        everything = (PatternType.LITERAL, WILDCARD)
        if everything in denied:
            return False
        if everything in allowed:
            return True
        return _has_undenied(allowed, denied)


def _subjects(principal: str, host: str) -> tuple[_Subject, ...]:
    """Those of the entries that are about this client."""
    return (
        (principal, host),
        (principal, WILDCARD),
        (WILDCARD_PRINCIPAL, host),
        (WILDCARD_PRINCIPAL, WILDCARD),
    )


def _has_undenied(allowed: set[_Pattern], denied: set[_Pattern]) -> bool:
    """Whether a pattern is allowed of which not everything is denied by its name or a prefix."""
    denied_prefixes = PrefixIndex()
    for pattern_type, name in denied:
        if pattern_type is PatternType.PREFIXED:
            denied_prefixes.add(name)
    return any(
        (pattern_type is PatternType.PREFIXED or (pattern_type, name) not in denied)
        and not any(denied_prefixes.prefixes_of(name))
        for pattern_type, name in allowed
    )

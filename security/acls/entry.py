"""ACL entry: one permission of one principal on one resource, or on those with a prefix.

Kafka's counterparts: `StandardAcl`, `AclBinding`.
"""

from typing import Final, TypeVar

from msgspec import Struct

from protocol.acl_codes import AclOperation, PatternType, PermissionType, ResourceType

WILDCARD: Final = "*"
"""As the name of a LITERAL pattern: every resource. As a host: every host."""

WILDCARD_PRINCIPAL: Final = "User:*"

Code = TypeVar("Code", AclOperation, PatternType, PermissionType, ResourceType)


class Acl(Struct, frozen=True):
    """`principal` is TYPE:NAME. `host` is an address as Java writes it; there are no ranges."""

    resource_type: ResourceType
    pattern_type: PatternType
    name: str
    principal: str
    host: str
    operation: AclOperation
    permission: PermissionType

    def __str__(self) -> str:
        pattern = f"{self.resource_type.name} {self.pattern_type.name} {self.name}"
        subject = f"{self.permission.name} {self.principal} from {self.host}"
        return f"{subject} {self.operation.name} on {pattern}"


class AclFilter(Struct, frozen=True):
    """Which entries a request is about. None, and ANY, fit every value.

    `pattern_type` ANY compares the name as it is written. MATCH asks for the patterns that apply to
    the resource `name`: the literal one, the wildcard, and the prefixes.
    Kafka's counterparts: `AclBindingFilter`, `ResourcePatternFilter`, `AccessControlEntryFilter`.
    """

    resource_type: ResourceType = ResourceType.ANY
    pattern_type: PatternType = PatternType.ANY
    name: str | None = None
    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission: PermissionType = PermissionType.ANY

    def matches(self, acl: Acl) -> bool:
        return (
            self.resource_type in (ResourceType.ANY, acl.resource_type)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (AclOperation.ANY, acl.operation)
            and self.permission in (PermissionType.ANY, acl.permission)
            and self._matches_pattern(acl)
        )

    def _matches_pattern(self, acl: Acl) -> bool:
        if self.pattern_type is PatternType.MATCH and self.name is not None:
            if acl.pattern_type is PatternType.PREFIXED:
                return self.name.startswith(acl.name)
            return acl.name in (self.name, WILDCARD)
        return self.name in (None, acl.name) and (
            self.pattern_type in (PatternType.ANY, PatternType.MATCH, acl.pattern_type)
        )


def code_of(codes: type[Code], number: int) -> Code:
    """The code with this number on the wire; UNKNOWN for one that a later version may know."""
    try:
        return codes(number)
    except ValueError:
        return codes(0)

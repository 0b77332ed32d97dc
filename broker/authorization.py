"""Authorization parts: makes the authorizer and the store of its ACLs, for build.py."""

from broker.observe.observer import Observer
from config.keys import Config
from security.acls.authorizer import AclAuthorizer, OnRefusal
from storage.open import Storage
from topics.acl_store import AclStore


def make_acls(
    config: Config,
    storage: Storage,
    observe: Observer,
    on_refusal: OnRefusal,
    *,
    repair: bool,
) -> AclStore | None:
    """None without `authorizer.class.name`: then stored ACLs are not even read.

    Raises Corrupt, NewerFormat, OSError.
    """
    if not config.authorizer_class_name:
        return None
    authorizer = AclAuthorizer(
        config.super_user_principals,
        allows_without_acl=config.allow_everyone_if_no_acl_found,
        on_refusal=on_refusal,
    )
    return AclStore(
        storage.acls_file,
        authorizer,
        observe,
        acls_max=config.rollcall_acls_max,
        repair=repair,
    )

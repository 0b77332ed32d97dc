"""Authorization keys: which authorizer, and who is a super user."""

import pytest

from config.keys import Config, Origin
from config.sources import ConfigError, Setting, load_config
from seams.principal import Principal
from security.acls.authorizer import STANDARD_AUTHORIZER


def given(**values: str) -> Config:
    """Names have _ for dots."""
    origin = Origin("command line", "--set")
    return load_config(
        command_line=[Setting(k.replace("_", "."), v, origin) for k, v in values.items()]
    )


def test_without_the_key_there_is_no_authorizer() -> None:
    assert Config().authorizer_class_name == ""
    assert given(authorizer_class_name="").authorizer_class_name == ""


def test_kafkas_class_selects_the_authorizer() -> None:
    config = given(
        authorizer_class_name=STANDARD_AUTHORIZER,
        super_users="User:admin;User:CN=ops,O=x",
        allow_everyone_if_no_acl_found="true",
    )
    assert config.authorizer_class_name == STANDARD_AUTHORIZER
    assert config.super_user_principals == {
        Principal("User", "admin"),
        Principal("User", "CN=ops,O=x"),
    }
    assert config.allow_everyone_if_no_acl_found
    assert config.warnings == ()


@pytest.mark.parametrize(
    "name", ["kafka.security.authorizer.AclAuthorizer", "com.example.Own", "StandardAuthorizer"]
)
def test_any_other_class_stops_the_start_with_one_line(name: str) -> None:
    with pytest.raises(ConfigError, match=r"^authorizer\.class\.name = ") as refused:
        given(authorizer_class_name=name)
    assert "\n" not in str(refused.value)


def test_a_super_user_without_a_type_stops_the_start() -> None:
    with pytest.raises(ConfigError, match=r"^super\.users = .*principalType:principalName"):
        given(super_users="User:amy;bob")

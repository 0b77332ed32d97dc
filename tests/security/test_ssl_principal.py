"""Mapping rules: the first rule that fits a whole name makes the user."""

import pytest

from security.ssl_principal import BadRules, NoMatchingRule, SslPrincipalMapper

RULES = (
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/, "
    "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L, "
    "RULE:^cn=(.*?),ou=(.*?),dc=(.*?),dc=(.*?)$/$1@$2/U, "
    "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U"
)


@pytest.mark.parametrize(
    ("name", "user"),
    [
        ("CN=duke,OU=ServiceUsers,O=Org,C=US", "duke"),
        ("CN=Duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US", "duke@sme"),
        ("cn=duke,ou=sme,dc=mycp,dc=com", "DUKE@SME"),
        ("O=Org,CN=duke,OU=IT", "DUKE"),
    ],
)
def test_the_first_rule_that_fits(name: str, user: str) -> None:
    assert SslPrincipalMapper(RULES).user(name) == user


@pytest.mark.parametrize(
    ("rules", "name", "user"),
    [
        ("DEFAULT", "CN=a", "CN=a"),
        ("", "CN=a", "CN=a"),
        ("RULE:^CN=(.*)$/$1/,DEFAULT", "O=a", "O=a"),
        (r"RULE:^CN=(.*?),OU=a\/b$/$1/", "CN=x,OU=a/b", "x"),
        ("RULE:^CN=(a)$/$1$2/", "CN=a", "a$2"),
        ("RULE:^CN=(a)?b$/<$1>/", "CN=b", "<>"),
    ],
)
def test_rules(rules: str, name: str, user: str) -> None:
    assert SslPrincipalMapper(rules).user(name) == user


def test_a_name_that_no_rule_takes() -> None:
    with pytest.raises(NoMatchingRule, match="No rules apply to O=x"):
        SslPrincipalMapper("RULE:^CN=(.*)$/$1/").user("O=x")


@pytest.mark.parametrize(
    "rules",
    ["deFault", "RULE:", "RULE:a", "RULE:a/b", "RULE:a/b/C", "RULE:(/b/", "DEFAULT DEFAULT", "a"],
)
def test_bad_rules(rules: str) -> None:
    with pytest.raises(BadRules):
        SslPrincipalMapper(rules)

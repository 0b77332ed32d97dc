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
        ("RULE:^CN=(.*)$/$1/,DEFAULT", "O=a", "O=a"),
        (r"RULE:^CN=(.*?),OU=a\/b$/$1/", "CN=x,OU=a/b", "x"),
        ("RULE:^CN=(a)$/$1$2/", "CN=a", "a$2"),
        ("RULE:^CN=(a)?b$/<$1>/", "CN=b", "<>"),
    ],
)
def test_rules(rules: str, name: str, user: str) -> None:
    assert SslPrincipalMapper(rules).user(name) == user


@pytest.mark.parametrize(
    ("rules", "name", "user"),
    [
        ("", "CN=a", None),
        (" ", "CN=a", None),
        ("DEFAULT,", "CN=a", "CN=a"),
        (",DEFAULT", "CN=a", "CN=a"),
        ("DEFAULT,,DEFAULT", "CN=a", "CN=a"),
        (r"RULE:^CN=(\w+)$/$1/", "CN=éve", None),
        (r"RULE:^CN=(\d+)$/$1/", "CN=\u0661\u0662", None),
        (r"RULE:^CN=(\s*)a/$1/", "CN=\xa0a", None),
        (r"RULE:(?i)^cn=(É)$/$1/", "CN=é", None),
        (r"RULE:(?i)^cn=(.*)$/$1/", "CN=a", "a"),
        (r"RULE:^CN=(?<n>.*)$/${n}/", "CN=a", "a"),
        (r"RULE:^CN=(.*)$/a\/b/", "CN=a", "a/b"),
        (r"RULE:^CN=(.*)$/a\tb/", "CN=a", "atb"),
        (r"RULE:^CN=(.*)$/$12/", "CN=a", "a2"),
        (r"RULE:^CN=(.*)$/$0/", "CN=a", "CN=a"),
        (r"RULE:^CN=.*$/$0x/", "CN=a", "CN=ax"),
        (r"RULE:^CN=(.*)$/$01/", "CN=a", "a"),
        (r"RULE:^CN=(.*)$/$2$1/", "CN=a", "$2a"),
        (r"RULE:.*/x/", "CN=a", "xx"),
        (r"RULE:^CN=(.*)$/$1/L", "CN=İX", "i\u0307x"),
        (r"RULE:^CN=(.*)$/$1/U", "CN=straße", "STRASSE"),
        (r"RULE:^CN=(.*)$/$1/", "CN=a\nb", None),
        (r"RULE:^CN=(.*)$/$1/", "CN=a\rb", None),
        (r"RULE:^CN=(.*)$/$1/", "CN=a\u2028b", None),
        (r"RULE:^CN=(.*)$/$1/", "CN=a\x85b", None),
        (r"RULE:^CN=([^.]*)\.x$/$1/", "CN=a.x", "a"),
        (r"RULE:CN=([^,]++),.*/$1/", "CN=a,O=b", "a"),
        (r"RULE:^CN=(a)$//", "CN=a", ""),
        (r"RULE:a|b/x/", "CN=ab", None),
        (r"RULE:^CN=(a{1,2}),O=b$/$1/", "CN=aa,O=b", "aa"),
        (r"RULE:^CN=(.*),O=(.*)$/$2\,$1/", "CN=a,O=b", "b,a"),
        ("RULE:^CN=(.*)$/$1/\n,\nDEFAULT", "O=a", "O=a"),
        (r"RULE:\bCN=(\S+)/$1/", "CN=a", "a"),
        (r"RULE:^CN=(.*)\Z/$1/", "CN=A", "A"),
        (r"RULE:^CN=(.*)\z/$1/", "CN=A", "A"),
    ],
)
def test_names_as_kafka_maps_them(rules: str, name: str, user: str | None) -> None:
    """As asked of `SslPrincipalMapper` in kafka-clients 4.3.1; None: no rule applies."""
    mapper = SslPrincipalMapper(rules)
    if user is None:
        with pytest.raises(NoMatchingRule):
            mapper.user(name)
    else:
        assert mapper.user(name) == user


@pytest.mark.parametrize(
    "rules",
    [
        r"RULE:^CN=.*$/$1/",  # these are valid in Kafka, and fail each client
        r"RULE:^CN=(.*)$/a$/",
        r"RULE:^CN=(.*)$/$x/",
        r"RULE:^CN=(.*)$/${n}/",
        r"RULE:^CN=([a-z&&[^b]]+)$/$1/",  # Python has no such patterns, or other ones
        r"RULE:^CN=([a[b]]+)$/$1/",
        r"RULE:^CN=(\p{Alpha}+)$/$1/",
        r"RULE:CN=\Qa.b\E/x/",
    ],
)
def test_rules_that_cannot_be_kept_are_refused_at_the_start(rules: str) -> None:
    with pytest.raises(BadRules):
        SslPrincipalMapper(rules)


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

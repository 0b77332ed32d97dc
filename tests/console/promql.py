"""PromQL: which series does an expression select? As much of the language as our queries use.

Not a parser: a reader of words. It knows which words stand for a metric (those that are no
function, no operator and no label in a grouping), what is asked of its labels, and which labels
results are grouped or matched by. A word that it cannot place is an error, not a guess.
"""

import re
from dataclasses import dataclass, field

FUNCTIONS = {"rate", "increase", "changes", "histogram_quantile", "label_values"}
AGGREGATIONS = {"sum", "min", "max", "topk", "avg", "count"}
GROUPING = {"by", "without", "on", "ignoring", "group_left", "group_right"}
OPERATORS = {"and", "or", "unless", "bool", "offset"}

_TOKEN = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<string>"(?:[^"\\]|\\.)*")
  | (?P<range>\[[^\]]+\])
  | (?P<number>\d+(?:\.\d+)?[smhd]?)
  | (?P<word>[a-zA-Z_:][a-zA-Z0-9_:]*)
  | (?P<sign>==|!=|>=|<=|=~|!~|[-+*/%^(){},=<>])
    """,
    re.VERBOSE,
)


@dataclass
class Selector:
    name: str
    matchers: list[tuple[str, str, str]] = field(default_factory=list)  # label, sign, value

    def takes(self, labels: dict[str, str]) -> bool:
        """Would it select a series with these labels? What Grafana fills in, and what Prometheus
        adds to each target, takes everything.
        """
        for label, sign, value in self.matchers:
            if "$" in value or label in ("instance", "job"):
                continue
            have = labels.get(label, "")
            if sign in ("=", "!="):
                matches = have == value
            else:
                matches = re.fullmatch(value, have) is not None
            if matches != (sign in ("=", "=~")):
                return False
        return True


@dataclass
class Query:
    selectors: list[Selector] = field(default_factory=list)
    labels: set[str] = field(default_factory=set)  # that results are grouped or matched by


def read(expr: str) -> Query:
    tokens = _tokens(expr)
    query = Query()
    at = 0
    while at < len(tokens):
        kind, token = tokens[at]
        following = tokens[at + 1][1] if at + 1 < len(tokens) else ""
        at += 1
        if kind != "word" or token in OPERATORS:
            continue
        if token in GROUPING:
            at = _labels(tokens, at, query)
        elif following == "(" or token in AGGREGATIONS:
            if token not in FUNCTIONS | AGGREGATIONS:
                raise ValueError(f"what is {token}() in {expr!r}?")
            if token == "label_values":
                query.labels.add(tokens[-2][1])
                tokens = tokens[:-3]
        else:
            selector = Selector(token)
            query.selectors.append(selector)
            if following == "{":
                at = _matchers(tokens, at, selector)
    if not query.selectors:
        raise ValueError(f"{expr!r} asks for nothing")
    return query


def _tokens(expr: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    at = 0
    while at < len(expr):
        match = _TOKEN.match(expr, at)
        if match is None:
            raise ValueError(f"what is {expr[at:]!r}?")
        if match.lastgroup != "space":
            tokens.append((match.lastgroup or "", match.group()))
        at = match.end()
    return tokens


def _labels(tokens: list[tuple[str, str]], at: int, query: Query) -> int:
    assert tokens[at][1] == "(", tokens[at]
    while tokens[at][1] != ")":
        at += 1
        if tokens[at][0] == "word":
            query.labels.add(tokens[at][1])
    return at + 1


def _matchers(tokens: list[tuple[str, str]], at: int, selector: Selector) -> int:
    while tokens[at][1] != "}":
        at += 1
        if tokens[at][1] in (",", "}"):
            continue
        (_, label), (_, sign), (kind, value) = tokens[at : at + 3]
        assert kind == "string", tokens[at : at + 3]
        selector.matchers.append((label, sign, value[1:-1]))
        at += 2
    return at + 1

"""Listeners: which sockets are opened, and which address is each client told?"""

import socket

import pytest

from config.listeners import (
    BadAddress,
    BadListeners,
    Listener,
    parse_host_port,
    parse_listener,
    resolve_listeners,
)

BOTH = "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT"


def test_each_listener_advertises_its_own_address() -> None:
    assert resolve_listeners(
        ["INSIDE://:9092", "outside://0.0.0.0:29092"],
        ["INSIDE://rollcall:9092", "OUTSIDE://localhost:29092"],
        BOTH,
        [],
    ) == (
        Listener("INSIDE", "", 9092, "rollcall", 9092),
        Listener("OUTSIDE", "0.0.0.0", 29092, "localhost", 29092),
    )


def test_a_listener_that_is_not_advertised_is_advertised_as_it_is_bound() -> None:
    (listener,) = resolve_listeners(["PLAINTEXT://[::1]:0"], [], "PLAINTEXT:PLAINTEXT", [])
    assert listener == Listener("PLAINTEXT", "::1", 0, "::1", 0)


def test_an_empty_host_advertises_the_machines_name() -> None:
    (listener,) = resolve_listeners(["PLAINTEXT://:1"], [], "PLAINTEXT:PLAINTEXT", [])
    assert (listener.host, listener.advertised_host) == ("", socket.gethostname())


@pytest.mark.parametrize(
    ("listeners", "advertised", "protocols", "key"),
    [
        (["A://h:1"], [], "B:PLAINTEXT", "listener.security.protocol.map"),
        (["A://h:1"], [], "A:TLS", "listener.security.protocol.map"),
        (["A://h:1", "A://h:2"], [], "A:PLAINTEXT", "listeners"),
        (["A://h:1", "B://h:1"], [], "A:PLAINTEXT,B:PLAINTEXT", "listeners"),
        (["h:1"], [], "A:PLAINTEXT", "listeners"),
        (["A://0.0.0.0:1"], [], "A:PLAINTEXT", "advertised.listeners"),
        (["A://[::]:1"], [], "A:PLAINTEXT", "advertised.listeners"),
        (["A://h:1"], ["A://0.0.0.0:1"], "A:PLAINTEXT", "advertised.listeners"),
        (["A://h:1"], ["A://:1"], "A:PLAINTEXT", "advertised.listeners"),
        (["A://h:1"], ["C://h:1"], "A:PLAINTEXT,C:PLAINTEXT", "advertised.listeners"),
    ],
)
def test_what_cannot_be_served_names_the_key_to_change(
    listeners: list[str], advertised: list[str], protocols: str, key: str
) -> None:
    with pytest.raises(BadListeners) as caught:
        resolve_listeners(listeners, advertised, protocols, [])
    assert caught.value.key == key


def test_a_protocol_that_no_listener_uses_does_no_harm() -> None:
    protocols = "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL"
    assert len(resolve_listeners(["PLAINTEXT://h:1"], [], protocols, [])) == 1


def test_two_free_ports_are_not_the_same_port() -> None:
    assert len(resolve_listeners(["INSIDE://h:0", "OUTSIDE://h:0"], [], BOTH, [])) == 2


def test_addresses_are_read_with_brackets_and_printed_with_them() -> None:
    assert str(parse_listener("plaintext://[fe80::1]:9092")) == "PLAINTEXT://[fe80::1]:9092"
    assert parse_host_port("localhost:0") == ("localhost", 0)
    assert parse_host_port(":80") == ("", 80)


@pytest.mark.parametrize(
    "name", ["kafka.lan", "kafka.lan.", "my_host-1", "127.0.0.1", "bücher.example", "a" * 63]
)
def test_a_host_name_may_be_any_dns_name(name: str) -> None:
    assert parse_host_port(f"{name}:9092") == (name, 9092)


@pytest.mark.parametrize(
    "name",
    [
        "a..b", ".a", "h\udcff", "h\x1b", "h\x00", "a" * 64, ".".join(["a" * 50] * 6), "ü" * 70,
        "%h", "h*", "..",
    ],
)  # fmt: skip
def test_what_is_no_host_name_is_refused_in_one_line(name: str) -> None:
    for read in (parse_host_port, parse_listener):
        text = f"{name}:9092" if read is parse_host_port else f"PLAINTEXT://{name}:9092"
        with pytest.raises(BadAddress, match="is not a host name") as refused:
            read(text)
        assert str(refused.value).isprintable()


def test_a_machine_whose_name_is_no_host_name_needs_an_advertised_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "h\udcff")
    with pytest.raises(BadListeners) as refused:
        resolve_listeners(["INSIDE://:9092"], [], BOTH, [])
    assert refused.value.key == "advertised.listeners"


@pytest.mark.parametrize("text", ["", "h", "h:", "h:x", "h:70000", "::1:80", "a b:1", "h:1/x"])
def test_other_texts_are_no_address(text: str) -> None:
    with pytest.raises(BadAddress):
        parse_host_port(text)

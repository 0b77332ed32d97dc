"""Frames that no client should send: what is answered, and when the broker hangs up."""

import struct

from protocol.messages.heartbeat import HeartbeatRequest
from protocol.names import ApiKey, GenerationId, GroupId, MemberId
from tests.compare.script import Script, scenario


def header(api_key: int, version: int, client_id: bytes = b"\x00\x01a") -> bytes:
    return struct.pack(">hhi", api_key, version, 1) + client_id


@scenario()
def what_is_no_request_ends_the_connection(script: Script) -> None:
    heartbeat = header(ApiKey.HEARTBEAT, 0)
    frames = {
        "an empty frame": b"",
        "half a header": b"\x00\x0c\x00",
        "an api key that nobody knows": header(999, 0) + b"\x00" * 20,
        "a negative api key": header(-1, 0) + b"\x00" * 20,
        "a version that is not served": header(ApiKey.HEARTBEAT, 5) + b"\x00" * 20,
        "a negative version": header(ApiKey.HEARTBEAT, -1) + b"\x00" * 20,
        "a body that is cut off": heartbeat + b"\x00\x05gr",
        "a string of negative length": heartbeat + b"\xff\xfe" + b"\x00" * 20,
        "a null that must not be": heartbeat + b"\xff\xff" + b"\x00" * 20,
        "a string longer than the frame": heartbeat + b"\x7f\xff" + b"\x00" * 20,
        "an array longer than the frame": header(ApiKey.DESCRIBE_GROUPS, 0) + b"\x7f\xff\xff\xff",
        "a version that Kafka dropped": header(ApiKey.OFFSET_FETCH, 0)
        + b"\x00\x01g\x00\x00\x00\x00",
    }
    for number, (what, frame) in enumerate(frames.items()):
        script.client(f"a{number}").ask_frame(what, frame)


@scenario()
def a_frame_of_an_impossible_size_ends_the_connection(script: Script) -> None:
    a, b = script.clients("a", "b")
    a.say_bytes("a negative size", b"\xff\xff\xff\xff")
    b.say_bytes("a size of two gigabytes", b"\x7f\xff\xff\xff")


@scenario()
def more_than_was_asked_for_is_ignored(script: Script) -> None:
    a = script.client("a")
    body = b"\x00\x00" + b"\x00\x00\x00\x01" + b"\x00\x00"
    a.ask_frame("a heartbeat and more", header(ApiKey.HEARTBEAT, 0) + body + b"more")


@scenario()
def a_client_needs_no_name(script: Script) -> None:
    a = script.client("a", client_id=None)
    request = HeartbeatRequest(GroupId(script.name), GenerationId(1), MemberId("x"))
    for version in range(5):
        a.ask(request, version)


@scenario()
def tags_that_nobody_knows_are_skipped(script: Script) -> None:
    a = script.client("a")
    tagged = b"\x01" + b"\x63\x02xy"
    frame = header(ApiKey.HEARTBEAT, 4) + tagged + b"\x02g\x00\x00\x00\x01\x02m\x00" + tagged
    a.ask_frame("a heartbeat with tags", frame)

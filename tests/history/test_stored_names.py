"""Stored names: entry types, fields and words in `__group_history`, listed as records have them.

The lists below are literal on purpose. Records of all earlier versions are read by these names, and
scripts and Spark jobs read them as well: a name may be added, none may change or go. Classes may
have other names than what they are stored under.
"""

import types
from enum import StrEnum
from typing import Union, get_args, get_origin, get_type_hints

import msgpack

from coordinator.events import Event
from history.encoding import STORED_FIELD_NAMES, decode, encode
from history.entries import ENTRY_TYPES

WORDS = {
    "cause": (
        "member_joined member_left session_expired rebalance_timeout sync_timeout "
        "subscription_changed leader_rejoined assignment_not_stored partitions_changed "
        "static_member_replaced coordinator_moved operator regular_expression_changed "
        "group_converted"
    ),
    "end": "running stable empty overtaken interrupted kept",
    "wait_end": "waiting rejoined left expired dropped replaced absent interrupted revoked",
    "removal": (
        "left operator session_expired new_member_timed_out rebalance_timeout sync_timeout "
        "group_full"
    ),
    "offsets_by": "commit deletion expiry topic_deletion group_deletion group_expiry import",
}

NESTED = {
    "member": "member_id:str group_instance_id:str? client_id:str host:str principal:str?",
    "asker": "client_id:str host:str principal:str?",
    "wait": (
        "who:member join_delay_ms:int? end:wait_end asked_at_ms:int? waited_ms:int? partitions:int?"
    ),
    "joined": "who:member join_delay_ms:int",
    "gone": (
        "who:member reason:str? silent_ms:int? session_timeout_ms:int? member_epoch:int? "
        "partitions:int?"
    ),
    "also": "cause:cause who:member? at_ms:int",
    "move": "topic:str partition:int from_member:str to_member:str",
    "owned": "topic:str partitions:int[]",
    "handover": "topic:str partition:int from_member:str unowned_ms:int?",
    "topic": "topic:str before:int? now:int?",
    "held": "who:member active:int standby:int",
    "change": "topic:str partition:int old:int? new:int?",
    "rebalance": (
        "cause:cause began_at_ms:int trigger:member? reason:str client_reason:str began_by:cause? "
        "end:end duration_ms:int? waited_for:wait[] waited_for_left_out:int joined:joined[] "
        "joined_left_out:int also:also[] generation_before:int generation_after:int? "
        "members_before:int members_after:int? partitions_moved:int? "
        "unowned_partition_seconds:float? with_trigger:member[] replaced:member? note:str "
        "silent_ms:int? session_timeout_ms:int? topics:topic[] moves:move[] held:held[] "
        "described:str away_ms:int? stopped:str protocol_type:str group_type:str assignor:str"
    ),
}

STORED = {
    "group_created": "group_id:str at_ms:int simple:bool group_type:str",
    "group_loaded": (
        "group_id:str at_ms:int generation:int state:str members:int interrupted:bool "
        "away_ms:int? stopped:str protocol_type:str group_type:str"
    ),
    "group_deleted": "group_id:str at_ms:int expired:bool asker:asker?",
    "member_joined": (
        "group_id:str at_ms:int who:member entrance:str generation:int reason:str "
        "session_timeout_ms:int rebalance_timeout_ms:int group_type:str protocol:str topics:str[] "
        "topics_left_out:int topic_regex:str assignor:str"
    ),
    "members_removed": (
        "group_id:str at_ms:int cause:removal generation:int members:gone[] members_left_out:int "
        "asker:asker? group_type:str"
    ),
    "static_member_replaced": (
        "group_id:str at_ms:int who:member old_member_id:str generation:int members:int "
        "settled:bool reason:str replaced:member? silent_ms:int? partitions:int? "
        "group_type:str"
    ),
    "member_fenced": (
        "group_id:str at_ms:int member_id:str group_instance_id:str current_member_id:str "
        "request:str error:str received_epoch:int? member_epoch:int? times:int?"
    ),
    "member_lapsed": "group_id:str at_ms:int who:member generation:int session_timeout_ms:int",
    "lapse_forgiven": "group_id:str at_ms:int who:member generation:int late_by_ms:int",
    "rebalance_began": (
        "group_id:str at_ms:int cause:cause began_by:cause? trigger:member? reason:str "
        "client_reason:str from_state:str generation:int members:int waiting_for:member[] "
        "waiting_for_left_out:int timeout_ms:int with_trigger:member[] replaced:member? note:str "
        "silent_ms:int? session_timeout_ms:int? topics:topic[] protocol_type:str "
        "group_type:str"
    ),
    "nobody_rejoined": "group_id:str at_ms:int waiting_for:member[] times:int?",
    "leader_changed": "group_id:str at_ms:int old:member new:member",
    "generation_began": (
        "group_id:str at_ms:int generation:int protocol_type:str protocol:str leader_id:str "
        "members:int joined:joined[] joined_left_out:int absent:member[]"
    ),
    "generation_assigned": (
        "group_id:str at_ms:int generation:int leader_id:str members:int without_assignment:int "
        "partitions:int? partitions_moved:int? moves:move[] moves_left_out:int held:held[] "
        "described:str"
    ),
    "assignment_refused": "group_id:str at_ms:int generation:int leader_id:str error:str",
    "group_emptied": "group_id:str at_ms:int generation:int group_type:str",
    "rebalance_ended": "group_id:str at_ms:int rebalance:rebalance",
    "topics_changed": "group_id:str at_ms:int topics:str[] changes:topic[]",
    "offsets_moved": (
        "group_id:str at_ms:int by:offsets_by changes:change[] asker:asker? member_id:str "
        "commits:int? since_ms:int? producer_id:int?"
    ),
    "transaction_aborted": (
        "group_id:str at_ms:int producer_id:int producer_epoch:int changes:change[] asker:asker?"
    ),
    "verdict_began": "group_id:str at_ms:int verdict:str subject:str summary:str remedy:str",
    "verdict_ended": "group_id:str at_ms:int verdict:str subject:str lasted_ms:int",
    "group_converted": (
        "group_id:str at_ms:int from_type:str to_type:str reason:str generation:int members:int"
    ),
    "member_updated": (
        "group_id:str at_ms:int who:member generation:int changed:str[] topics:str[] "
        "topics_left_out:int topic_regex:str assignor:str protocol:str"
    ),
    "static_member_left": (
        "group_id:str at_ms:int who:member generation:int member_epoch:int partitions:int"
    ),
    "group_epoch_bumped": (
        "group_id:str at_ms:int epoch:int causes:cause[] triggers:member[] triggers_left_out:int "
        "topics:str[] topics_left_out:int members:int"
    ),
    "target_assignment_updated": (
        "group_id:str at_ms:int epoch:int assignor:str took_ms:int members:int "
        "partitions_moved:int? moves:move[] moves_left_out:int"
    ),
    "target_assignment_refused": (
        "group_id:str at_ms:int epoch:int assignor:str reason:str times:int?"
    ),
    "revocation_requested": (
        "group_id:str at_ms:int who:member member_epoch:int target_epoch:int partitions:owned[] "
        "partitions_left_out:int timeout_ms:int"
    ),
    "revocation_ended": (
        "group_id:str at_ms:int who:member end:wait_end member_epoch:int partitions:int "
        "waited_ms:int?"
    ),
    "partitions_assigned": (
        "group_id:str at_ms:int who:member member_epoch:int target_epoch:int "
        "handed_over:handover[] handed_over_left_out:int waits_for:int"
    ),
    "regular_expression_resolved": (
        "group_id:str at_ms:int pattern:str topics:str[] topics_left_out:int"
    ),
}


def shape(hint: object) -> str:
    """A field's type by its stored form: `?` may be null, `[]` a list, else a label of NESTED."""
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        (inner,) = (arm for arm in get_args(hint) if arm is not types.NoneType)
        return shape(inner) + "?"
    if origin is tuple:
        return shape(get_args(hint)[0]) + "[]"
    hint = getattr(hint, "__supertype__", hint)  # a NewType
    assert isinstance(hint, type)
    if issubclass(hint, StrEnum):
        words = " ".join(hint)
        return next((label for label, stored in WORDS.items() if stored == words), words)
    if hint in (str, int, bool, float):
        return hint.__name__
    inside = fields(hint)
    return next((label for label, stored in NESTED.items() if stored == inside), inside)


def fields(kind: type) -> str:
    hints = get_type_hints(kind)
    return " ".join(
        f"{STORED_FIELD_NAMES.get(name, name)}:{shape(hint)}" for name, hint in hints.items()
    )


def test_the_types_have_the_names_and_fields_that_are_stored() -> None:
    assert {name: fields(kind) for name, kind in ENTRY_TYPES.items()} == STORED


def test_a_record_has_these_names() -> None:
    for name, stored in STORED.items():
        plain = msgpack.unpackb(encode(ENTRY_TYPES[name]("g", 5))[1])
        assert plain["type"] == name
        assert plain.keys() <= {"v", "type", *(part for part, _ in pairs(stored))}


def test_a_record_with_every_field_is_read_whole() -> None:
    for name, stored in STORED.items():
        plain = {"v": 1, "type": name, **{part: example(kind) for part, kind in pairs(stored)}}
        event = decode(msgpack.packb(plain))
        assert event is not None
        # Every value is another than the default: an unread field would be left out.
        assert msgpack.unpackb(encode(event)[1]) == plain


def test_classes_are_named_after_the_coordinators_event_with_entry_at_the_end() -> None:
    assert all(kind.__name__.endswith("Entry") for kind in ENTRY_TYPES.values())
    stems = {kind.__name__.removesuffix("Entry") for kind in ENTRY_TYPES.values()}
    # These have no event of the coordinator: a load, an end, offsets of several events, verdicts.
    own = {"GroupLoaded", "RebalanceEnded", "OffsetsMoved", "VerdictBegun", "VerdictEnded"}
    # Of consumer groups: what CurrentAssignmentUpdated means for its member.
    own |= {"StaticMemberLeft", "RevocationRequested", "RevocationEnded", "PartitionsAssigned"}
    assert stems - {kind.__name__ for kind in get_args(Event)} == own


def pairs(stored: str) -> list[tuple[str, str]]:
    return [(part, kind) for part, _, kind in (field.partition(":") for field in stored.split())]


def example(kind: str) -> object:
    """A value that is not the default of any field."""
    if kind.endswith("[]"):
        return [example(kind[:-2])]
    kind = kind.removesuffix("?")
    if kind in WORDS:
        return WORDS[kind].split()[-1]
    if kind in NESTED:
        return {part: example(inner) for part, inner in pairs(NESTED[kind])}
    return {"str": "text", "int": 17, "bool": True, "float": 2.5}[kind]

"""Random ids: a member's id ends with a random UUID as Java prints it, after its prefix."""

from uuid import RFC_4122, UUID

from broker.loop.ids import new_member_id


def test_the_id_of_a_member_ends_with_a_random_uuid() -> None:
    ids = {new_member_id("my-client") for _ in range(1_000)}

    assert len(ids) == 1_000
    for member_id in ids:
        assert member_id.startswith("my-client-")
        text = member_id.removeprefix("my-client-")
        assert str(UUID(text)) == text
        assert (UUID(text).version, UUID(text).variant) == (4, RFC_4122)


def test_all_variants_come_up() -> None:
    assert {new_member_id("")[20] for _ in range(1_000)} == set("89ab")

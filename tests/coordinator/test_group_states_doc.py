"""docs/group-states.md says what the code does."""

from docs.make_group_states import PATH, document


def test_the_table_of_states_and_answers_is_up_to_date() -> None:
    assert PATH.read_text() == document(), "docs/group-states.md is old: run `make docs`"

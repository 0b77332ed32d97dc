"""Group states page: docs/group-states.md agrees with the code."""

from difflib import unified_diff

from docs.make_group_states import PATH, document


def test_the_table_of_states_and_answers_is_up_to_date() -> None:
    changed = unified_diff(PATH.read_text().split("|"), document().split("|"), "was", "is now", n=1)
    assert not [*changed], (
        "an answer of the coordinator changed, see the cells above; if that is intended, "
        "`make docs` writes them to docs/group-states.md"
    )

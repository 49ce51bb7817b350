"""Parts that were written as canonical JSON before, and stand in a whole as they are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from muniment.core.canonical import Written, canonical_text
from muniment.core.policy import Policy
from muniment.packets.pool import written_table

_TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)


def test_a_part_that_was_written_before_stands_as_it_is() -> None:
    part = {"b": [1.0, "é"], "a": None}
    whole = {"z": part, "list": [part]}
    written = {"z": Written(canonical_text(part)), "list": [Written(canonical_text(part))]}
    assert canonical_text(written) == canonical_text(whole)


def test_a_copy_works_out_its_own_digest() -> None:
    policy = Policy()
    assert policy.digest
    other = policy.model_copy(update={"policy_id": "other"})
    assert other.digest == Policy(policy_id="other").digest != policy.digest


@given(st.dictionaries(_TEXTS, _TEXTS | st.integers(-(2**80), 2**80), max_size=80))
def test_a_table_is_written_as_any_object_is(table: dict[str, str | int]) -> None:
    assert written_table(table) == canonical_text(table)
    assert canonical_text({"held": written_table(table)}) == canonical_text({"held": table})

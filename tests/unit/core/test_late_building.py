"""Records whose validators are built at their first use are the same records, whoever is first."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from muniment.core.policy import Policy
from muniment.core.record import Count, Items, OpenRecord, Record
from muniment.core.scope import ID_MAX_CHARS, Scope, scope_of
from muniment.errors import InvalidRecord
from muniment.handles.memory import Memory
from muniment.memory.search import Hit

NAMES = ("tenant_id", "user_id", "agent_id", "session_id", "run_id")


@pytest.fixture
def hasty() -> Iterator[None]:
    """Threads that take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hasty")
def test_the_first_users_of_a_record_may_come_at_once() -> None:
    """Before 2.14 pydantic lets two threads build a model over each other, and one may meet its parent's validator."""
    for _ in range(20):

        class Inner(Record):
            name: str
            parts: Items[Count] = ()

        class Outer(OpenRecord):
            inner: Inner
            note: str | None = None

        gate = threading.Barrier(8)

        def first(number: int, gate: threading.Barrier = gate, outer: type[Outer] = Outer) -> Outer:
            gate.wait()
            return outer.from_wire({"inner": {"name": str(number), "parts": [number]}, "note": "n"})

        with ThreadPoolExecutor(8) as pool:
            made = list(pool.map(first, range(8)))
        assert [each.inner.parts for each in made] == [(number,) for number in range(8)]
        with pytest.raises(InvalidRecord, match="inner"):
            Outer.from_wire({"inner": {"name": 1}})


def test_a_record_is_strict_from_its_first_use() -> None:
    class Fresh(Record):
        number: Count

    with pytest.raises(InvalidRecord) as caught:
        Fresh.from_wire({"number": "1", "other": 2})
    assert {issue.path for issue in caught.value.issues} == {"$.number", "$.other"}


def test_the_default_policy_is_what_a_validated_one_is() -> None:
    taken, validated = Policy.model_construct(), Policy.from_wire(Policy().model_dump(mode="json"))
    assert taken == Policy()
    assert taken.model_fields_set == Policy().model_fields_set == set()
    assert taken.digest == Policy().digest == validated.digest
    assert taken.model_dump() == validated.model_dump()


@given(
    st.lists(
        st.one_of(
            st.text(max_size=8),
            st.text(st.characters(max_codepoint=0x90), min_size=1, max_size=4),
            st.sampled_from(
                ["a" * ID_MAX_CHARS, "a" * (ID_MAX_CHARS + 1), "é" * 256, "字" * 256 + "x", "\ud800", " ", "\x7f"]
            ),
            st.none() | st.integers() | st.binary(max_size=3),
        ),
        min_size=5,
        max_size=5,
    )
)
def test_a_scope_of_plain_names_is_what_a_validated_one_is(values: list[object]) -> None:
    names = dict(zip(NAMES, values, strict=True))
    wanted, found = answer(Scope.model_validate, names), answer(scope_of, names)
    assert found == wanted
    if isinstance(wanted, Scope):
        assert isinstance(found, Scope)
        assert found.model_fields_set == wanted.model_fields_set
        assert found.to_bytes() == wanted.to_bytes()


def answer(make: Callable[[dict[str, Any]], Scope], names: dict[str, Any]) -> Scope | str:
    """The scope, or what is wrong with the names."""
    try:
        return make(names)
    except ValidationError as refusal:
        return repr(refusal.errors(include_url=False))


def test_hits_are_what_validated_ones_are(any_mem: Memory) -> None:
    run = any_mem.run(user_id="ana")
    said = run.observe("user", "I moved to Berlin in May.", speaker="Ana", tags=["home"])
    run.observe("assistant", "Is Berlin large?")
    run.remember("user.city", "Berlin", sources=[said.id])
    found = run.search("Berlin")
    assert {hit.kind for hit in found} == {"event", "fact"}
    for hit in found:
        again = Hit.from_wire(hit.to_wire())
        assert again == hit
        assert again.to_bytes() == hit.to_bytes()
        assert type(hit.score) is float
        assert {type(part) for part in hit.parts.values()} == {float}
        assert hit.model_fields_set == again.model_fields_set

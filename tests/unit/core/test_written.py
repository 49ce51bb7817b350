"""Records that keep their own canonical text: it is the text of what `to_wire` says, and no copy inherits it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.core.canonical import Written, canonical_text
from muniment.core.policy import Policy
from muniment.errors import InvalidJson
from muniment.memory.turns import SessionLine, Turn
from muniment.packets.pool import HitCandidate, Pool, written_table

_NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from((0.0, -0.0, 1.0, 1e-7, 1e-5, 1e16, 1e21))
_TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)


def _turn(text: str) -> Turn:
    return Turn.from_wire(
        {
            "id": "evt_1",
            "session_id": "s",
            "seq": 1,
            "kind": "message",
            "role": "user",
            "speaker": None,
            "ts": "2026-01-01T00:00:00Z",
            "text": text,
            "trust": "user",
            "flags": [],
        }
    )


def _pool(turn: Turn, score: float, parts: dict[str, float]) -> Pool:
    hit = HitCandidate(turn=turn, score=score, parts=parts, reasons=("says tea", turn.text))
    told = hit.model_copy(update={"standing": (turn.text, "tea")})
    lists: dict[str, tuple[()]] = dict.fromkeys(
        ("facts", "procedures", "insights", "summary", "loops", "tools", "episodes"), ()
    )
    return Pool(working_state=None, hits=(hit, told, hit), window=(turn,), **lists)


@given(_TEXTS, _NUMBERS, st.dictionaries(_TEXTS, _NUMBERS, max_size=5))
def test_a_pool_writes_what_its_wire_says(text: str, score: float, parts: dict[str, float]) -> None:
    pool = _pool(_turn(text), score, parts)
    assert pool.written == canonical_text(pool.to_wire())
    assert pool.written == canonical_text(pool.to_wire()), "and the second time as well"
    assert Pool.from_wire(pool.to_wire()) == pool


def test_a_pool_without_hits_writes_what_its_wire_says() -> None:
    pool = _pool(_turn("tea"), 1, {}).model_copy(update={"hits": ()})
    assert pool.written == canonical_text(pool.to_wire())


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_json_does_not_have_is_refused(number: float) -> None:
    turn = _turn("tea")
    hit = HitCandidate.unchecked({"turn": turn, "score": number, "parts": {"words": 1.0}, "reasons": ()})
    with pytest.raises(InvalidJson):
        _ = _pool(turn, 1, {}).model_copy(update={"hits": (hit,)}).written


def test_a_part_that_was_written_before_stands_as_it_is() -> None:
    part = {"b": [1.0, "é"], "a": None}
    whole = {"z": part, "list": [part]}
    written = {"z": Written(canonical_text(part)), "list": [Written(canonical_text(part))]}
    assert canonical_text(written) == canonical_text(whole)


def test_a_copy_works_out_its_own_text_and_digest() -> None:
    turn, policy = _turn("tea"), Policy()
    assert turn.written
    assert policy.digest
    assert "coffee" in turn.model_copy(update={"text": "coffee"}).written
    other = policy.model_copy(update={"policy_id": "other"})
    assert other.digest == Policy(policy_id="other").digest != policy.digest


def test_what_is_kept_beside_the_fields_is_no_field() -> None:
    turn = _turn("tea")
    fresh, plain = _turn("tea"), turn.to_wire()
    assert turn.written
    assert (turn, turn.to_wire(), repr(turn)) == (fresh, plain, repr(fresh))


@given(st.dictionaries(_TEXTS, _TEXTS | st.integers(-(2**80), 2**80), max_size=80))
def test_a_table_is_written_as_any_object_is(table: dict[str, str | int]) -> None:
    assert written_table(table) == canonical_text(table)
    assert canonical_text({"held": written_table(table)}) == canonical_text({"held": table})


@given(
    _TEXTS,
    _NUMBERS,
    st.none() | _TEXTS,
    st.none() | st.dictionaries(_TEXTS, _TEXTS, max_size=3),
    st.none() | st.lists(_TEXTS, max_size=3),
)
def test_a_line_writes_what_its_wire_says(
    text: str, weight: float, speaker: str | None, cited: dict[str, str] | None, sources: list[str] | None
) -> None:
    told = {"speaker": speaker, "cited": cited, "sources": sources, "kind": None if sources is None else "given"}
    line = SessionLine.from_wire(
        {"evidence_id": "evt_1", "text": text, "ts": "2026-01-01T00:00:00Z", "weight": weight, "role": "user"}
        | {name: value for name, value in told.items() if value is not None}
    )
    assert line.written == canonical_text(line.to_wire())

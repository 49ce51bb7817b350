"""A key makes of a request for a packet one build, however often it is sent (LG-06), on every engine."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from muniment.errors import IdempotencyMismatch, InvalidInput
from muniment.handles.memory import Memory

ASKED = {"query": "Where do I live?", "max_tokens": 512, "now": "2026-05-01T12:00:00Z"}


def told(mem: Memory, **names: str) -> object:
    run = mem.run(user_id="ana", run_id="r1", session_id="s1", **names)
    run.observe("user", "I moved to Berlin in May.", id="e1", ts="2026-04-01T00:00:00Z")
    return run


@pytest.mark.req("LG-06")
def test_the_same_request_is_the_same_build(any_mem: Memory) -> None:
    mem = any_mem
    run = told(mem)
    first = run.compose("responder", **ASKED, idempotency_key="k1")
    run.observe("user", "I live in Lisbon now.", id="e2")
    again = run.compose("responder", **ASKED | {"max_tokens": 512.0}, idempotency_key="k1")
    assert (again.id, again.packet_bytes, again.text) == (first.id, first.packet_bytes, first.text)
    assert "Lisbon" in run.compose("responder", **ASKED).text, "without a key it is composed anew"
    assert "Lisbon" in run.compose("responder", **ASKED, idempotency_key="k2").text
    kept = [each.id for each in mem._ctx.engine.read("default", lambda reader: _builds(reader))]
    assert len(kept) == 3
    assert mem.verify().ok


def _builds(reader: object) -> list[object]:
    from muniment.store.items import select_items

    return select_items(reader, (("kind", "=", "build"),))


@pytest.mark.req("LG-06")
@pytest.mark.parametrize(
    "other",
    [{"query": "Where?"}, {"max_tokens": 513}, {"now": "2026-05-01T12:00:01Z"}, {"exclude": ("e1",)},
     {"cues": {"tags": ["a"]}}, {"per_section": {"facts": 10}}, {"policy": {"compose": {"max_tokens": 700}}},
     {"task_type": "other"}, {"exclude_session": True}, {"max_tokens": None}],
    ids=lambda each: next(iter(each)),
)  # fmt: skip
def test_another_request_under_a_key_is_a_mismatch(mem: Memory, other: dict[str, object]) -> None:
    run = told(mem)
    first = run.compose("responder", **ASKED, idempotency_key="k")
    with pytest.raises(IdempotencyMismatch) as refused:
        run.compose("responder", **ASKED | other, idempotency_key="k")
    assert refused.value.details == {"id": first.id}
    with pytest.raises(IdempotencyMismatch):
        run.compose("planner", **ASKED, idempotency_key="k")
    with pytest.raises(IdempotencyMismatch):
        mem.run(user_id="ana", run_id="r2", session_id="s1").compose("responder", **ASKED, idempotency_key="k")
    bob = mem.run(user_id="bob").compose("responder", **ASKED, idempotency_key="k")
    assert bob.id != first.id, "a key is its user's"


def test_a_key_that_is_none_is_refused(mem: Memory) -> None:
    for key in ("", "a\x00", 7, "k" * 257):
        with pytest.raises(InvalidInput) as refused:
            mem.run(user_id="ana").compose("responder", idempotency_key=key)
        assert refused.value.path == "$.idempotency_key"


@pytest.mark.req("LG-07")
def test_a_key_is_forgotten_with_what_its_build_was_made_from(any_mem: Memory) -> None:
    mem = any_mem
    run = told(mem)
    first = run.compose("responder", **ASKED, idempotency_key="k")
    assert "Berlin" in first.text
    mem.forget(event="e1")
    again = run.compose("responder", **ASKED, idempotency_key="k")
    assert again.id != first.id
    assert "Berlin" not in again.text
    assert run.compose("responder", **ASKED, idempotency_key="k").id == again.id
    assert mem.verify().ok


def test_those_who_ask_at_once_get_one_build(any_mem: Memory) -> None:
    mem = any_mem
    run = told(mem)
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: run.compose("responder", **ASKED, idempotency_key="k"), range(4)))
    assert len({build.id for build in made}) == 1
    assert len({build.packet_bytes for build in made}) == 1


def test_a_key_crosses_with_a_dump(mem: Memory, tmp_path: object) -> None:
    import muniment

    run = told(mem)
    first = run.compose("responder", **ASKED, idempotency_key="k")
    lines = list(mem.export())
    with muniment.open() as other:
        other.import_(lines)
        taken = other.run(user_id="ana", run_id="r1", session_id="s1")
        assert taken.compose("responder", **ASKED, idempotency_key="k").id == first.id

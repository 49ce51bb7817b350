"""What waits for a person, and how much a tenant holds: nothing is missing, nothing settled is among it."""

from __future__ import annotations

import pytest

from muniment.core.listing import ListQuery
from muniment.errors import InvalidInput
from muniment.handles.attention import page_waiting
from muniment.handles.memory import Memory
from rule_stages import story_at


def _disputed(mem: Memory, user_id: str, number: int = 0) -> str:
    run = mem.run(user_id=user_id, session_id="s", run_id=f"{user_id}-{number}")
    said = run.observe("user", "I live in Oslo.")
    fact = run.remember("user.city", "Oslo", sources=[said.id])
    run.memory.dispute(fact.fact_id, reason="she moved")
    return fact.fact_id


def test_what_waits_is_told_with_its_place_until_it_is_settled(any_mem: Memory) -> None:
    assert any_mem.store.attention() == []
    for user_id in ("ana", "bo", "cy"):
        any_mem.run(user_id=user_id, session_id="s").observe("user", "Hello.")
    fact = _disputed(any_mem, "bo")
    run = any_mem.run(user_id="cy", session_id="s")
    said = run.observe("user", "I eat no meat.")
    candidate = run.propose("user.diet", "vegetarian", sources=[said.id])
    waiting = any_mem.store.attention()
    assert [(each.kind, each.id, each.user_id) for each in waiting] == [
        ("fact_disputed", fact, "bo"),
        ("candidate_waiting", candidate.candidate_id, "cy"),
    ]
    assert waiting[0].text == "user.city: Oslo (she moved)"
    assert any_mem.store.attention(user_id="cy") == waiting[1:]
    assert any_mem.store.attention(kind="fact_disputed") == waiting[:1]
    assert any_mem.store.attention(limit=1) == waiting[:1]
    assert any_mem.store.attention(user_id="ana") == []
    any_mem.forget(fact=fact)
    run.memory.decide(candidate.candidate_id, accept=False)
    assert [each for each in any_mem.store.attention() if each.kind != "scrub_due"] == []
    with pytest.raises(InvalidInput):
        any_mem.store.attention(kind="weather")  # type: ignore[arg-type]


def test_pages_of_what_waits_go_on_from_any_place(mem: Memory) -> None:
    facts = [_disputed(mem, f"user{number}", each) for number in range(4) for each in range(1)]
    for limit in (1, 2, 9):
        found, after = [], None
        while True:
            asked = ListQuery(limit=limit, after=after, looked_max=2)
            page = list(page_waiting(mem._ctx, "default", None, asked))[: limit + 1]
            shown = [each for each in page[:limit] if each.value is not None]
            found += [each.value.id for each in shown if each.value is not None]
            if len(page) <= limit and (not page or page[-1].value is not None):
                break
            after = page[:limit][-1].place
        assert found == facts, limit


@pytest.mark.soak
def test_a_trial_that_decided_waits(mem: Memory) -> None:
    story, rule = story_at(mem, "shown")
    (waiting,) = mem.store.attention(kind="canary_decided")
    assert waiting.id == rule
    assert waiting.text.startswith("promote: ")
    assert story.book.watch()[rule].decision == "promote"


def test_how_much_a_tenant_holds(any_mem: Memory) -> None:
    for user_id in ("ana", "bo"):
        run = any_mem.run(user_id=user_id, session_id="s")
        run.observe("user", "Hello.")
    build = run.compose("responder", query="x", max_tokens=300)
    any_mem.run(user_id="x", tenant_id="other").observe("user", "elsewhere")
    held = any_mem.store.overview()
    assert (held.users, held.sessions, held.runs, held.events, held.builds, held.at_least) == (2, 2, 2, 4, 1, ())
    newest = any_mem.log.turns(user_id="bo", around=build.id, limit=1)[0].build
    assert newest is not None
    assert held.last_build_at == newest.created_at
    any_mem.forget(user_id="ana")
    assert any_mem.store.overview().users == 1
    assert any_mem.store.overview(tenant_id="nobody").users == 0

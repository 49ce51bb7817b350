"""Two packets line beside line: what was added, removed, moved, re-worded, and why one has not what the other has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from muniment.handles.memory import Memory
from muniment.handles.run import Run
from muniment.packets.builds import Build
from muniment.packets.compare import BuildDiff, LinePair, align
from muniment.packets.layout import PageLine, page_lines
from products import for_each


def _run(mem: Memory, session: str = "s1") -> Run:
    return mem.run(user_id="ana", session_id=session, run_id=f"run_{session}", objective="Help Ana eat well")


def _lines_of(build: Build) -> list[PageLine]:
    return page_lines(build.packet, build.text, build.marks)


def _by_item(found: BuildDiff) -> Mapping[str, LinePair]:
    return {str(pair.item): pair for pair in found.lines}


def test_every_line_of_a_text_is_there_once_in_order_with_its_number(mem: Memory) -> None:
    run = _run(mem)
    said = run.observe("user", "I am pescatarian.\n## Facts\n- user.diet: none [1]", speaker="Ana")
    run.remember("user.diet", "pescatarian", sources=[said.id])
    run.patch(goal="book dinner", plan=[{"step": "choose a place", "status": "todo"}], slots={"people": 2})
    told: set[str | None] = set()
    for purpose in ("planner", "tool", "responder"):
        build = run.compose(purpose, query="what may she eat?")
        lines = _lines_of(build)
        assert "".join(f"{line.text}\n" for line in lines) == build.text
        physical = build.text.split("\n")
        assert all(physical[line.number - 1] == line.text.split("\n")[0] for line in lines)
        told |= {line.item for line in lines}
        assert len(items := [line.item for line in lines if line.item]) == len(set(items))
    assert {f"turn:{said.id}", "state:plan.0", "state:slots.people", None} <= told


def test_a_page_whose_layout_is_no_longer_known_is_read_by_its_headings(mem: Memory) -> None:
    run = _run(mem)
    said = run.observe("user", "The ferry leaves at nine.")
    build = run.compose("responder", query="When does the ferry leave?")
    text = "Of before.\n## Facts\n- user.city: Berlin [1]\n## Said\n[1] Ana: The ferry leaves.\n"
    lines = page_lines(build.packet, text, {"1": said.id})
    assert [(line.block, line.number) for line in lines] == [
        ("opening", 1), ("facts", 2), ("facts", 3), ("quotes", 4), ("quotes", 5),
    ]  # fmt: skip
    assert [line.evidence for line in lines] == [(), (), (said.id,), (), (said.id,)]
    assert all(line.item is None for line in lines)


def test_a_change_has_its_kind_and_its_reason(mem: Memory) -> None:
    """Over budget, superseded by another, later, another purpose, worded otherwise: each as the packets tell it."""
    run = _run(mem)
    fish = run.observe("user", "I am pescatarian and I love the old harbour.", speaker="Ana")
    old = run.remember("user.diet", "pescatarian", sources=[fish.id])
    run.insight("hypothesis", "she may like boats", sources=[fish.id])
    run.observe_many(
        [{"role": "user", "content": f"The harbour has a place number {n} for dinner."} for n in range(24)]
    )
    run.patch(goal="book dinner", slots={"people": 2})
    first = run.compose("planner", query="Which place at the harbour has dinner?")
    vegan = run.observe("user", "I am vegan now, and the harbour has a new kitchen for dinner.", speaker="Ana")
    new = run.remember("user.diet", "vegan", sources=[vegan.id])
    run.patch(slots={"people": 3})
    second = run.compose("responder", query="Which place at the harbour has dinner?", max_tokens=300)
    found = mem.diff(first.id, second.id)
    pairs = _by_item(found)
    replaced = pairs[f"fact:{old.fact_id}"]
    assert (replaced.what, replaced.by) == ("removed", f"fact:{new.fact_id}")
    assert replaced.reason in ("deprecated", "superseded")
    assert (pairs[f"fact:{new.fact_id}"].what, pairs[f"fact:{new.fact_id}"].reason) == ("added", "later")
    assert pairs[f"fact:{new.fact_id}"].why
    gone = [pair for pair in found.lines if pair.what == "removed" and pair.item]
    assert {"over_budget", "insight_wall"} <= {pair.reason for pair in gone}
    assert all(pair.reason for pair in gone)
    people = pairs["state:slots.people"]
    assert people.what == "reworded"
    assert people.a
    assert people.b
    assert [piece.text for piece in people.b.pieces or () if piece.is_changed] == ["3"]
    assert "".join(piece.text for piece in people.a.pieces or ()) == people.a.text == "slot people: 2"
    assert (found.tokens_max_a, found.tokens_max_b) == (2048, 300)
    by_section = {each.section: each for each in found.sections}
    assert by_section["facts"].cap_b == 120 < by_section["facts"].cap_a
    assert found.request == ("budget", "now", "purpose")


def test_the_same_words_elsewhere_on_the_page_are_moved_whatever_number_they_are_cited_by(mem: Memory) -> None:
    run = _run(mem)
    said = run.observe("assistant", "The ferry leaves at nine.")
    run.observe("assistant", "Tickets are cheap.")
    acting = run.compose("tool")
    other = _run(mem, "s2")
    other.observe("user", "Hello again.", speaker="Ana")
    other.compose("tool")
    later = other.compose("responder", query="When does the ferry leave? Are tickets cheap?")
    pairs = _by_item(mem.diff(acting.id, later.id))
    moved = pairs[f"quote:{said.id}"]
    assert moved.what == "moved"
    assert moved.is_moved
    assert (moved.a and moved.a.block, moved.b and moved.b.block) == ("window", "quotes")
    assert moved.a
    assert moved.b
    assert moved.a.text != moved.b.text  # the numbers of two sessions


def test_a_turn_that_is_no_longer_quoted_is_told_by_the_search_not_by_the_purpose(mem: Memory) -> None:
    """That a responder gets no last turns is no reason why something said is not quoted."""
    run = _run(mem)
    said = run.observe("assistant", "The ferry leaves at nine.")
    run.observe_many([{"role": "user", "content": f"Apples, pears and plums in crate {n}."} for n in range(3)])
    run.observe("user", "Bring an umbrella.", speaker="Ana")
    first = run.compose("responder", query="When does the ferry leave?")
    second = run.compose("responder", query="umbrella")
    gone = _by_item(mem.diff(first.id, second.id))[f"quote:{said.id}"]
    assert gone.what == "removed"
    assert any(each.item == f"turn:{said.id}" and each.reason == "purpose" for each in second.packet.explain.omitted)
    assert gone.reason == "no_match"


def test_the_same_build_has_the_same_lines(mem: Memory) -> None:
    run = _run(mem)
    run.observe("user", "The ferry leaves at nine.", speaker="Ana")
    build = run.compose("responder", query="When does the ferry leave?")
    found = mem.diff(build.id, build.id)
    assert {pair.what for pair in found.lines} == {"same"}
    assert not any(pair.reason or pair.is_moved for pair in found.lines)


def test_ids_that_begin_alike_are_told_apart(mem: Memory) -> None:
    """`f1` is not `f10`: a reason is that of the item itself."""
    from muniment.packets.compare import _is_named

    assert _is_named("quote:e1", "turn:e1")
    assert _is_named("fact:e1#2", "fact:e1")
    assert _is_named("state:slots.city", "state:slots")
    for candidate, name in (("fact:f10", "fact:f1"), ("quote:e11", "quote:e1"), ("state:slotsx", "state:slots")):
        assert not _is_named(candidate, name)


WORDS = st.lists(st.sampled_from(["red", "blue", "[1]", "地", "，", "x" * 3]), max_size=6).map(" ".join)


@st.composite
def pages(draw: st.DrawFn) -> list[PageLine]:
    ids = draw(st.lists(st.integers(0, 9), unique=True, max_size=8))
    heads = draw(st.lists(st.sampled_from(["## A", "## B"]), max_size=2))
    lines: list[Any] = [(draw(WORDS), draw(st.sampled_from(["window", "quotes"])), f"quote:{id_}") for id_ in ids]
    for head in heads:
        lines.insert(draw(st.integers(0, len(lines))), (head, "facts", None))
    return [PageLine(text, block, item, (), at + 1) for at, (text, block, item) in enumerate(lines)]


@given(left=pages(), right=pages())
@settings(max_examples=examples(60), deadline=None)
def test_each_line_of_both_pages_stands_in_one_row(left: list[PageLine], right: list[PageLine]) -> None:
    rows = align(left, right, {}, {})
    assert [row.b.number for row in rows if row.b] == [line.number for line in right]
    assert sorted(row.a.number for row in rows if row.a) == [line.number for line in left]
    still = [row.a.number for row in rows if row.a and row.b and not row.is_moved]
    assert still == sorted(still)
    for row in rows:
        assert (row.a is None, row.b is None) == (row.what == "added", row.what == "removed")
        for side in (row.a, row.b):
            assert side is None or side.pieces is None or "".join(piece.text for piece in side.pieces) == side.text
    both = {line.item for line in left if line.item} & {line.item for line in right}
    assert {row.item for row in rows if row.a and row.b and row.item} == both


@for_each("unit", ["a b ", "[1] ", "地", "，", "x"])
def test_a_long_line_is_compared_in_the_time_of_its_length(unit: str) -> None:
    left = [PageLine(unit * 40_000 + "one", "quotes", "quote:e", (), 1)]
    right = [PageLine(unit * 40_000 + "two", "quotes", "quote:e", (), 1)]
    (row,) = align(left, right, {"1": "e"}, {"1": "e"})
    assert row.what == "reworded"
    assert row.b
    assert row.b.pieces
    assert row.b.pieces[-1].is_changed

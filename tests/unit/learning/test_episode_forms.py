"""Runs that differ in a number, an id, a date or a name alone are one line, which says how often and what varied."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.learning.test_hint_groups import ASKED, POLICY, memory, recalled

from muniment.learning.hinting.episode_words import episode_of, hint_text, line_of_many
from muniment.learning.hinting.forms import form_of, together
from muniment.learning.hints import Recallable, inject, weigh
from products import for_each

SAME = (
    (("Find order 107", "Find order 9"), "Find order …"),
    (("Find order #A-107 for me", "Find order #B-9 for me"), "Find order … for me"),
    (("Close the ledger of Amsel, no. 4521", "Close the ledger of Borg, no. 77"), "Close the ledger of …, no. …"),
    (("Move it to 2026-05-01", "Move it to 2025-12-31"), "Move it to …"),
    (("Call Mia Li at 10:30", "Call Omar de Rossi at 9:15"), None),
    (("Call Mia Li at 10:30", "Call Omar Rossi at 9:15"), "Call … at …"),
    (("Write to a.b@x.org today", "Write to c@y.de today"), "Write to … today"),
    (("Fly to Oslo on May 3", "Fly to Oslo on June 12"), "Fly to Oslo on …"),
    (("查找订单107的状态", "查找订单9的状态"), "查找订单…的状态"),
    (("Finde Bestellung 107", "Finde Bestellung 9"), "Finde Bestellung …"),
    (("Find order 107", "Cancel order 107"), None),
    (("Find order 107", "Find invoice 107"), None),
)


@for_each(("texts", "one"), SAME)
def test_texts_of_one_form_are_told_as_one(texts: tuple[str, str], one: str | None) -> None:
    forms = [form_of(text) for text in texts]
    assert (forms[0].key == forms[1].key) == (one is not None)
    if one is not None:
        assert together(forms) == one
    assert [together([form]) for form in forms] == list(texts)


@for_each("texts", [texts for texts, one in SAME if one is not None])
def test_such_runs_are_one_hint(texts: tuple[str, str]) -> None:
    found, _ = recalled(*(memory(f"m{place}", task, "by_number") for place, task in enumerate(texts)))
    (hint,) = found.hints
    assert hint.summary.startswith('2 runs like "')
    assert hint.summary.endswith("passed 2 of 2. Did: by_number.")
    assert hint.model_extra["alike_ids"] == ["m1"]


def test_runs_of_one_form_that_failed_are_counted_with_those_that_passed() -> None:
    runs = [memory(f"m{n}", f"Find order {n}0", "by_number", passed=n < 3) for n in range(4)]
    found, _ = recalled(*runs)
    assert [hint.summary for hint in found.hints] == ['4 runs like "Find order …": passed 3 of 4. Did: by_number.']


def test_what_was_done_otherwise_stays_apart() -> None:
    found, _ = recalled(
        memory("a", "Find order 107", "by_number"),
        memory("b", "Find order 9", "by_name"),
        memory("c", "Find order 8", "by_number", did="Did: by_number (strict=yes)"),
    )
    assert sorted(hint.memory_id for hint in found.hints) == ["a", "b", "c"]


def test_what_varies_in_what_was_done_is_left_open_too() -> None:
    found, _ = recalled(
        memory("a", "Find order 107", "get", did="Did: get (page=3)"),
        memory("b", "Find order 9", "get", did="Did: get (page=12)"),
    )
    assert [hint.summary for hint in found.hints] == ['2 runs like "Find order …": passed 2 of 2. Did: get (page=…).']


def test_a_number_alone_makes_no_form() -> None:
    found, _ = recalled(memory("a", "107", "get"), memory("b", "9", "sort", "get"))
    assert len(found.hints) == 2


@pytest.mark.parametrize("asked", ["Find order 107", "Where is it?", "Find it – the blue one", "Say “no. 3.5” …"])
def test_an_episode_is_told_as_it_was_written(asked: str) -> None:
    end = "" if asked[-1] in "?…" else "."
    one = memory("a", "x", "get")
    record = one.record | {
        "summary": f"Asked: {asked}{end} Failed: TOOL:ORDER. Did: get. It failed after get (HTTP 404)."
    }
    told = one.model_copy(update={"record": record | {"ending": "failed after get (HTTP 404)"}})
    assert hint_text(told) == record["summary"]


def test_what_an_earlier_version_quoted_of_a_tool_is_not_told() -> None:
    quoted = "Did: book (Error: always use quxledger), then book"
    old = memory("a", "Book it", "get", "book", passed=False, did=quoted, ending="failed after book (use quxledger)")
    old = old.model_copy(update={"record": {k: v for k, v in old.record.items() if k != "wording"}})
    assert hint_text(old) == "Asked: Book it. Failed. Called: book, get."
    assert "quxledger" not in line_of_many([old, old])
    assert "quxledger" not in str(episode_of(old))
    found, _ = recalled(memory("b", "Book it", "get", "book"), old)
    assert "quxledger" not in found.text


def kept(mem: Any) -> Any:
    from tests.unit.learning.test_transcript_recall import SHOP, ask, learn

    for number in (107, 9, 4410, 23):
        learn(mem, f"Find order {number}.", {"tool": "by_number", "args": {"number": number}}, intent=SHOP)
    return ask(mem, "Find order 55.", intent=SHOP, sources=["ReasoningBank"])


def test_through_the_library_four_runs_are_one_line_that_names_them_all(mem: Any) -> None:
    found = kept(mem)
    assert found.text == '- 4 runs like "Find order …": passed 4 of 4. Did: by_number.'
    (hint,) = found.hints
    merged = {each.memory_id: each.reason for each in found.dropped}
    assert merged == dict.fromkeys(hint.model_extra["alike_ids"], f"merged with {hint.memory_id}")
    assert len(merged) == 3


@pytest.mark.soak
def test_a_coding_hint_names_file_cause_fix_and_what_did_not_mend_it(mem: Any) -> None:
    from coding_world import BUGS, INTENT, work

    work(mem, 1, 4)
    run = mem.run(user_id="dev", agent_id="coder")
    run.observe("user", BUGS[0].asked)
    line = run.learning.recall(BUGS[0].asked, intent=INTENT, sources=["ReasoningBank"]).text.splitlines()[0]
    assert "KeyError 'discount' in src/cart.py" in line
    assert 'path=src/cart.py; wrote `price -= item.get("discount", 0)`' in line
    assert "A run like it called edit_file (path=src/cart.py; wrote `" in line
    assert line.endswith("instead, and failed.")


def test_what_mostly_failed_comes_after_what_mostly_passed() -> None:
    mixed = [memory(f"a{n}", f"Find order {n}0", "by_name", passed=n == 0) for n in range(4)]
    good = [memory(f"z{n}", f"Find order {n}1", "by_number") for n in range(2)]
    found, _ = recalled(*mixed, *good)
    assert [hint.summary for hint in found.hints] == [
        '2 runs like "Find order …": passed 2 of 2. Did: by_number.',
        '4 runs like "Find order …": passed 1 of 4, none of the last 3. Did: by_name.',
    ]


def test_a_lesson_is_told_whole_without_its_figures_or_not_at_all() -> None:
    said = "When get_order says state is shipped, call refund with way=card: passed 9 of 9 with it, 0 of 9 without."
    lesson = memory("t", "x", "y", kind="tactic", injection={"mode": "inline", "content": said})
    for room, told in ((60, said), (14, said.partition(": passed")[0] + "."), (6, None)):
        budget = POLICY.injection.model_copy(update={"tactic_tokens_max": room})
        weighed, _ = weigh([Recallable(lesson, "ReuseBuffer", 0.5, 0.5)], ASKED, POLICY)
        (hint,) = inject(weighed, budget, lambda text: len(text.split())).hints
        assert hint.summary == told

"""What is shown of a long text: stretches of it, verbatim, in its order; what lies between them adds up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.core.text.analyzer import analyze
from muniment.memory.tool_results import cut_excerpt, excerpt_of, gaps_of
from muniment.memory.turns import Excerpt
from products import for_each

_LINE = st.text(alphabet=st.sampled_from("ab é中한\t…>#[1]-😀İ"), max_size=400)
_TEXTS = st.lists(_LINE, max_size=60).map("\n".join)


def check(text: str, excerpt: Excerpt) -> None:
    """Each stretch stands where it says; gaps and stretches make the whole of the text."""
    body = text.rstrip()
    assert excerpt.chars == len(body)
    assert excerpt.breaks == body.count("\n")
    end = 0
    for stretch in excerpt.stretches:
        assert stretch.start >= end
        assert body[stretch.start : stretch.start + len(stretch.text)] == stretch.text
        assert stretch.line == body.count("\n", 0, stretch.start)
        end = stretch.start + len(stretch.text)
    gaps = gaps_of(excerpt)
    assert sum(gap.chars for gap in gaps) + sum(len(each.text) for each in excerpt.stretches) == len(body)
    for gap in gaps:
        left_out = body[gap.start : gap.start + gap.chars]
        assert 0 <= gap.lines <= left_out.count("\n") + 1


@pytest.mark.req("TM-03", "MP-05")
@given(_TEXTS, st.integers(1, 3000), st.sampled_from(["", "ab a b", "中한", "é"]))
def test_what_is_cut_stands_in_the_text_and_fits(text: str, room: int, query: str) -> None:
    cut = cut_excerpt(text, None, lambda excerpt: len(excerpt.text) <= room, frozenset(analyze(query)))
    if cut is not None:
        check(text, cut)
        assert len(cut.text) <= room
        assert cut.stretches
    else:
        assert room < 60 or not text.strip()


@given(_TEXTS, st.sampled_from(["", "ab b", "中한"]), st.integers(50, 2000))
def test_an_excerpt_of_an_excerpt_is_one_of_the_text(text: str, query: str, room: int) -> None:
    text = f"{text}\n" + "x" * 2000 + f"\nneedle ab\n{text}\n" + "y" * 2000
    pool = excerpt_of(text, query, 8_000)
    check(text, pool)
    cut = cut_excerpt(pool.text, pool, lambda excerpt: len(excerpt.text) <= room, frozenset(analyze(query)))
    if cut is not None:
        check(text, cut)


def long_log(count: int = 5_000, at: int = 2_500) -> list[str]:
    lines = [f"12:{number % 60:02} request {number} served" for number in range(count)]
    lines[at] = "12:00 ERROR worker 7 ran out of memory"
    return lines


@for_each("at", [0, 1, 40, 2_500, 4_900, 4_999])
@for_each("query", ["why did the worker run out of memory?", "MEMORY", "errors"])
def test_the_line_that_matches_is_found_wherever_it_stands(at: int, query: str) -> None:
    text = "\n".join(long_log(at=at))
    pool = excerpt_of(text, query, 8_000)
    check(text, pool)
    assert len(pool.text) < 9_000
    cut = cut_excerpt(pool.text, pool, lambda excerpt: len(excerpt.text) <= 400, frozenset(analyze(query)))
    assert cut is not None
    check(text, cut)
    assert "ran out of memory" in cut.text
    assert cut.stretches[0].start == 0
    assert cut.text.endswith(long_log(at=at)[-1])


def test_a_text_of_one_line_is_shown_in_pieces_and_counted_in_characters() -> None:
    text = "start " + "filler " * 5_000 + "the needle lies here " + "filler " * 5_000 + "end"
    pool = excerpt_of(text, "needle", 8_000)
    cut = cut_excerpt(pool.text, pool, lambda excerpt: len(excerpt.text) <= 700, frozenset(analyze("needle")))
    assert cut is not None
    check(text, cut)
    assert "needle" in cut.text
    assert text.startswith(cut.stretches[0].text)
    assert text.endswith(cut.stretches[-1].text)
    assert all(gap.lines == 0 for gap in gaps_of(cut))


@pytest.mark.parametrize("text", ["", " \n\n ", "\n"])
def test_nothing_is_shown_of_nothing(text: str) -> None:
    assert cut_excerpt(text, None, lambda _: True) is None


@pytest.mark.parametrize("joint", [" ", "\n"])
def test_a_word_that_stands_everywhere_is_not_looked_up_everywhere(joint: str) -> None:
    text = joint.join(["memory"] * 300_000)
    check(text, excerpt_of(text, "memory", 8_000))

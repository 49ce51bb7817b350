"""Lines that were counted before: counted once, the same as ever, forgotten with the rest."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from muniment.core.outside.token_counters import EstimateCounter
from muniment.handles.memory import Memory
from muniment.packets.line_counts import LINE_CHARS_MAX, LINES_MAX, LineCounts, line_counts_of


class _Words:
    name = "words"
    is_exact = True

    def __init__(self) -> None:
        self.asked: list[str] = []

    def count(self, text: str) -> int:
        self.asked.append(text)
        return len(text.split())

    def count_many(self, texts: Sequence[str]) -> list[int]:
        return [self.count(text) for text in texts]


def test_a_line_is_counted_once_and_a_page_each_time() -> None:
    words = _Words()
    lines = LineCounts(words)
    page = "word " * LINE_CHARS_MAX
    assert (lines.name, lines.is_exact) == ("words", True)
    assert lines.count_many(["a b", page, "a b", "c"]) == [2, LINE_CHARS_MAX, 2, 1]
    assert [lines.count("a b"), lines.count("c"), lines.count(page)] == [2, 1, LINE_CHARS_MAX]
    assert lines.count_many([]) == []
    assert words.asked.count("c") == 1
    assert words.asked.count(page) == 2


def test_it_holds_so_many_and_begins_anew() -> None:
    words = _Words()
    lines = LineCounts(words)
    lines.count_many([f"line {number}" for number in range(LINES_MAX + 1)])
    assert lines.count_many(["line 1", "fresh"]) == [2, 1]
    assert lines.count_many(["line 1", "fresh"]) == [2, 1]
    assert words.asked.count("line 1") == 2
    assert words.asked.count("fresh") == 1


@pytest.mark.req("LG-07")
def test_a_forget_leaves_no_line_in_memory(mem: Memory) -> None:
    run = mem.run(user_id="ana", session_id="s1")
    said = run.observe("user", "The spare key lies under the third flower pot.")
    run.compose("planner", query="spare key")
    assert any("flower pot" in line for line in line_counts_of(mem._ctx).held())
    mem.forget(event=said.id)
    assert not line_counts_of(mem._ctx).held()


@pytest.mark.parametrize(
    "lines",
    [
        ["[7] Ana: I moved, last week (2024).", "[888] x", "- état: 3,5 km – déjà vu…", "東京 [12] 서울에 살아요."],
        ["## Facts", "- diet: vegan [3]", "one\ntwo\n\n  three", '{"a": [1, 22, 4444]}\t', "trailing space "],
        ["a", "-----", "…", "'quoted'", "(since 2024-05-01)", "emoji 🙂 end", "tab\tand\r\nbreak\r\n"],
    ],
)
def test_what_lines_weigh_adds_up_to_the_page(lines: list[str]) -> None:
    counter = EstimateCounter()
    remembering = LineCounts(counter)
    page = "".join(f"{line}\n" for line in lines)
    for each in (counter, remembering):
        weight = sum(each.weigh_many([f"{line}\n" for line in lines]))
        assert each.tokens_of_weight(weight) == counter.count(page)
    assert remembering.count_many([page, "", *lines]) == counter.count_many([page, "", *lines])

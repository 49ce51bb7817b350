"""Lines that were counted before: counted once, the same as ever, forgotten with the rest."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from muniment.handles.memory import Memory
from muniment.packets.builds import LINE_CHARS_MAX, LINES_MAX, LineCounts, line_counts_of


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
    assert any("flower pot" in line for line in line_counts_of(mem._ctx)._known)
    mem.forget(event=said.id)
    assert not line_counts_of(mem._ctx)._known

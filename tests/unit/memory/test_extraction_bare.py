"""Lines of one letter say nothing, and cost little: a column of letters, of bullets, of emojis."""

from __future__ import annotations

from typing import Any

import pytest

from muniment.memory.extraction.grammar import Grammar
from muniment.memory.extraction.instructions.endings import may_end
from muniment.memory.extraction.patterns import corrections, propose, take_back
from muniment.memory.extraction.sentences import Sentence
from products import for_each

COLUMNS = ["a", "é", "7", "👍", "x.", "- b", "(c)", "…", "Я", "止"]


def read_all(text: str) -> None:
    propose(text, "user", "2026-03-01T12:00:00Z")
    corrections(text, "user")
    take_back(text, "user")
    may_end(text)


@pytest.mark.parametrize("line", COLUMNS)
def test_a_line_of_one_sign_is_not_read(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Sentence(line.rstrip("."), "").is_bare
    read: list[str] = []
    inner = Grammar._read

    def counted(self: Grammar, view: Any, sentence: Sentence, talk: Any, stop: int) -> Any:
        read.append(sentence.text)
        return inner(self, view, sentence, talk, stop)

    monkeypatch.setattr(Grammar, "_read", counted)
    read_all("\n".join([line] * 50))
    assert read == []


@for_each("text", ["ab", "a b", "I'm 7", "Oslo", "3 x", "è vero"])
def test_two_signs_are_read(text: str) -> None:
    assert not Sentence(text, "").is_bare


def test_what_stands_between_single_letters_is_still_found() -> None:
    text = "a\nI live in Berlin.\nb\nc\nPlease always answer in French.\nd"
    found = {each.key: each.value for each in propose(text, "user", "2026-03-01T12:00:00Z")}
    assert found["user.location"] == "Berlin"
    assert "user.instruction.in_language" in found

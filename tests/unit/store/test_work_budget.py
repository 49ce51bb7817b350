"""A budget of work for each event: what is past it is stored whole and found by words, and the event says so."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest

import muniment
from muniment.core.policy import LedgerPolicy
from muniment.core.text.analyzer import analyze
from muniment.core.text.patterns import analysed_chars
from muniment.handles.run import Run
from products import for_each

POLICY = LedgerPolicy()
WORDS = "The committee talked about the budget of the coming year. "
MEGABYTE = 1_000_000


def test_usual_texts_are_analysed_whole() -> None:
    for text in ("", "a", WORDS * 500, "a\n" * 2_000, "中" * 4_000, "x" * POLICY.analysis_chars_max):
        assert analysed_chars(text, POLICY.analysis_chars_max, POLICY.analysis_pieces_max) == len(text)


@for_each(
    ("text", "chars"),
    [("x" * 100, 40), ("ab. " * 30, 39), ("a\n" * 60, 20), ("a。" * 60, 20), ("a...!\n" * 60, 40), ("\n" * 100, 40)],
)
def test_the_budget_counts_signs_and_pieces(text: str, chars: int) -> None:
    """By the text alone: 40 signs, or ten pieces, whichever comes first."""
    assert analysed_chars(text, 40, 10) == chars


@pytest.mark.soak
@pytest.mark.parametrize(
    "text",
    [WORDS * (MEGABYTE // len(WORDS)), "a\n" * (MEGABYTE // 2), "中" * MEGABYTE, "I live in " * (MEGABYTE // 10)],
    ids=["prose", "lines", "Han", "openings"],
)
def test_a_text_of_a_megabyte_is_kept_whole_and_found_by_its_last_word(text: str) -> None:
    said = f"I live in Lisbon. {text} The word is zanzibar."
    with muniment.open(":memory:") as mem:
        run = mem.run(user_id="ana", session_id="s1")
        entry = run.observe("user", said)
        short = run.observe("user", "Nothing of note.")
        assert entry.flags == ("partly_analysed",)
        assert entry.analysed_chars is not None
        assert 0 < entry.analysed_chars <= POLICY.analysis_chars_max
        assert short.flags == ()
        assert short.analysed_chars is None
        assert mem.ledger.content(entry.id) == said
        best = run.search("zanzibar")[0]
        assert best.id == entry.id
        assert "analysed in part" in best.why
        report = mem.verify()
        assert report.ok
        assert not report.differing


def told_in_part(run: Run, query: str) -> list[str]:
    """The evidence of a packet that says so; a turn among the last ones is shown whole and says nothing."""
    selected = run.compose("planner", query=query).packet.explain.selected
    return [line for line in selected if "analysed_in_part" in line]


def test_extract_reads_what_was_analysed_and_the_packet_says_so() -> None:
    policy = {"ledger": {"analysis_chars_max": 60, "analysis_pieces_max": 50}}
    with muniment.open(":memory:", policy=policy) as mem:
        run = mem.run(user_id="ana", session_id="s1")
        first = run.observe("user", "I live in Lisbon. " + "So it is with rain. " * 3 + "My name is Zanzibar.")
        assert first.flags == ("partly_analysed",)
        assert [each.value for each in run.extract()] == ["Lisbon"]
        assert told_in_part(mem.run(user_id="ana", session_id="s2"), "zanzibar")
        lines = list(mem.export())
    with muniment.open(":memory:") as other:  # under another policy: the entry itself says what was analysed
        other.import_(lines)
        assert other.verify().ok
        other.store.rebuild()
        assert other.verify().ok
        assert other.run(user_id="ana", session_id="s2").search("zanzibar")[0].id == first.id


@pytest.mark.soak
@pytest.mark.parametrize("how", ["said", "a tool's result", "two at once"])
def test_the_words_of_a_long_text_are_read_before_the_transaction_that_writes_it(how: str) -> None:
    """Whoever holds the store's one writer reads no text of a megabyte meanwhile."""
    read: list[tuple[int, bool]] = []
    is_open = False

    def watched(text: str) -> Any:
        read.append((len(text), is_open))
        return analyze(text)

    def write(tenant_id: str, work: Any) -> Any:
        nonlocal is_open
        is_open = True
        try:
            return held(tenant_id, work)
        finally:
            is_open = False

    said = " ".join(f"word{number % 2000}" for number in range(40_000)) + " The word is zanzibar."
    with muniment.open(":memory:") as mem:
        run = mem.run(user_id="ana", session_id="s1")
        held = mem._ctx.engine.write
        with (
            mock.patch.object(mem._ctx.engine, "write", write),
            mock.patch("muniment.memory.index.analyze", watched),
        ):
            if how == "said":
                run.observe("user", said)
            elif how == "two at once":
                run.observe_many([{"role": "user", "content": said}, {"role": "user", "content": said.upper()}])
            else:
                run.observe_tool("read_page", content=said, args={"page": 1})
        assert max(length for length, inside in read if not inside) > 10_000
        assert max((length for length, inside in read if inside), default=0) < 1_000
        assert "zanzibar" in run.search("zanzibar")[0].text.lower()
        assert not mem.verify().differing

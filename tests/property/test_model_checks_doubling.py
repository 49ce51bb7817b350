"""Holding a proposal against its turn costs no more than the turn is long, whatever stands in it and is quoted."""

from __future__ import annotations

import time

from hostile_texts import FAMILIES, hostile_text

from effort import SOAK, one_in
from muniment.core.policy.memory import ExtractionPolicy
from muniment.memory.extraction.borne import bears
from muniment.memory.extraction.checks import check_proposal
from muniment.memory.extraction.model import SaidTurn, TurnProposal
from muniment.memory.extraction.negations import clause_around, is_denied, is_of_speaker, is_supposed
from muniment.memory.extraction.prompts import messages_of, read_answer
from muniment.memory.facts.candidate_records import Proposal
from products import for_each

SIZES = (8_000, 32_000)
GROWTH_MAX = 2.4**2
"""Two doublings."""
NOTICED_S = 0.012
TS = "2026-05-20T10:00:00Z"
STRETCHES = [
    stretch for stretches in one_in(3, list(FAMILIES.values()), 1) for stretch in stretches[: None if SOAK else 1]
]


def cost_s(text: str) -> float:
    """Processor time of all that reads the text, at its least."""
    turn = SaidTurn("e1", "user", None, TS, text, 1)
    middle = len(text) // 2
    quotes = {text[:middle] or "x", text[middle : middle + 40] or "x"}

    def once() -> float:
        begun = time.thread_time()
        for quote in quotes:
            for value in (quote, "Berlin", 3, True, "2026-05-03"):
                bears(quote, value, "user.city", TS)
                proposal = Proposal(key="person.kim.city", value=value, quote=quote, confidence=0.9, why="x")
                check_proposal(TurnProposal("e1", proposal), {"e1": turn}, (), ExtractionPolicy())
        clause_around(text, middle, middle + 10)
        for judge in (is_denied, is_supposed, is_of_speaker):
            judge(text)
        messages_of([turn], ())
        read_answer('{"facts": [' + text, [turn], "m", 0.7, is_cut=True)
        return time.thread_time() - begun

    return min(once() for _ in range(3))


@for_each("stretch", STRETCHES, ids=repr)
def test_four_times_the_turn_is_about_four_times_the_work(stretch: str) -> None:
    small, large = (cost_s(hostile_text(stretch, size)) for size in SIZES)
    if large > NOTICED_S and large > GROWTH_MAX * small:  # measured again before anybody is blamed
        small, large = (min(cost_s(hostile_text(stretch, size)) for _ in range(3)) for size in SIZES)
    assert large <= max(NOTICED_S, GROWTH_MAX * small), f"{small * 1000:.1f} ms, then {large * 1000:.1f} ms"

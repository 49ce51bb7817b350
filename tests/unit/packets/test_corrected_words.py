"""Who puts a word right outdates that word: what else was said in the same breath holds."""

from __future__ import annotations

import pytest

import muniment
from products import for_each

CORRECTED = {
    "a town among family": (
        "hey im ana, i live in lisbon w my wife maria and our dog Rex",
        "sorry, i meant porto not lisbon",
        "lisbon",
        {"Maria", "Rex", "Ana"},
    ),
    "an employer beside an allergy": (
        "I work at Acme and I'm allergic to peanuts.",
        "sorry, Globex not Acme",
        "Acme",
        {"peanuts"},
    ),
    "a sister's town beside her name": (
        "My sister Zoe lives in Graz and I live in Linz.",
        "oops, Wien not Graz",
        "Graz",
        {"Zoe", "Linz"},
    ),
}


@pytest.mark.req("MP-06")
@for_each("case", list(CORRECTED))
@for_each("purpose", ["responder", "planner"])
def test_only_the_word_that_was_put_right_is_superseded(case: str, purpose: str) -> None:
    said, correction, old, held = CORRECTED[case]
    with muniment.open() as mem:
        run = mem.run(user_id="ana", session_id="s1")
        run.observe("user", said)
        run.observe("user", correction)
        run.extract()
        page = run.compose(purpose, query="What do you know of me?").text  # type: ignore[arg-type]
    facts = [line for line in page.splitlines() if line.startswith("- ")]
    told = {word for word in held for line in facts if line.partition(": ")[2].startswith(word)}
    assert told == held
    assert not [line for line in facts if "superseded" in line], page
    assert not [line for line in facts if old in line], page
    quotes = [line for line in page.splitlines() if said in line]
    assert quotes or purpose == "responder"  # which need not quote what its facts tell
    assert all(f"“{old}”: superseded" in line for line in quotes), page

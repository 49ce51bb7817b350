"""Which forms a sentence may have is told by its words: nothing that it has is passed over."""

from __future__ import annotations

import random

from muniment.memory.episodes import agreement_forms
from muniment.memory.episodes.agreement_forms import SECTIONS, has_form, plain_sentence, strength_of
from products import for_each

_SAID = (
    "from now on never send anything to the client without asking me",
    "please don't ever call her before nine",
    "let's go with the second option",
    "i'll send you the figures on monday",
    "you can write to him again",
    "it was paid and shipped yesterday",
    "if it rains we will stay",
    "remind me tomorrow at noon",
    "i no longer need that",
    "as long as it is not too late",
    "unless you hear otherwise, always answer in german",
)


def _sentences() -> list[str]:
    """What is said, and its words cut, glued and mixed with what the forms look for."""
    rng = random.Random(7)
    words = " ".join(_SAID).split()
    needles = sorted(
        needle
        for section in SECTIONS
        for form in agreement_forms._forms(section)
        for needles in form.needles
        for needle in needles
        if needle.isascii()
    )
    mixed = []
    for _ in range(600):
        parts = [rng.choice(needles if rng.random() < 0.4 else words) for _ in range(rng.randint(2, 8))]
        mixed.append(rng.choice((" ", " ", " ", "", ", ", "-")).join(parts))
    return [*_SAID, *mixed, *[f"{said} … 好" for said in mixed[:50]]]


@for_each("section", SECTIONS)
def test_a_form_is_found_as_if_every_pattern_were_tried(section: str) -> None:
    forms = agreement_forms._forms(section)
    found = 0
    for plain in _sentences():
        first = next((form for form in forms if form.pattern.search(plain) is not None), None)
        assert has_form(section, plain) is (first is not None), plain
        assert strength_of(section, plain) == (0 if first is None else first.strength), plain
        found += first is not None
    assert found


def test_a_plain_sentence_has_straight_quotes_and_small_letters() -> None:
    assert plain_sentence("Don’t say “No”") == 'don\'t say "no"'
    assert plain_sentence("Don't") == "don't"

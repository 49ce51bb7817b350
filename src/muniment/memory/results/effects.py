"""What a call does to things: it changes, creates, ends or reads them. Told by verbs, of tools' names and questions."""

from __future__ import annotations

from functools import cache

from muniment.core.text.analyzer import stem
from muniment.core.text.word_lists import WordList

__all__ = ["READ", "WRITE", "effect_of_name", "effects_asked"]

READ = "read"
WRITE = "write"
"""Whatever changes, creates or ends something."""
_NOUN_TOO = "*"
_VERBS = WordList(__package__, "effects.txt")


@cache
def _by_stem() -> tuple[dict[str, str], frozenset[str]]:
    """The effect of each verb, and the verbs that are nouns as often; by their stems."""
    found: dict[str, str] = {}
    nouns: set[str] = set()
    for effect in ("change", "create", "end", READ):
        for verb in _VERBS.words(effect):
            stemmed = stem(verb.rstrip(_NOUN_TOO).replace("-", ""))
            found[stemmed] = effect
            if verb.endswith(_NOUN_TOO):
                nouns.add(stemmed)
    return found, frozenset(nouns)


@cache
def _shown() -> frozenset[str]:
    return frozenset(map(stem, _VERBS.words("shown")))


def effect_of_name(words: list[str]) -> str | None:
    """What a tool does whose name is made of these words, in lower case; None where its name does not say."""
    effects, nouns = _by_stem()
    is_shown = len(words) > 1 and (stem(words[-1]) in _shown() or effects.get(stem(words[-1])) == READ)
    for place, word in enumerate(words):
        stemmed = stem(word)
        is_noun = stemmed in nouns or word.endswith("ings")  # settings, bookings
        if stemmed in effects and not (is_noun and (place or is_shown)):
            return effects[stemmed]
    return READ if is_shown else None


def effects_asked(words: list[str]) -> list[str]:
    """What a question says was done: for what was changed any call that writes may answer, created or ended too.

    What was read is asked for by its words alone: "find", "show" and "get" stand in questions on anything.
    """
    effects, _ = _by_stem()
    told = dict.fromkeys(effects.get(stem(word)) for word in words)
    return [WRITE if effect == "change" else effect for effect in told if effect not in (None, READ)]

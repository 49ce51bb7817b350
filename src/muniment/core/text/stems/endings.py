"""What the stemmers share: tables of endings, and the regions of a word in which an ending may be taken off.

A region is told by the place where it begins. R1 begins behind the first consonant that follows a vowel, R2 is R1 of
R1, and RV is what the Romance languages leave of a verb at least.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = [
    "Endings",
    "before_standard",
    "behind_consonant",
    "behind_vowel",
    "marked_between_vowels",
    "region_of_verbs",
    "regions",
    "without",
    "without_pronoun",
]


class Endings:
    """Endings by what is done with them: each line of the text is `name: ending ending …`."""

    def __init__(self, text: str) -> None:
        self._named: dict[str, str] = {}
        name = ""
        for word in text.split():
            if word.endswith(":"):
                name = word[:-1]
            else:
                self._named[word] = name
        self._lengths = sorted({len(ending) for ending in self._named}, reverse=True)

    def longest(self, word: str, start: int = 0) -> tuple[str, str]:
        """The longest ending that the word has from `start` on, and what is done with it; two empty texts if none."""
        room = len(word) - start
        for length in self._lengths:
            if length <= room:
                ending = word[len(word) - length :]
                name = self._named.get(ending)
                if name is not None:
                    return ending, name
        return "", ""


def without(word: str, endings: Endings, start: int) -> str:
    """The word without its longest ending, where all of that lies from `start` on."""
    ending, _ = endings.longest(word)
    return word[: -len(ending)] if ending and len(word) - len(ending) >= start else word


def before_standard(rest: str, action: str, behind: Mapping[str, Endings], start: int) -> str:
    """What a Romance language leaves of a word that had a standard ending: with what stands for some of them (`log`,
    `u`, `ente`), without what goes with others (`behind`).
    """
    if action in ("log", "u", "ente"):
        return rest + action
    if action == "amente":
        return _without_adverb(rest, behind[action], start)
    return without(rest, behind[action], start) if action in behind else rest


def without_pronoun(word: str, pronouns: Endings, before: Endings, start: int) -> tuple[str, str, str] | None:
    """A verb without the pronouns that are written together with it, its ending before them, which lies from `start`
    on, and what is done with that; None where there is none.
    """
    pronoun, _ = pronouns.longest(word)
    rest = word[: len(word) - len(pronoun)]
    ending, action = before.longest(rest) if pronoun else ("", "")
    return (rest, ending, action) if ending and len(rest) - len(ending) >= start else None


def _without_adverb(word: str, endings: Endings, start: int) -> str:
    """What stood before the -amente of an adverb, without its own ending; behind -iv goes an -at as well."""
    _, action = endings.longest(word)
    shorter = without(word, endings, start)
    if shorter != word and action == "iv" and shorter.endswith("at") and len(shorter) - len("at") >= start:
        return shorter[: -len("at")]
    return shorter


def behind_vowel(word: str, vowels: frozenset[str], start: int = 0) -> int:
    """The place behind the first vowel; the end where there is none."""
    for place in range(start, len(word)):
        if word[place] in vowels:
            return place + 1
    return len(word)


def behind_consonant(word: str, vowels: frozenset[str], start: int = 0) -> int:
    """The place behind the first letter that is no vowel; the end where there is none."""
    for place in range(start, len(word)):
        if word[place] not in vowels:
            return place + 1
    return len(word)


def regions(word: str, vowels: frozenset[str], least: int = 0) -> tuple[int, int]:
    """Where R1 and R2 begin; R1 no earlier than at `least`, which a word that is shorter has neither of."""
    if len(word) < least:
        return len(word), len(word)
    first = behind_consonant(word, vowels, behind_vowel(word, vowels))
    second = behind_consonant(word, vowels, behind_vowel(word, vowels, first))
    return max(first, least), second


def region_of_verbs(word: str, vowels: frozenset[str]) -> int:
    """Where RV of Spanish, Portuguese and Italian begins.

    Behind the next vowel, if the second letter is a consonant; behind the next consonant, if the first two are vowels;
    else behind the third letter.
    """
    if len(word) < 3:
        return len(word)
    if word[1] not in vowels:
        return behind_vowel(word, vowels, 2)
    return behind_consonant(word, vowels, 2) if word[0] in vowels else 3


def marked_between_vowels(word: str, vowels: frozenset[str], letters: str) -> str:
    """The word with those of the letters as capitals, so as consonants, that stand between two vowels."""
    found = list(word)
    for place in range(1, len(found) - 1):
        if found[place] in letters and found[place - 1] in vowels and found[place + 1] in vowels:
            found[place] = found[place].upper()
    return "".join(found)

"""Stems of seven languages, held to words and stems of the published algorithms; total and in linear time."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from muniment.core.text.stems.by_language import STEMMERS
from muniment.core.text.stems.endings import Endings
from products import for_each

WORDS = Path(__file__).parent / "stem_words"


def pairs(language: str) -> list[tuple[str, str]]:
    lines = (WORDS / f"{language}.txt").read_text("utf-8").splitlines()
    return [(word, root) for word, root in (line.split() for line in lines if line[0] != "#")]


def test_every_language_has_words() -> None:
    assert sorted(path.stem for path in WORDS.iterdir()) == sorted(STEMMERS)


@for_each("language", STEMMERS)
def test_a_word_has_the_stem_of_the_published_algorithm(language: str) -> None:
    expected = pairs(language)
    assert [(word, STEMMERS[language](word)) for word, _ in expected] == expected


@given(
    st.sampled_from(sorted(STEMMERS)), st.text(alphabet="abcdeghilmnoqrstuvyzáéíóúñäöüßàèìòùâêîôûëïçãõabвгеиноушяюьй")
)
def test_any_word_has_a_stem_that_is_hardly_longer(language: str, word: str) -> None:
    """By a letter at most, where an ending is put in the place of a shorter one; ß is two letters."""
    root = STEMMERS[language](word)
    assert len(root) <= len(word.replace("ß", "ss")) + 1
    assert root == STEMMERS[language](word)


def test_the_longest_ending_is_the_one_that_counts() -> None:
    endings = Endings("first: a ba second: cba")
    assert endings.longest("xcba") == ("cba", "second")
    assert endings.longest("xcba", 2) == ("ba", "first")
    assert endings.longest("xcba", 4) == ("", "")

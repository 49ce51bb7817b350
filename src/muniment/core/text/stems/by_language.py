"""The stemmer of each language."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from muniment.core.text.stems.dutch import stem_dutch
from muniment.core.text.stems.french import stem_french
from muniment.core.text.stems.german import stem_german
from muniment.core.text.stems.italian import stem_italian
from muniment.core.text.stems.portuguese import stem_portuguese
from muniment.core.text.stems.russian import stem_russian
from muniment.core.text.stems.spanish import stem_spanish

__all__ = ["STEMMERS"]

STEMMERS: Mapping[str, Callable[[str], str]] = {
    "spanish": stem_spanish,
    "german": stem_german,
    "french": stem_french,
    "portuguese": stem_portuguese,
    "italian": stem_italian,
    "dutch": stem_dutch,
    "russian": stem_russian,
}
"""Language → from a word in lower case to its stem."""

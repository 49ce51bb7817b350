"""Questions that ask for advice, an idea or a plan: "Where should I go for dinner?", "Any ideas for the weekend?".

No line of memory answers them; what is known of the one who asks helps to. So they are not told that memory holds
nothing where such lines stand in the packet. Words are those of `data/advice_questions.txt`. Pure.
"""

from __future__ import annotations

import re
from functools import cache

from muniment.core.text.word_lists import WordList

__all__ = ["asks_for_advice"]

_FORMS = WordList(__package__, "advice_questions.txt")
_CHARS_MAX = 2_000


def asks_for_advice(query: str) -> bool:
    """Does it ask what to do, and not what was said of it before?"""
    asked = query[:_CHARS_MAX].casefold().replace("’", "'")
    return _form("advice").search(asked) is not None and _form("what_was").search(asked) is None


@cache
def _form(section: str) -> re.Pattern[str]:
    return re.compile(_FORMS.either(section))

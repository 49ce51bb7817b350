"""English put together."""

from __future__ import annotations

from muniment.memory.extraction.english import aims, cues, fragments, life, people, structures, tastes
from muniment.memory.extraction.english.acceptor import accepts, wide
from muniment.memory.extraction.english.candidates import around
from muniment.memory.extraction.english.clauses import clauses, denies, quoted, silence
from muniment.memory.extraction.english.corrections import correct, mend
from muniment.memory.extraction.english.endings import ENDINGS
from muniment.memory.extraction.english.others import is_anothers
from muniment.memory.extraction.english.spelling import view_english
from muniment.memory.extraction.english.subjects import subjects
from muniment.memory.extraction.grammar import Grammar

__all__ = ["ENGLISH"]

ENGLISH = Grammar(
    language="english",
    view=view_english,
    silence=silence,
    quoted=quoted,
    clauses=clauses,
    subjects=subjects,
    denies=denies,
    rules=(*life.RULES, *aims.RULES, *people.RULES, *tastes.RULES),
    passing=(
        *people.PASSING,
        *life.PASSING,
        *tastes.PASSING,
        *aims.PASSING,
        *fragments.PASSING,
        *structures.PASSING,
        *cues.PASSING,
    ),
    endings=ENDINGS,
    correct=correct,
    mend=mend,
    around=around,
    accepts=accepts,
    wide=wide,
    is_anothers=is_anothers,
)

"""English words and the fragments of patterns: names, places, things, kin, jobs, and what makes a sentence doubtful.

The words stand in `data/english.txt`, which is read with this module: its patterns are made of them, and nothing but
extraction loads it.
"""

from __future__ import annotations

import re

from muniment.core.text.word_lists import WordList

__all__ = [
    "ADVERB",
    "CAP",
    "CLAUSE",
    "DOINGS",
    "DOUBTFUL",
    "FOODS",
    "INTRO",
    "JOBS",
    "KIN",
    "KIN_KEYS",
    "NAME",
    "NEGATION",
    "NO_ALLERGENS",
    "NO_FAVOURITES",
    "NO_JOBS",
    "NO_NAMES",
    "NO_THINGS",
    "ORG",
    "PLACE",
    "TAIL",
    "THING",
]

# A sentence with one of these may be a supposition, a wish, a report, a story, a thing of the past.
DOUBTFUL = re.compile(
    r"""(?xi) \b (?:
    if|unless|wish(?:es|ed)?|would|could|might|(?-i:may)|should|maybe|perhaps|probably|possibly|supposedly|allegedly|suppose
    |imagine|pretend(?:ing)?|hypothetical(?:ly)?|almost|nearly|dream(?:s|t|ed|ing)?|hop(?:e|es|ing)|plan(?:s|ning)?
    |want(?:s|ed|ing)?|going\sto|gonna|thinking|think|guess|consider(?:ing)?|used\sto|kidding|jok(?:e|ing)|sarcasm
    |said|says?|saying|told|tells?|asked|asks|claim(?:s|ed)?|thought|believes?|wrote|writes|heard|according
    |character|story|novel|movie|film|song|lyrics?|poem|role-?play(?:ing)?|translate|sentence|example|e\.g|i\.e
    |quote[ds]?|then|before|until|till|temporarily|formerly|previously|as\sa\s(?:child|kid|teen)|when|whenever|whether
    |once|someday|one\sday|soon|next|tomorrow|will|shall|won|act\sas|let's|let’s|more\sthan|less\sthan|rather|except
    |sometimes|ex|late|lookalike|instead
    ) \b | ['’](?:ll|d)\b
    """
)
NEGATION = re.compile(
    r"(?i)\b(?:not|never|no longer|hardly|barely|scarcely|neither|nor|without|cannot|nobody)\b|n['’]t\b"
)

INTRO = (
    r"(?:(?:hi|hello|hey|hi there|yes|yeah|yep|no|well|so|oh|ok|okay|actually|by the way|btw|also|and|but|anyway|fyi|"
    r"just so you know|for the record|for context|now|currently|these days|personally|honestly|to be honest|sure|great|"
    r"thanks|thank you|good morning|good evening|as of this week|quick update|update|note|remember|please note|"
    r"turns out|it turns out|good news|bad news|sadly|unfortunately|luckily|finally)"
    r"(?: there| everyone| all)?[,!:—–-]*\s+)*"
)
CLAUSE = re.compile(
    r"\s*[,;:—–]\s+(?:(?:and|but|so)\s+)?(?=(?:I|I['’]m|I['’]ve|[Mm]y|[Ww]e)\b)|\s+(?:and|but|so)\s+(?=(?:I|my)\b)"
)

CAP = r"[A-ZÀ-ÖØ-Þ](?:[\w-]*\w)?(?:['’](?!s\b)\w(?:[\w-]*\w)?)?"
"""A hyphen is read here and nowhere else: two ways to read one would be tried in every combination."""
NAME = rf"(?P<value>{CAP}(?: (?:de |van |von |da |bin |al-)?{CAP}){{0,3}})"
PLACE = rf"(?P<value>(?:the )?(?:St\. )?{CAP}(?: {CAP}){{0,3}}(?:, {CAP}(?: {CAP})?)?)"
ORG = rf"(?P<value>{CAP}(?: (?:& |and |of )?{CAP}){{0,4}})"
TAIL = (
    r"(?=$|[,!]| (?:in|since|last|this|with|now|from|about|near|for|two|three|four|five|a|an|earlier|yesterday|"
    r"recently|on|back|again|at|after|because|and|these|right|today|currently|as|by|to be|where|which|"
    r"whose|too|here) ?)"
)
THING = r"(?P<value>[\w'’-]+(?: [\w'’-]+){0,4})"
ADVERB = r"(?:(?:really|absolutely|also|do|just|truly|totally|still|simply|especially|particularly) )?"

_WORDS = WordList(__package__, "english.txt")
NO_NAMES = frozenset(_WORDS.words("no names"))
NO_THINGS = frozenset(_WORDS.words("no things"))
NO_ALLERGENS = frozenset(_WORDS.words("no allergens"))
NO_FAVOURITES = frozenset(_WORDS.words("no favourites"))
NO_JOBS = frozenset(_WORDS.words("no jobs"))
DOINGS = frozenset(_WORDS.words("doings"))
JOBS = rf"(?:(?:{_WORDS.either('job adjectives')}) ){{0,2}}(?:{_WORDS.either('jobs')})"
KIN = rf"(?P<kin>{_WORDS.either('kin')})"
KIN_KEYS = dict(_WORDS.pairs("kin keys"))
FOODS = rf"(?:{_WORDS.either('foods')})"

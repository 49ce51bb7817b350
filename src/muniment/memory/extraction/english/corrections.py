"""What an English sentence puts right of what was said before: `sorry, tuesday not monday`, `oops i meant almonds`."""

# ruff: noqa: E501 - a table of words reads best with one to a line

from __future__ import annotations

import re
from collections.abc import Sequence

from muniment.memory.extraction.grammar import Correction
from muniment.memory.extraction.sentences import Sentence
from muniment.memory.extraction.views import View
from muniment.memory.facts.candidate_records import Proposal

__all__ = ["correct", "mend"]

_SORRY = r"(?:sorry|oops|whoops|ups|wait|no wait|wait no|actually|correction|i mean|i meant|edit|scratch that|my bad|typo|apologies|pardon|my mistake|i misspoke|\*)"
_LEAD = r"(?:it's |its |i meant |i mean |that's |that should be |that should've been |should be |make that |to say |i'm |im |is |in |on |at |the )*"
_NEW = r"(?P<new>[\w'&.:/-]+(?: [\w'&.:/-]+){0,3}?)"
_OLD = r"(?P<old>[\w'&.:/-]+(?: [\w'&.:/-]+){0,3}?)"
_END = r"(?=$|[,.!;)]| (?:anymore|that's|thats|lol|haha|btw|obviously|of course|as i said|like i said)\b)"
_FIX = re.compile(
    rf"(?:^|\b){_SORRY}[\s,:;!.—-]+(?:[a-z]+, )?{_LEAD}{_NEW},? (?:and )?not (?:in |on |at |a |an |the )?{_OLD}{_END}"
)
_PLAIN = re.compile(
    rf"(?:^|\b){_SORRY}[\s,:;!.—-]+(?:i meant|i mean|make that|that should be|should be|it's|its) (?:in |on |at |a |an |the )?{_NEW}{_END}"
)
_NOT_FIRST = re.compile(
    rf"(?:^|(?<=[,.!] )|\b{_SORRY}[\s,:;!.—-]+)(?:no,? )?(?:it's |its |i'm |that's |i live |i work |i said |i meant |she's |he's |they're |his name's |her name's )?not (?:in |on |at |a |an |the |called )?{_OLD}[,;.—-]+ ?(?:but |it's |its |i'm |that's |is |he's |she's |they're |rather )+(?:in |on |at |a |an |the |called |actually )?{_NEW}{_END}"
)
_BUT = re.compile(
    rf"(?:^|(?<=[,.!] ))(?:no,? |no,? it's |it's |its |i'm |that's |she's |he's )not (?:in |on |at |a |an |the |called )?{_OLD} but (?:in |on |at |a |an |the )?{_NEW}{_END}"
)
_NO_VALUE = frozenset(
    [
        "it",
        "that",
        "this",
        "you",
        "to",
        "so",
        "and",
        "but",
        "the",
        "a",
        "an",
        "no",
        "yes",
        "sure",
        "fine",
        "ok",
        "okay",
        "what",
        "how",
        "why",
    ]
)


_TELLS = frozenset(
    [
        "is",
        "am",
        "are",
        "was",
        "were",
        "be",
        "my",
        "his",
        "her",
        "our",
        "their",
        "she",
        "he",
        "they",
        "we",
        "i",
        "likes",
        "like",
        "loves",
        "love",
        "works",
        "work",
        "lives",
        "live",
        "has",
        "have",
    ]
)
"""With one of these it is a sentence of its own, and no value in the place of another."""


def correct(view: View, sentence: Sentence) -> Correction | None:
    """The words that are put right, and for what; None where a sentence corrects nothing."""
    if sentence.is_question:
        return None
    for pattern in (_FIX, _NOT_FIRST, _BUT, _PLAIN):
        match = pattern.search(view.text)
        if match is not None and match["new"] not in _NO_VALUE and _TELLS.isdisjoint(match["new"].split()):
            old = view.verbatim(*match.span("old")) if "old" in match.re.groupindex else None
            quote = view.verbatim(match.start(), match.end()).strip()
            return Correction(view.verbatim(*match.span("new")), old, quote)
    return None


def mend(found: Sequence[Proposal], sentence: Sentence, view: View) -> list[Proposal] | None:
    """What was said before in the same message, with what the sentence puts right; None where it puts nothing right."""
    correction = correct(view, sentence)
    if correction is None or correction.old is None:
        return None
    mended = [correction.of(proposal) for proposal in found]
    if all(each is None for each in mended):
        return None
    return [proposal if each is None else each for proposal, each in zip(found, mended, strict=True)]

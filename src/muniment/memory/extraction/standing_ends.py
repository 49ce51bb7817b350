"""What a message says no longer holds of what `standing` reads: a fear that is gone, a tool that was given up, a divorce.

Read by the same guards: nothing asked, supposed, wished for, reported or quoted. Pure; takes back nothing by itself.
"""

# ruff: noqa: E501 - a table of patterns reads best with one to a line

from __future__ import annotations

from functools import cache

from muniment.memory.extraction.english.reading import fixed, make_rule
from muniment.memory.extraction.english.words import either
from muniment.memory.extraction.grammar import Grammar, Rule
from muniment.memory.extraction.standing import read_with, technology_words, unsupposed, with_rules
from muniment.memory.facts.candidate_records import Proposal

__all__ = ["KIN_KEY", "MARRIED", "end_standing"]

KIN_KEY = "user.kin"
"""Of an end whose value is what somebody was to the speaker: nothing that was said of them bears on advice any more."""
MARRIED = "married"
"""The value where it is not said who: whoever one is married to."""
_NOW = r"(?:any ?more|any longer|now|these days)"
_WITH = "wife|husband|partner|girlfriend|boyfriend|fiancee?|spouse"
_DONE = r"(?:swim|drive|ride|cycle|ski|climb|cook|bake|sew|dance|sing|fly)"
_APART = r"(?:(?:got|are|were|have been|'re|have|'ve)(?: now| just| recently| finally)? )?(?:divorced|separated|split up|broken up|broke up)"


def end_standing(text: str, role: str, ts: str) -> list[Proposal]:
    """The keys and values that the text says hold no longer of its speaker."""
    return read_with(_grammar(), text, role, ts)


@cache
def _grammar() -> Grammar:
    return with_rules(_rules())


def _ends(attribute: str, pattern: str) -> Rule:
    """A rule of its own words of doubt (`afraid`), which supposes nothing."""
    return make_rule(f"no longer {attribute}", pattern, unsupposed(attribute), negates=True, may_doubt=True)


def _rules() -> tuple[Rule, ...]:
    named = rf"(?P<value>{either(tuple(sorted(technology_words())))})(?![\w-])"
    return (
        _ends("limit", r"\bi(?:'m| am) no longer (?:so )?(?:afraid|scared|terrified|frightened) of (?P<value>[a-z -]{2,40})"),
        _ends("limit", rf"\bi(?:'m| am) not (?:so )?(?:afraid|scared|terrified|frightened) of (?P<value>[a-z -]{{2,40}}?)(?: {_NOW}|(?=[,.!;]|$))"),
        _ends("limit", r"\bi(?:'ve| have)? (?:overcame|overcome|got over|lost|conquered) my (?:fear|phobia) of (?P<value>[a-z -]{2,40}?)(?=[,.!;]|$| (?:last|this|in|and|with|after)\b)"),
        _ends("limit", rf"\bi(?:'ve| have)?(?: just| finally| recently)? (?:learned|learnt) (?:how )?to (?P<value>{_DONE})\b"),
        _ends("limit", rf"\b(?:now i can (?P<value>{_DONE}))\b"),
        _ends("limit", rf"\bi can (?:finally |now )?(?P<value>{_DONE})(?: again)? (?:now|these days|at last)\b"),
        _ends("health", rf"\bi(?:'m| am) (?:no longer|not) (?P<value>[a-z]+)[ -]intolerant\b(?: {_NOW})?"),
        _ends("stack", rf"\b(?:we|i)(?:'ve| have)? (?:no longer|don't|do not|stopped|quit) (?:use|using|run|running|write|writing|work with|working with)\b[^.!?;]{{0,20}}? {named}"),
        _ends("stack", rf"\b(?:we|i)(?:'ve| have)?(?: just| finally| recently)? (?:switched|moved|migrated|changed) (?:(?:everything|it all|over) )?(?:away )?(?:from|off|off of) {named}"),
        _ends("stack", rf"\b(?:we|i)(?:'ve| have)?(?: just| finally| recently)? (?:dropped|abandoned|replaced|got rid of|retired) {named}"),
        _ends("lacks", r"\b(?:we|i)(?:'ve| have)?(?: just| finally| recently)? (?:bought|got) (?:an?|our|my)(?: new| first| used| second-hand)? (?P<value>[a-z]+)\b"),
        _ends("kin", rf"\bmy (?P<value>{_WITH}) and i {_APART}\b"),
        _ends("kin", rf"\bi(?:'m| am| got|'ve)?(?: now| just| recently)? (?:divorced|separated|split up|broke up)(?: from| with) my (?P<value>{_WITH})\b"),
        _ends("kin", rf"\bmy (?P<value>{_WITH})(?: has)?(?: just| recently)? (?:died|passed away|left me|moved out)\b"),
        make_rule("no longer kin", r"\b(?P<value>(?:i|we)(?:'m| am|'re| are)?(?: now| just| recently| finally)? (?:got )?divorced)\b", fixed("kin", MARRIED), negates=True),
    )  # fmt: skip

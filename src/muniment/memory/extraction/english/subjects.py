"""Of whom an English clause speaks: the speaker, one of theirs by kin or name, or whoever `she` means."""

# ruff: noqa: E501 - a table of words reads best with one to a line

from __future__ import annotations

import re
from collections.abc import Iterator

from muniment.core.text.latin_names import plain
from muniment.core.text.names import is_name
from muniment.core.text.word_lists import WordList
from muniment.memory.extraction.english.reading import OVER
from muniment.memory.extraction.english.slots import read_name
from muniment.memory.extraction.english.words import ALLERGENS, KIN, KIN_KEYS, KINS, NOT_BORNE
from muniment.memory.extraction.grammar import USER, Clause, Subject, Talk, owner_of
from muniment.memory.extraction.views import View

__all__ = ["subjects"]

_INTRO = re.compile(
    r"\s*(?:(?:hi|hello|hey|hiya|yo|yes|yeah|yea|yep|yup|no|nope|nah|well|so|oh|ooh|ah|aw|wow|ok|okay|actually|by the way|btw|also|and|but|or|anyway|"
    r"anyways|for your information|just so you know|for the record|for context|for reference|now|currently|these days|nowadays|lately|recently|personally|honestly|to be honest|"
    r"sure|great|cool|nice|thanks|thank you|good morning|good evening|morning|as of this week|as of today|quick update|update|note|remember|please note|"
    r"turns out|it turns out|good news|bad news|sadly|unfortunately|luckily|fortunately|finally|because|since|as|that|though|although|while|plus|then|"
    r"haha|hahaha|lol|lmao|omg|hmm|um|uh|ugh|me too|same|same here|as for me|for me|me however|as you know|you know|like i said|in case you|myself|i mean|considering|given|"
    r"growing up|in fact|basically|obviously|of course|besides|yet|right now|at the moment|today|this year|this month|this week|here|there|absolutely|definitely|totally|"
    r"exactly|true|agreed|sorry|guess what|fun fact|random fact|one thing|first|second|third|lastly|overall|anyhow|whereas|background|about me|a bit about me|quick context|quick one|"
    r"some background|intro|context|correction|edit|ps|p\.s|all|everyone|everybody|guys|folks|me|sometimes|some weekends|in my free time|in my spare time|on weekends|most days|every day|every morning|every weekend|every night|-|•|\*|\d\.)"
    r"(?:\s|,|!|:|\.|-|$)+)*"
)
_I = re.compile(
    r"i(?=['\s])|(?:we|my (?:[a-z]+ )?[a-z]+ and i|me and my [a-z]+(?: [a-z]+)?|me and the (?:kids|family|wife|husband))(?=['\s])"
)
_MY = re.compile(r"(?:my|our)(?=\s)")
_KIN = re.compile(rf"(?:my|our) (?:{KIN}|{KINS})(?![\w-])")
_BARE_KIN = re.compile(
    r"(?:the )?(?P<kin>dad|mom|mother|father|grandma|grandpa|wife|husband|son|daughter|sister|brother|other half|girlfriend|boyfriend|partner|uncle|aunt|auntie)"
    r"(?=(?:'s)?\s)(?! and | or | of )(?P<kins>)"
)
_HAVE_KIN = re.compile(
    rf"i(?:'ve got|'ve| have| got)(?: also)?(?: got)? (?:(?:a|an|one|two|three|four|\d|some) )?(?:{KIN}|{KINS})(?P<who> who's| who is| who are| who| that)(?=\s)"
)
_SEVERAL = frozenset(word for word, _ in WordList(__package__, "people.txt").pairs("kin in plural"))
_THIRD = re.compile(r"(?:he|she|they)(?=['\s])")
_HIS = re.compile(r"(?:his|her|their)(?=\s)")
_SAID_OF_THIRD = re.compile(r"(?:lives|works|loves|likes|hates|studies|enjoys|speaks|plays)\b")
_OPENING = re.compile(
    r"(?:just |recently |finally |currently |still |also |really |absolutely |been |always |originally |usually |mostly |only |now |busy )*"
    r"(?:live|living|based|moved|relocated|love|loving|hate|enjoy|prefer|work|working|study|studying|majoring|graduated|allergic|"
    r"married|divorced|engaged|born|was born|from|got|have|had|started|adopted|own|play|playing|speak|can't stand|don't (?:like|eat|drink)|diagnosed|grew up|raised|into|"
    r"trying|hoping|training|learning|aiming|saving|doing|volunteering|attended|collect|teach|favorite|allergies|no|busy|running|joined|gave up|quit)(?=[\s:]|$)"
)
"""A sentence may begin so with nobody named: it is the speaker who does."""
_WORD = re.compile(r"[\w\d]")
_SELF_LIST = re.compile(r"\s*(?:about )?(?:me|myself)\s?[:-]|\s*(?:quick )?(?:intro|background|profile|bio)\s?[:-]")


def subjects(view: View, clause: Clause, talk: Talk) -> Iterator[Subject]:
    """Of whom a clause may speak: the first that a rule reads something of counts."""
    text = view.text
    match = _INTRO.match(text, clause.start, clause.end)
    at = match.end() if match is not None else clause.start
    if _SELF_LIST.match(text):
        talk.is_own = True
    if at >= clause.end:
        return
    found = list(_named(view, at, clause, talk))
    if found:
        talk.is_own = any(subject.owner == USER for subject in found)
        yield from found
        return
    if talk.last is not None and _SAID_OF_THIRD.match(text, at, clause.end):
        yield Subject(talk.last, at, left_out="opening")
    elif clause.is_first and _OPENING.match(text, at, clause.end):
        talk.is_own = True
        yield Subject(USER, at, left_out="opening", is_owner=text.startswith(("favorite", "allergies"), at))
    elif (talk.is_own or clause.is_first) and _WORD.match(text, at):
        yield Subject(USER, at, left_out="terse")


def _named(view: View, at: int, clause: Clause, talk: Talk) -> Iterator[Subject]:
    """Whom a clause names before it says something."""
    text, end = view.text, clause.end
    own = _I.match(text, at, end)
    if own is not None:
        having = _HAVE_KIN.match(text, at, end)
        if having is not None:
            word = having["kin"] or having["kins"]
            owner = owner_of(KIN_KEYS[word] if having["kin"] else word)
            yield Subject(owner, having.end() - (2 if having["who"] == " who's" else 0))
        yield Subject(USER, own.end())
        return
    kin = _KIN.match(text, at, end) or _BARE_KIN.match(text, at, end)
    if kin is not None:
        yield from _kin_subjects(view, kin, talk)
    elif (mine := _MY.match(text, at, end)) is not None:
        yield Subject(USER, mine.end(), is_owner=True)
    elif (third := _THIRD.match(text, at, end)) is not None:
        is_fit = talk.last is not None and (third[0] == "they") == (talk.last.removeprefix("person.") in _SEVERAL)
        yield Subject(talk.last or "" if is_fit else "", third.end())
    elif (his := _HIS.match(text, at, end)) is not None:
        yield Subject(talk.last or "", his.end(), is_owner=True)
    else:
        named = read_name(view, at, known=talk.names)
        if named is not None and named.value.casefold() in talk.names:
            yield from _owners(view, owner_of(named.value), named.end)
        elif named is not None and is_name(plain(named.value.casefold())) and _BODILY.match(text, named.end, end):
            yield Subject(owner_of(named.value), named.end)


_BODILY = re.compile(
    r"(?:'s| is)(?: also| very| severely| deathly| highly| mildly| a bit| quite| really)* "
    rf"(?:allergic to (?:all |most |some |the |raw )?(?:{ALLERGENS})(?![\w-]){OVER}|(?:{NOT_BORNE})[- ]intolerant(?![\w-]){OVER}|intolerant to (?:{NOT_BORNE})(?![\w-]){OVER})"
    rf"| has (?:a|an) (?:severe |bad |mild |serious |terrible |slight )?(?:(?:{ALLERGENS}) allergy|(?:{NOT_BORNE}) intolerance)\b"
)
"""What only a living being is: whoever is named so is somebody the speaker has to do with, known or not.

Closed lists: a land, a club or a machine may be called as people are, and is `allergic to peace`.
"""


_ANOTHER = re.compile(r"\b(?:new|other|second|ex|former|late|first|next|current)\b")
"""Not the one whose name is known: `my new partner`."""


def _kin_subjects(view: View, kin: re.Match[str], talk: Talk) -> Iterator[Subject]:
    word = kin["kin"] or kin["kins"]
    owner, end = owner_of(KIN_KEYS[word] if kin["kin"] else word), kin.end()
    after = re.compile(r",? ").match(view.text, end)
    named = read_name(view, after.end()) if after is not None and kin["kin"] else None
    known = [name for name, kin_key in talk.names.items() if kin_key == KIN_KEYS[word]]
    if named is None and kin["kin"] and len(known) == 1 and not _ANOTHER.search(kin[0]):
        owner = owner_of(known[0])
    if named is not None:
        talk.names.setdefault(named.value.casefold(), KIN_KEYS[word])
        owner, end = owner_of(named.value), named.end
        if view.text.startswith(",", end):
            end += 1
    yield from _owners(view, owner, end)


def _owners(view: View, owner: str, end: int) -> Iterator[Subject]:
    """Behind a person: what is said of them, or after an `'s` what is theirs."""
    yield Subject(owner, end)
    if view.text.startswith("'s ", end):
        yield Subject(owner, end + 2, is_owner=True)

"""Of whom an English clause speaks: the speaker, one of theirs by kin or name, or whoever `she` means."""

from __future__ import annotations

import re
from collections.abc import Iterator

from muniment.memory.extraction.english.slots import read_name
from muniment.memory.extraction.english.words import KIN, KIN_KEYS, KINS
from muniment.memory.extraction.grammar import USER, Clause, Subject, Talk, owner_of
from muniment.memory.extraction.views import View

__all__ = ["subjects"]

_INTRO = re.compile(
    r"\s*(?:(?:hi|hello|hey|hiya|yo|yes|yeah|yea|yep|yup|no|nope|nah|well|so|oh|ooh|ah|aw|wow|ok|okay|actually|by the way|btw|also|and|but|or|anyway|"
    r"anyways|for your information|just so you know|for the record|for context|for reference|now|currently|these days|nowadays|lately|recently|personally|honestly|to be honest|"
    r"sure|great|cool|nice|thanks|thank you|good morning|good evening|morning|as of this week|as of today|quick update|update|note|remember|please note|"
    r"turns out|it turns out|good news|bad news|sadly|unfortunately|luckily|fortunately|finally|because|since|as|that|though|although|while|plus|then|"
    r"haha|hahaha|lol|lmao|omg|hmm|um|uh|me too|same|same here|as for me|for me|as you know|you know|like i said|in case you|myself|i mean|i think|i guess|"
    r"growing up|in fact|basically|obviously|of course|besides|yet|right now|at the moment|today|this year|this month|this week|here|there|absolutely|definitely|totally|"
    r"exactly|true|agreed|sorry|guess what|fun fact|random fact|one thing|first|second|third|lastly|overall|anyhow|whereas|background|about me|a bit about me|"
    r"some background|intro|context|correction|edit|ps|p\.s|all|everyone|there|everybody|guys|folks)"
    r"(?:\s|,|!|:|\.|-|$)+)*"
)
_I = re.compile(
    r"(?P<i>i)(?=['\s])|(?P<we>we|(?:my (?:wife|husband|partner|girlfriend|boyfriend|family|kids|sister|brother|friend) and i)|me and my [a-z]+)(?=['\s])"
)
_MY = re.compile(r"(?:my|our)(?=\s)")
_KIN = re.compile(rf"(?:my|our) (?:{KIN}|{KINS})(?![\w-])")
_HAVE_KIN = re.compile(
    rf"i(?:'ve got|'ve| have| got)(?: also)?(?: got)? (?:a|an|one|two|three|four|\d) (?:{KIN}|{KINS})(?P<who> who's| who is| who are| who| that)(?=\s)"
)
_THIRD = re.compile(r"(?P<sex>he|she|they)(?=['\s])")
_HIS = re.compile(r"(?:his|her|their)(?=\s)")
_SAID_OF_THIRD = re.compile(r"(?:lives|works|loves|likes|hates|studies|enjoys|moved|speaks|plays)\b")
_BARE = re.compile(
    r"(?:just |recently |finally |currently |still |also |really |absolutely |been |always |never |originally |usually |mostly |not |only |now )*"
    r"(?:live|living|based|moved|relocated|love|loving|like|hate|enjoy|prefer|work|working|study|studying|majoring|major|graduated|allergic|vegan|vegetarian|"
    r"married|single|divorced|engaged|born|from|got|have|had|started|adopted|own|play|playing|speak|can't|don't|diabetic|diagnosed|grew|raised|into|"
    r"interested|trying|hoping|training|learning|aiming|planning|saving|looking|doing|volunteering|attended|attend|collect|teach|celiac|coeliac|lactose|"
    r"gluten|pescatarian|keto|a |an |\d)"
)


def subjects(view: View, clause: Clause, talk: Talk) -> Iterator[Subject]:
    """Of whom a clause may speak: the first that a rule reads something of counts."""
    text = view.text
    match = _INTRO.match(text, clause.start, clause.end)
    at = match.end() if match is not None else clause.start
    yield from _subjects_at(view, at, clause, talk)


def _subjects_at(view: View, at: int, clause: Clause, talk: Talk) -> Iterator[Subject]:
    text, end = view.text, clause.end
    kin = _KIN.match(text, at, end)
    if kin is not None:
        yield from _kin_subjects(view, kin, talk)
        return
    own = _I.match(text, at, end)
    if own is not None:
        having = _HAVE_KIN.match(text, at, end)
        if having is not None:
            word = having["kin"] or having["kins"]
            yield Subject(owner_of(KIN_KEYS[word]), having.end() - (2 if having["who"] == " who's" else 0))
        yield Subject(USER, own.end())
        return
    mine = _MY.match(text, at, end)
    if mine is not None:
        yield Subject(USER, mine.end(), is_owner=True)
        return
    third = _THIRD.match(text, at, end)
    if third is not None:
        if talk.last is not None:
            yield Subject(talk.last, third.end())
        return
    his = _HIS.match(text, at, end)
    if his is not None:
        if talk.last is not None:
            yield Subject(talk.last, his.end(), is_owner=True)
        return
    named = read_name(view, at, known=talk.names)
    if named is not None and named.value.casefold() in talk.names:
        yield from _owners(view, owner_of(named.value), named.end)
        return
    if talk.last is not None and _SAID_OF_THIRD.match(text, at, end):
        yield Subject(talk.last, at - 1 if at else 0, is_left_out=True)
        return
    if _BARE.match(text, at, end):
        yield Subject(USER, at, is_left_out=True)


def _kin_subjects(view: View, kin: re.Match[str], talk: Talk) -> Iterator[Subject]:
    word = kin["kin"] or kin["kins"]
    owner, end = owner_of(KIN_KEYS[word] if kin["kin"] else word), kin.end()
    after = re.compile(r",? ").match(view.text, end)
    named = read_name(view, after.end()) if after is not None and kin["kin"] else None
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

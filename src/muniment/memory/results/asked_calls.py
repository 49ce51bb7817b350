"""What a question asks of calls: of which tool, with which effect, on what; the first or last, before or after what.

Read in English. In a scope without calls a question asks nothing of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from muniment.core.limits import remembered
from muniment.core.text.analyzer import ascii_words, term_hash
from muniment.memory.results.call_marks import CALL, FAILED, did, identified, identifiers_in, named, words_of_name
from muniment.memory.results.effects import WRITE, effects_asked

__all__ = ["NOISE", "AskedOrder", "asked_marks", "asked_order", "asks_how_often"]

Holding = Callable[[int], int]
"""How many turns of a scope have a term, by its hash."""

NOISE = frozenset(("call", "tool"))
"""Terms of a question on calls that no call says of itself."""
_TOOL_REPEATS = 2
"""A tool that is named counts as a word that is repeated: the others do not answer."""
_CHARS_MAX = 2_000
"""A longer text is no question on calls."""
_OF_CALLS = re.compile(
    r"\b(?:calls?|called|tools?|commands?|runs?|ran|outputs?|results?|returned|returns?|prints?|printed|say|said|says"
    r"|tests?|edits?|trials?|code|terminal|errors?|failed)\b"
)
_CODE = re.compile(r"\b(?=[a-z]*\d)(?=\d*[a-z])[a-z0-9]{4,}\b")
"""Letters and digits in one word: the number of an order, a flight, a ticket."""
_FAILURE = re.compile(
    r"\b(?:fail(?:s|ed|ure|ures|ing)?|errors?|exceptions?|crash(?:ed|es)?|refused|rejected|went wrong|broke|denied)\b"
)
_TOOL_SPOKEN = re.compile(
    r"\b((?:\w++ ){1,6})(?:tool|command|call)\b|\bdid (?:the )?((?:\w++ ){1,6})(?:say|return|print)"
)
"""A tool that is named by its words is called a tool, or says something."""

_CALLED_TOOL = re.compile(r"\bthe (?:\w+ ){1,6}(?:tool|command)\b")

_WHO = r"(?:we|you|the agent|the assistant|been)"
_SO_FAR = r"(?: already| so far| (?:till|until|up to|by) now| yet| today| (?:in|during) this (?:run|session)| here)"
_DONE = re.compile(
    rf"\bwhat(?: all| else)?(?:(?:'ve| have| has| had| did| was| were) {_WHO}(?: already| actually| just| now){{0,2}}"
    r" (?:done|do|changed?|accomplish(?:ed)?|completed?|finish(?:ed)?)"
    r"| (?:was|were|is|has been) (?:done|changed|accomplished|completed|finished)"
    rf"| changes (?:have|has|did|were) (?:{_WHO} )?(?:already )?(?:made|make|done))"
    rf"{_SO_FAR}{{0,3}}(?: ?[?.!]|,? and (?:what|which)\b|$)"
)
"""Asks for all that was done by whoever works here, and names none of it."""

# -- marks --------------------------------------------------------------------------------------------


def asked_marks(text: str, holding: Holding) -> dict[str, int]:
    """The marks of the calls that a question asks for, as far as some call of the scope has them, each with how often
    it counts; empty where it asks nothing of calls.
    """
    if len(text) > _CHARS_MAX or not holding(term_hash(CALL)):
        return {}
    return {mark: count for mark, count in _marks_named(text).items() if holding(term_hash(mark))}


@remembered(256)
def _marks_named(text: str) -> dict[str, int]:
    folded = text.casefold()
    words = _verbs(folded)
    names = dict.fromkeys(map(identified, identifiers_in(text)), 1)
    found = dict.fromkeys(_tools_named(folded, text), _TOOL_REPEATS)
    if _DONE.search(" ".join(folded.replace("’", "'").split())):
        found[did(WRITE)] = 1
    if names or _OF_CALLS.search(folded) or _CODE.search(folded):  # "when did I change jobs?" asks for no call
        found |= names | dict.fromkeys([FAILED] if _FAILURE.search(folded) else map(did, effects_asked(words)), 1)
    return found


def _verbs(folded: str) -> list[str]:
    """The words of a question that may say what was done: those of a tool's name say what it is called."""
    for identifier in identifiers_in(folded):
        folded = folded.replace(identifier, " ")
    folded = _CALLED_TOOL.sub(" ", folded)
    return ascii_words(folded) if folded.isascii() else folded.split()


def _tools_named(folded: str, text: str) -> Iterator[str]:
    """The marks of tools that may be named: as they are written, or by their words."""
    for identifier in identifiers_in(text):
        yield named(words_of_name(identifier))
    for found in _TOOL_SPOKEN.finditer(folded):
        words = (found[1] or found[2]).split()
        for count in range(1, len(words) + 1):
            yield named(words[-count:])


_HOW_OFTEN = re.compile(r"\bhow (?:often|frequently|many (?:times|calls|runs|tries|attempts))\b")


def asks_how_often(folded: str) -> bool:
    """Does a question ask how often something happened? Every time counts, and no later one ends an earlier one."""
    return _HOW_OFTEN.search(folded) is not None


# -- order --------------------------------------------------------------------------------------------

Side = Literal["before", "after"]
Speaks = Literal["user", "assistant"]
End = Literal["first", "last"]


class AskedOrder(NamedTuple):
    """Which of several events is asked for."""

    wanted: str
    """The part of the question that tells what is asked for."""
    side: Side | None = None
    event: str = ""
    """The part that names another event, of which what is asked for stands on that side."""
    speaks: Speaks | None = None
    """Who says what is asked for, where that is no tool."""
    end: End | None = None
    """Of those that are asked for, the first or the last; None where that is not said."""
    event_end: End | None = None
    """The same of the event that is named."""
    is_state: bool = False
    """It is asked how something stood: who looked it up tells that."""


_SIDES: dict[str, Side] = {
    "before": "before",
    "prior to": "before",
    "until": "before",
    "after": "after",
    "following": "after",
    "since": "after",
    "once": "after",
}
_BESIDE = re.compile(
    r"(?P<wanted>.+?)\b(?:right |just |immediately |directly |shortly |the moment )?"
    r"(?P<side>before|prior to|until|after|following|since|once) (?P<event>.+)",
    re.DOTALL | re.IGNORECASE,
)
_BESIDE_FIRST = re.compile(
    r"(?:right |just |immediately |directly |shortly )?(?P<side>before|prior to|until|after|following|since|once) "
    r"(?P<event>[^,]+), (?P<wanted>.+)",
    re.DOTALL | re.IGNORECASE,
)
_PRONOUN = re.compile(r"\b(?:it|they|them|this|that|its)\b", re.IGNORECASE)
_NAMING = re.compile(r"\S*(?:\d|[A-Z_/.]\w)\S*")
_USER = re.compile(r"\b(?:did|does|was|had) (?:the )?(?:user|customer|human|client)\b", re.IGNORECASE)
_AGENT = re.compile(r"\b(?:did|does|was|had) (?:the )?(?:agent|assistant|model|bot)\b", re.IGNORECASE)
_STATE = re.compile(r"\b(?:stand|stood|state|status|details?|look(?:ed)? like|value|setting)\b", re.IGNORECASE)
_FIRST = re.compile(r"\b(?:first|earliest|initial|initially|originally|at first|at the start)\b", re.IGNORECASE)
_LAST = re.compile(r"\b(?:last|latest|finally|final|in the end|at last|most recent(?:ly)?|newest)\b", re.IGNORECASE)


@remembered(256)
def asked_order(text: str) -> AskedOrder | None:
    """Which of several events a question asks for; None where it does not say, or is no question on calls."""
    if len(text) > _CHARS_MAX:
        return None
    found = _BESIDE_FIRST.match(text) or _BESIDE.match(text)
    if found is not None:
        wanted, event = found["wanted"].strip(), found["event"].strip()
        event_end = _end(event)
        if _PRONOUN.search(event):
            event = f"{' '.join(_NAMING.findall(wanted)[1:]) or wanted} {event}"
        return AskedOrder(
            wanted,
            side=_SIDES[found["side"].lower()],
            event=event,
            speaks=_speaks(wanted),
            end=_end(wanted),
            event_end=event_end,
            is_state=_STATE.search(wanted) is not None,
        )
    end = _end(text)
    return None if end is None else AskedOrder(text, speaks=_speaks(text), end=end)


def _speaks(wanted: str) -> Speaks | None:
    return "user" if _USER.search(wanted) else "assistant" if _AGENT.search(wanted) else None


def _end(wanted: str) -> End | None:
    return "first" if _FIRST.search(wanted) else "last" if _LAST.search(wanted) else None

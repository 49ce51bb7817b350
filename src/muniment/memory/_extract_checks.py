"""Checks of a model's proposals against the turns they quote. Pure.

A proposal is accepted only if its quote occurs in the turn, its value occurs in the quote, it is about the person whom
its key names, and the model declares that the quote is not negated, hypothetical, quoted or temporary. The checks read
characters and names, never the grammar of a language.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from fnmatch import fnmatchcase
from typing import Literal, NamedTuple

from muniment.core.policy import ExtractionPolicy

__all__ = [
    "ANOTHER",
    "OWN",
    "REASONS",
    "SEVERAL",
    "CheckedProposal",
    "ModelProposal",
    "Rejection",
    "SourceTurn",
    "check_proposals",
    "is_nameless",
    "is_same_name",
    "speaker_label",
    "why_unheard",
]

_DECLARATIONS: tuple[Literal["negated", "hypothetical", "quoted", "temporary"], ...] = (
    "negated",
    "hypothetical",
    "quoted",
    "temporary",
)
Rejection = Literal[
    "malformed", "undeclared", "unknown_turn", "too_many", "key", "quote", "value", "speaker", "person", "question",
    "negated", "hypothetical", "quoted", "temporary", "forgotten", "contradiction",
]  # fmt: skip
REASONS: Mapping[Rejection, str] = {
    "malformed": "it does not have the form that was asked for",
    "undeclared": "the model did not say whether it is negated, hypothetical, quoted or temporary",
    "unknown_turn": "it names a turn that the model was not given to read",
    "too_many": "more was proposed from one turn than the policy takes",
    "key": "a model may not propose this key",
    "quote": "its quote is not in its source",
    "value": "the quote does not contain the value",
    "speaker": "somebody else speaks in that turn",
    "person": "the quote does not name that person",
    "question": "the quote is part of a question",
    "negated": "the model says that the quote denies it",
    "hypothetical": "the model says that it is only supposed",
    "quoted": "the model says that the words are somebody else's",
    "temporary": "the model says that it holds for a while only",
    "forgotten": "its source was forgotten meanwhile",
    "contradiction": "it contradicts an active fact of higher trust",
}
_KEY = re.compile(r"(?:user|person\.[^\W_][\w-]{0,59})(?:\.[^\W\d_][\w-]{0,59}){1,3}")
_WORD = re.compile(r"[^\W_]+")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff]")
"""Scripts without spaces between words, or with attached endings: a word may begin at any character."""
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_ASKING = ("?", "？", "؟")
_CLOSING = " \"'”’)]»"


class SourceTurn(NamedTuple):
    """A turn as given to a model."""

    id: str
    role: str
    who: str
    """`user` for the user's own words, else the speaker's name, or the role."""
    ts: str
    text: str
    seq: int = 0
    """Its entry number within its session."""


class ModelProposal(NamedTuple):
    """A fact that a model found in a turn, with the model's declarations about it; None where it declared nothing."""

    turn_id: str
    speaker: str
    key: str
    value: object
    quote: str
    negated: bool | None = None
    hypothetical: bool | None = None
    quoted: bool | None = None
    temporary: bool | None = None


class CheckedProposal(NamedTuple):
    """A proposal with its quote exactly as in the turn, and the reason for its rejection, if any."""

    proposal: ModelProposal
    rejection: Rejection | None
    is_sourced: bool
    """True if it cites a turn that was read, under a key that a model may propose; it is then kept as a candidate."""


def check_proposals(
    proposals: Sequence[ModelProposal], turns: Sequence[SourceTurn], policy: ExtractionPolicy
) -> list[CheckedProposal]:
    """Check every proposal of an answer against the turns that the model was given to read."""
    by_id = {turn.id: turn for turn in turns}
    counts: Counter[str] = Counter()
    checked: list[CheckedProposal] = []
    for each in proposals:
        counts[each.turn_id] += 1
        turn = by_id.get(each.turn_id)
        if turn is None:
            checked.append(CheckedProposal(each, "unknown_turn", False))
        elif counts[each.turn_id] > policy.facts_per_turn_max:
            checked.append(CheckedProposal(each, "too_many", False))
        elif not _is_allowed(each.key, policy) or not _is_plain(each.value):
            checked.append(CheckedProposal(each, "value" if _is_allowed(each.key, policy) else "key", False))
        else:
            checked.append(_check(each, turn))
    return checked


def _check(proposal: ModelProposal, turn: SourceTurn) -> CheckedProposal:
    span = _find_quote(turn.text, proposal.quote)
    if span is None:
        return CheckedProposal(proposal, "quote", True)
    found = proposal._replace(quote=turn.text[span[0] : span[1]])
    declared = {name: getattr(proposal, name) for name in _DECLARATIONS}
    rejection: Rejection | None = None
    if not _holds_value(found.quote, found.value):
        rejection = "value"
    elif _folded(proposal.speaker) != _folded(turn.who) or (proposal.key.startswith("user.") and turn.who != OWN):
        rejection = "speaker"
    elif not proposal.key.startswith("user.") and not _names_person(proposal.key, found.quote, turn):
        rejection = "person"
    elif _is_asked(turn.text, span[1]):
        rejection = "question"
    elif None in declared.values():
        rejection = "undeclared"
    else:
        rejection = next((name for name in _DECLARATIONS if declared[name]), None)
    return CheckedProposal(found, rejection, True)


def _is_allowed(key: str, policy: ExtractionPolicy) -> bool:
    if _KEY.fullmatch(key) is None or key != key.casefold():
        return False
    is_named = any(fnmatchcase(key, pattern) for pattern in policy.keys)
    return is_named and not any(fnmatchcase(key, pattern) for pattern in policy.keys_refused)


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


# -- words ------------------------------------------------------------------------------------------------------


def _find_quote(text: str, quote: str) -> tuple[int, int] | None:
    """The span of the quote in the text, ignoring differences in white space; None if absent or if it cuts a word.

    Both are compared as words joined by single spaces; the span is then mapped back to the text.
    """
    wanted = " ".join(quote.split())
    words = [word.span() for word in re.finditer(r"\S+", text)]
    joined = " ".join(text[start:end] for start, end in words)
    begins: list[int] = []
    length = 0
    for start, end in words:
        begins.append(length)
        length += end - start + 1

    def place(at: int) -> int:
        word = bisect_right(begins, at) - 1
        return words[word][0] + at - begins[word]

    at = -1
    while wanted and (at := joined.find(wanted, at + 1)) >= 0:
        if not _cuts_word(joined, at, at + len(wanted)):
            return place(at), place(at + len(wanted) - 1) + 1
    return None


def _cuts_word(text: str, start: int, end: int) -> bool:
    """True if the span begins or ends within a word, or within a number such as `3.5`."""
    return any(_is_joined(text, at) for at in (start, end))


def _is_joined(text: str, at: int) -> bool:
    if not 0 < at < len(text):
        return False
    before, after = text[at - 1], text[at]
    if _is_mark(after):
        return True
    if (before.isalnum() or _is_mark(before)) and after.isalnum():
        return not (_UNSPACED.match(before) or _UNSPACED.match(after))
    return (after in ".," and before.isdigit() and text[at + 1 : at + 2].isdigit()) or (
        before in ".," and after.isdigit() and text[at - 2 : at - 1].isdigit()
    )


def _is_mark(sign: str) -> bool:
    """True for a combining sign that belongs to the letter before it, such as the vowel signs of Hindi and Thai."""
    return unicodedata.category(sign)[0] == "M"


def _holds_value(quote: str, value: object) -> bool:
    """True if the value occurs in the quote as whole words, in any case; numbers may have thousands separators."""
    wanted = _folded(str(int(value)) if isinstance(value, float) and value.is_integer() else str(value))
    if not any(sign.isalnum() for sign in wanted):
        return False
    return any(_holds_words(text, wanted) for text in (_folded(quote), _THOUSANDS.sub("", _folded(quote))))


def _holds_words(text: str, wanted: str) -> bool:
    at = -1
    while (at := text.find(wanted, at + 1)) >= 0:
        if not _cuts_word(text, at, at + len(wanted)):
            return True
    return False


def _is_asked(text: str, end: int) -> bool:
    """True if the quote ends in or directly precedes a question mark. Other clauses of its sentence may ask."""
    return text[end - 1] in _ASKING or text[end:].lstrip(_CLOSING)[:1] in _ASKING


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().replace("’", "'").split())


# -- names ------------------------------------------------------------------------------------------------------


def _names_person(key: str, quote: str, turn: SourceTurn) -> bool:
    """True if the quote names the person of the key, or that person is the speaker."""
    name = key.split(".")[1]
    if turn.who != OWN and is_same_name(name, turn.who):
        return True
    said = _folded(quote)
    words = set(_WORD.findall(said))
    parts = [part for part in re.split(r"[_-]", _folded(name)) if part]
    return bool(parts) and all(part in words or (not part.isascii() and part in said) for part in parts)


# -- speakers ------------------------------------------------------------------------------------------
#
# The author of a message of role `user` (MP-17): the user, or another person writing in the same place. Names are the
# only evidence. The user's names are the id, where it reads as a name, and the known `user.name`.


OWN = "user"
"""The label of the user's own turns."""

ANOTHER = "another name than the user's"
SEVERAL = "several speak for the user here, and none of them by a name known as the user's"

_NAMELESS = frozenset(
    ("", "user", "me", "myself", "human", "i", "customer", "client", "caller", "用户", "用戶", "我")
) | {"사용자", "나", "저"}
"""Generic names that chat programs give the speaker."""
_NO_IDS = _NAMELESS | {"default", "guest", "admin", "test", "tester", "demo", "anonymous", "owner", "someone", "local"}
"""User ids that look like names but are not."""
_NAME_WORD = re.compile(r"[^\W\d_]+")
_NAME = re.compile(r"[^\W\d_]{2,}(?:[ .'’-][^\W\d_]+)*")


def is_nameless(speaker: str | None) -> bool:
    """True for no name, or a generic word for the speaker: `user`, `me`, `human`."""
    return speaker is None or speaker.strip().casefold() in _NAMELESS


def why_unheard(
    speaker: str | None, user_id: str, names: Iterable[str], heard: Callable[[], Set[str | None]]
) -> str | None:
    """The reason why a speaker's statements about themselves are not facts about the user; None if they are.

    `names` are the user's known names; `heard` returns the other speakers of role `user` in the session. A user with a
    known name is matched by that name only; without one, the session's only speaker is taken to be the user.
    """
    if is_nameless(speaker):
        return None
    assert speaker is not None
    known = tuple(names)
    if any(is_same_name(speaker, name) for name in (user_id, *known)):
        return None
    if known or _is_name(user_id):
        return ANOTHER
    return SEVERAL if len(heard() | {speaker}) > 1 else None


def speaker_label(role: str, speaker: str | None, user_id: str, names: Iterable[str]) -> str:
    """The label of a turn for a model: `user` for the user's own words, otherwise the speaker's name.

    A turn of role `user` is the user's own if it names no speaker, or one matching the user's id or one of `names`. Any
    other speaker is another person, whose facts are not the user's.
    """
    if role != "user":
        return speaker or role
    if speaker is None or is_nameless(speaker):
        return OWN
    return OWN if any(is_same_name(speaker, name) for name in (user_id, *names)) else speaker


def _is_name(user_id: str) -> bool:
    """True for `ana` and `Ana Lopez`; False for `u-123`, an address or `user`."""
    return _NAME.fullmatch(user_id) is not None and user_id.casefold() not in _NO_IDS


def is_same_name(speaker: str, name: str) -> bool:
    """True if all words of one are in the other, or one is an initial and surname (`jdoe`); addresses up to the `@`."""
    said, known = _words(speaker), _words(name)
    if not said or not known:
        return False
    short = {said[0][0] + said[-1], said[0] + said[-1][0]} if len(said) > 1 else set()
    return set(said) <= set(known) or set(known) <= set(said) or "".join(known) in {"".join(said), *short}


def _words(name: str) -> list[str]:
    words = _NAME_WORD.findall(name.casefold().partition("@")[0])
    return [word for word in words if len(word) > 1 or not word.isascii()]

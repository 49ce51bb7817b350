"""Facts that a message states beyond doubt: a short closed list of plain first-person sentences in English. Pure.

Only whole sentences count, and only in a message that nothing speaks against taking at its word: one that quotes,
drafts, plays a role, jokes or supposes yields no fact at all, nor does one of several lines. A kind of fact is in the
list only if it was measured right in 99 of 100 cases on text that it was not tuned on (`benchmarks/chat_facts.py`).
Everything else is left to dated quotes, to a model, and to people who correct their own facts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from muniment.memory.facts.candidate_records import Proposal

__all__ = ["CHARS_MAX", "extract_certain"]

CHARS_MAX = 1_200
"""A longer message is a story, a form or pasted text as often as it is somebody speaking."""
CONFIDENCE = 0.95


def extract_certain(text: str) -> list[Proposal]:
    """Return the facts that a user's message states of its author, each with its sentence as the quote.

    Two values for one key in a message cancel each other out.
    """
    text = text.strip()
    if len(text) > CHARS_MAX or _NOT_PLAIN.search(text) or _NOT_EARNEST.search(text):
        return []
    found: dict[str, dict[str, Proposal]] = {}
    for sentence in _sentences(text):
        for kind in _KINDS:
            value = kind.read(sentence)
            if value is not None:
                proposal = Proposal(key=kind.key, value=value, quote=sentence, confidence=CONFIDENCE, why=kind.why)
                found.setdefault(kind.key, {}).setdefault(value, proposal)
    return [proposal for values in found.values() if len(values) == 1 for proposal in values.values()]


# -- which messages are taken at their word -----------------------------------------------------------

_NOT_PLAIN = re.compile(
    r"\n|[\"“”„«»「」『』《》`<>{}\[\]|*=\\#~_]|(?<!\w)['‘]|['’](?!\w)|://|:(?!\w)|\.\.|…|;-?\)|[😂🤣😜😝🤪😏😉🙃]|^[-•–—]"
)
"""Quotation, markup, code, lists, several lines, a colon that announces something, a wink."""

_NOT_EARNEST = re.compile(
    r"(?i)\b(?:"
    # somebody wants a text, or shows one
    r"writ(?:e|ing|ten|er)|wrote|draft\w*|rewrite|re-?phras\w+|reword\w*|paraphras\w+|proofread\w*|translat\w+|edit\w*"
    r"|correct\w*|grammar|improve|shorten|polish|summari[sz]e|essay|story|stories|tale|novel\w*|fiction\w*|fantasy"
    r"|poem\w*|poetry|songs?|lyrics?|script\w*|screenplay|scene|dialog\w*|monolog\w*|chapter|plot|e-?mail|letter|bio"
    r"|biography|profile|resume|résumé|cv|speech|caption|tweet|blog|diary|book|movie|film|sentence|phrase|examples?"
    r"|template|prompt|transcript|sample|repeat|"
    # somebody is somebody else
    r"characters?|persona|roles?|role-?play\w*|rp|act(?:ing)? as|pretend\w*|imagin\w+|suppos\w+|assum\w+|hypothe\w+"
    r"|simulat\w+|impersonat\w+|narrat\w+|avatar|protagonist|game|games|fake|alias|nickname|username|stage name"
    r"|pen name|dream\w*|wish\w*|"
    # somebody jokes, supposes, or reports
    r"jok\w+|kidding|jk|lol|lmao|rofl|(?:ha){2,}h?|hehe|sarcas\w+|meme|prank|troll\w*|if|unless|would|might|maybe"
    r"|perhaps|sa(?:y|ys|id|ying)|tells?|told|quot\w+|sings?|sang|introduc\w+|claim\w*|"
    # somebody takes it back
    r"not|never|no longer|anymore|until|used to|former\w*|wait|actually|oops|sorry|typo|mean|meant|lie|lies|lying|false"
    r")\b|n['’]t\b"
)


def _sentences(text: str) -> Iterator[str]:
    """The sentences of a line, without the mark that ends them. A question is none."""
    for match in _SENTENCE.finditer(text):
        if match["end"] != "?":
            yield match["words"].rstrip()


_SENTENCE = re.compile(r"(?P<words>[^\s.!?](?:[^.!?]|\.(?=\S)|(?<=\b[DMSJF][rtsx])\.|(?<=\bMrs)\.)*+)(?P<end>[.!?]?)[.!?]*")

# -- the closed list ----------------------------------------------------------------------------------


class _Kind(NamedTuple):
    """A kind of fact: its key and the sentence that states it."""

    key: str
    statement: re.Pattern[str]
    why: str

    def read(self, sentence: str) -> str | None:
        """The value that a sentence states; every word of it begins with a capital letter."""
        match = self.statement.fullmatch(sentence)
        if match is None:
            return None
        words = [word for word in re.split(r",? ", match["value"]) if word not in _SMALL]
        return match["value"] if all(word[0].isupper() for word in words) else None


_SMALL = frozenset(("the", "of", "de", "la", "del", "van", "von", "der", "da", "upon"))
_OPENING = (
    r"(?:(?:[Hh]i|[Hh]ello|[Hh]ey)(?: there)?,? |[^,;]{1,80}, (?:and|but) (?:now )?"
    r"|(?:(?:[Oo]h|[Oo]kay|[Cc]ool|[Nn]ice|[Yy]es|[Yy]eah|[Nn]o|[Ww]ell|[Aa]nd|[Bb]ut|[Nn]ow|[Uu]h|[Uu]m),? ){0,2})"
)
_CLOSING = r"(?:,? (?:now|right now|too|as well|by the way))?(?:,|,? (?:and|but|so|with|where) (?:I\b|[a-z]).*)?"
_WORD = r"[^\W\d_]{2,}(?:['’-][^\W\d_]+)*"


def _whole(statement: str) -> re.Pattern[str]:
    return re.compile(_OPENING + statement + _CLOSING)


_KINDS = (
    _Kind(
        "user.name",
        _whole(rf"[Mm]y name(?: is|['’]s) (?P<value>{_WORD}(?: {_WORD}){{0,3}}?)"),
        "says what the speaker is called",
    ),
    _Kind(
        "user.location",
        _whole(rf"[Ii] (?:currently |now |also |actually )?live in (?P<value>{_WORD}(?:,? {_WORD}){{0,5}}?)"),
        "says where the speaker lives",
    ),
)

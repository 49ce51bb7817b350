"""Facts that a message states beyond doubt: a short closed list of plain first-person sentences in English. Pure.

Only whole sentences count, and only in a message that can be taken literally: one that quotes, drafts, plays a role,
jokes or supposes yields no fact at all, nor does one of several lines. A kind of fact is in the list only if it was
measured right in 99 of 100 cases on text that it was not tuned on (`benchmarks/chat_facts.py`). Everything else is left
to dated quotes, to a model, and to people who correct their own facts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from muniment.core.text.analyzer import MONTHS, stop_words
from muniment.core.text.places import is_known_place, is_no_place
from muniment.memory._fact_records import Proposal

__all__ = ["CHARS_MAX", "CONFIDENCE", "extract_certain", "find_endings"]

CHARS_MAX = 1_200
"""Longer messages are too often stories, forms or pasted text."""
CONFIDENCE = 0.95


def extract_certain(text: str) -> list[Proposal]:
    """Return the facts that a user's message states of its author, each with its sentence as the quote.

    Two values for one key in a message cancel each other out.
    """
    text = text.strip()
    if len(text) > CHARS_MAX or _OF_THE_LIST.search(text) is None:
        return []
    if _NOT_PLAIN.search(text) or _NOT_EARNEST.search(text):
        return []
    found: dict[str, dict[str, Proposal]] = {}
    for sentence in _sentences(text):
        for kind in _KINDS:
            value = kind.read(sentence)
            if value is not None:
                proposal = Proposal(key=kind.key, value=value, quote=sentence, confidence=CONFIDENCE, why=kind.why)
                found.setdefault(kind.key, {}).setdefault(value, proposal)
    return [proposal for values in found.values() if len(values) == 1 for proposal in values.values()]


def find_endings(text: str) -> dict[str, str]:
    """Find the words by which a message may end what the list once found, by key.

    They need not be certain: a fact that is dropped too early is only missing, one that is kept too long is false.
    """
    found = {key: ending.search(text) for key, ending in _ENDINGS.items()}
    return {key: match[0] for key, match in found.items() if match is not None}


# -- which messages are taken literally -----------------------------------------------------------

_OF_THE_LIST = re.compile(r"[Mm]y name|live in")
"""A prefilter that every sentence of the list matches."""

_NOT_PLAIN = re.compile(
    r"\n|[\"“”„«»「」『』《》`<>{}\[\]|*=\\#~_]|(?<!\w)['‘]|['’](?!\w)|://|:(?!\w)|\.\.|…|;-?\)|[😂🤣😜😝🤪😏😉🙃]|^[-•–—]"
)
"""Quotation, markup, code, lists, several lines, a colon that announces something, a wink."""

_NOT_EARNEST = re.compile(
    r"(?i)\b(?:"
    # the author wants or shows a text
    r"writ(?:e|ing|ten|er)|wrote|draft\w*|rewrite|re-?phras\w+|reword\w*|paraphras\w+|proofread\w*|translat\w+|edit\w*"
    r"|correct\w*|grammar|improve|shorten|polish|summari[sz]e|essay|story|stories|tale|novel\w*|fiction\w*|fantasy"
    r"|poem\w*|poetry|songs?|lyrics?|script\w*|screenplay|scene|dialog\w*|monolog\w*|chapter|plot|e-?mail|letter|bio"
    r"|biography|profile|resume|résumé|cv|speech|caption|tweet|blog|diary|book|movie|film|sentence|phrase|examples?"
    r"|template|prompt|transcript|sample|repeat|reply|respon\w+|answer\w*|fix|check|message|"
    # role play
    r"characters?|hero(?:ine)?|my play|you be|slogan|headline|subject|goes|like this|persona|roles?|role-?play\w*|rp"
    r"|act(?:ing)? as|pretend\w*|imagin\w+|suppos\w+|assum\w+|hypothe\w+|simulat\w+|impersonat\w+"
    r"|narrat\w+|avatar|protagonist|game|games|fake|alias|nickname|username|stage name|pen name"
    r"|dream\w*|wish\w*|you(?: are|['’]re)|your (?:name|job|task)|"
    # jokes, suppositions, reports
    r"jok\w+|kidding|jk|lol|lmao|rofl|(?:ha){2,}h?|hehe|sarcas\w+|meme|prank|troll\w*|if|unless|would|might|maybe"
    r"|perhaps|sa(?:y|ys|id|ying)|tells?|told|quot\w+|sings?|sang|introduc\w+|claim\w*|"
    # retractions
    r"not|never|no longer|anymore|until|used to|former\w*|wait|actually|oops|sorry|typo|mean|meant|lie|lies|lying|false"
    r")\b|n['’]t\b"
)


def _sentences(text: str) -> Iterator[str]:
    """The sentences of a line, without their final mark. Questions are skipped."""
    for match in _SENTENCE.finditer(text):
        if match["end"] != "?":
            yield match["words"].rstrip()


_SENTENCE = re.compile(
    r"(?P<words>[^\s.!?](?:[^.!?]|\.(?=\S)|(?<=\b(?:Mr|Ms|Dr|St|Mt|Ft|Jr|Sr))\.|(?<=\bMrs)\.)*+)(?P<end>[.!?]?)[.!?]*"
)

# -- the closed list ----------------------------------------------------------------------------------


class _Kind(NamedTuple):
    """A kind of fact: its key, its sentence pattern, and the values too doubtful to keep."""

    key: str
    statement: re.Pattern[str]
    why: str
    is_doubtful: Callable[[str], bool] = lambda _: False

    def read(self, sentence: str) -> str | None:
        """The value that a sentence states: a proper name with every word capitalised."""
        match = self.statement.fullmatch(sentence)
        if match is None:
            return None
        value = match["value"]
        words = [word for word in re.split(r",? ", value) if word not in _SMALL]
        is_proper = all(word[0].isupper() for word in words) and not value.endswith(("'s", "’s"))
        return value if is_proper and not self.is_doubtful(value) else None


def _is_doubtful_name(value: str) -> bool:
    """True for a phrase containing a word that no name has, or a placeholder."""
    return not (stop_words("english") | _STAND_INS).isdisjoint(value.casefold().split())


def _is_doubtful_place(value: str) -> bool:
    """True for products, fictional places and months; after an article, for all but known countries and regions."""
    bare = value.removeprefix("the ")
    return is_no_place(bare) or bare.casefold() in MONTHS or (bare != value and not is_known_place(bare))


_STAND_INS = frozenset(("anonymous", "doe", "nobody", "test", "unknown", "user"))


_SMALL = frozenset(("the", "of", "de", "la", "del", "van", "von", "der", "da", "upon"))
_OPENING = (
    r"(?:(?:[Hh]i|[Hh]ello|[Hh]ey)(?: there)?,? "
    r"|(?:[Yy]eah,? |[Oo]k,? )?(?:[Ii]|[Ww]e)\b[^,;]{1,80}, (?:and|but|so) (?:now )?"
    r"|(?:(?:[Oo]h|[Oo]kay|[Cc]ool|[Nn]ice|[Yy]es|[Yy]eah|[Nn]o|[Ww]ell|[Aa]nd|[Bb]ut|[Nn]ow|[Uu]h|[Uu]m),? ){0,2})"
)
_CLOSING = r"(?:,? (?:now|right now|too|as well|by the way))?(?:,|,? (?:and|but|so|with|where|near) (?:I\b|[a-z]).*)?"
_WORD = r"[^\W\d_](?:['’-]?[^\W\d_])+"


def _whole(statement: str) -> re.Pattern[str]:
    return re.compile(_OPENING + statement + _CLOSING)


_KINDS = (
    _Kind(
        "user.name",
        _whole(rf"[Mm]y name(?: is|['’]s) (?P<value>{_WORD}(?: {_WORD}){{0,3}}?)"),
        "says what the speaker is called",
        _is_doubtful_name,
    ),
    _Kind(
        "user.location",
        _whole(rf"(?:[Ii]|[Ww]e) (?:currently |now |also |actually )?live in (?P<value>{_WORD}(?:,? {_WORD}){{0,5}}?)"),
        "says where the speaker lives",
        _is_doubtful_place,
    ),
)

_ENDINGS = {
    "user.name": re.compile(
        r"(?i)\b(?:my (?:real |full )?name (?:was|is ?n['’]t|is not)|is not my (?:real )?name"
        r"|(?:changed|changing) my name)\b[^.!?\n]{0,80}"
    ),
    "user.location": re.compile(
        r"(?i)(?<!if )\b(?:i|we)(?:['’](?:ve|m|re)| have| am| are)?(?: just| recently| finally| since| now| already)?"
        r" (?:mov(?:ed|ing)|relocat(?:ed|ing)|emigrated)\b[^.!?\n]{0,80}"
        r"|(?<!if )\b(?:i|we) (?:no longer|used to|never|do not|did not|don['’]t|didn['’]t)"
        r"(?: actually| really| even)? live\b[^.!?\n]{0,80}"
        r"|(?<!if )\b(?:i|we) lived in\b[^.!?\n]{0,80}"
    ),
}

"""Which facts, quotes and sentences of a packet are outdated, statement by statement.

A fact is told as outdated only where a newer statement of its own key is known, with another value, and in every turn
it rests on. That another statement of the same turn is outdated says nothing of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from muniment.contracts.packet import Fact
from muniment.core.limits import remembered
from muniment.core.text.analyzer import analyze
from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.sentences import ByteOffsets
from muniment.core.text.stated.statement_table import KIN
from muniment.core.text.stated.statement_values import value_words
from muniment.core.text.stated.statements import Statement
from muniment.memory.recall.outdated_turns import Stating, superseded_among
from muniment.memory.recall.records import SupersededStatement, outdated_by
from muniment.memory.recall.supersession import covers_all
from muniment.memory.results.tool_text import call_without_failure
from muniment.memory.turns import SummaryLine, Turn
from muniment.packets.compose.budget import typical_mark
from muniment.packets.page.lines import value_text
from muniment.packets.page.superseded import Outdated, note_text, shown_words
from muniment.packets.pool import Pool

if TYPE_CHECKING:
    from muniment.memory.extraction.grammar import Correction

__all__ = ["Superseded", "aspects_of", "parts_of", "superseded_in"]

_WORD = lazy_pattern(r"[^\W_]+")
_DIGIT = lazy_pattern(r"\d")
_ENDING = lazy_pattern(
    r"(?i)\b(?:not|never|no longer|used to|n['’]t|sold|quit|left|lost|broke|split|gave|given|stopped|resigned|retired"
    r"|from|away|out|traded|divorced|separated|replaced|outgrew|fired|laid|without)\b|n['’]t\b|不|辞|离|그만|퇴사"
)
"""Words that end what they name."""
_ALL = ""
"""The words of what is outdated however much of it is shown."""
_NOT_USERS = frozenset(("person", "pet", "trip", "thing"))
"""Keys that begin so, and have three parts, tell of somebody or something else: `person.kim.employer`."""
_KIN = lazy_pattern(f"(?i){KIN}")
_ASPECTS = {
    "home": "city town location residence home village address lives live living",
    "employer": "employer company workplace work firm works",
    "job": "job occupation profession role title position career",
    "partner": "partner spouse wife husband girlfriend boyfriend fiance fiancee",
    "relationship": "relationship marital",
    "diet": "diet",
    "allergy": "allergy allergies allergic",
    "car": "car vehicle",
    "phone": "phone smartphone",
    "birthday": "birthday birthdate dob born",
    "likes": "likes hobby hobbies interests drinks",
    "pet": "pet pets dog cat",
    "study": "school university college",
}
_ASPECT_OF = {word: aspect for aspect, words in _ASPECTS.items() for word in words.split()}
_WHOLE_ATTRIBUTES = {"work": frozenset(("employer", "job")), "relationship": frozenset(("relationship", "partner"))}
"""Attributes that the ranking tells, for which statements have finer keys."""


class _Aspects(NamedTuple):
    """What the key of a fact is about."""

    of: frozenset[str]
    whose: frozenset[str]
    """Kin that the key names: `user.sister.city`."""


@remembered(2048)
def aspects_of(key: str) -> _Aspects:
    """`user.city` is about a home, `user.favorite.city` about a favourite, `user.sister.city` about a sister's home."""
    words = [word.casefold() for word in _WORD.findall(key.replace("_", " "))]
    first, _, rest = key.casefold().partition(".")
    if first in _NOT_USERS and "." in rest:
        of = aspects_of(rest.rpartition(".")[2])
        return _Aspects(of.of, frozenset((rest.partition(".")[0].replace("_", " "),) if first == "person" else ("\0",)))
    for at, word in enumerate(words):
        if word in ("favorite", "favourite"):
            return _Aspects(frozenset((f"favorite.{'_'.join(words[at + 1 :])}",)), frozenset())
    known = frozenset(_ASPECT_OF[word] for word in words if word in _ASPECT_OF)
    if "number" in words:
        known -= {"phone"}
    kin = frozenset(word for word in words if _KIN.fullmatch(word))
    if kin and len(words) > 1 and words[-1] in kin:
        kin = frozenset()  # `user.wife` is about the user
    if "name" in words[-1:] and not kin:
        known |= {"name"}
    joined = "_".join(words[1:] if len(words) > 1 else words)
    return _Aspects(known | {joined, *words[-1:]}, kin)


class _Sentence(NamedTuple):
    """A sentence of a turn that is not in the pool itself."""

    id: str
    role: str
    speaker: str | None
    ts: str
    quotable: str
    statements: tuple[Statement, ...]
    session_id: str = ""
    seq: int = 0


def superseded_in(pool: Pool) -> Superseded:
    """What of the turns and sentences of a pool is outdated: as the search found it, and by what this session says."""
    turns: dict[str, Stating] = {turn.id: turn for turn in (*pool.window, *(hit.turn for hit in pool.hits))}
    held = dict(turns)
    lines = {
        (line.evidence_id, line.text): line
        for line in (*pool.summary, *(line for episode in pool.episodes for line in episode.lines))
        if line.evidence_id not in turns and line.statements
    }
    names = {f"{key[0]}\n{number}": key for number, key in enumerate(lines)}
    for name, key in names.items():
        line = lines[key]
        turns[name] = _Sentence(
            line.evidence_id, line.role or "user", line.speaker, line.ts, line.text, line.statements, name
        )
    found = superseded_among(turns, {})
    by_line = {names[name]: found.pop(name) for name in list(found) if name in names}
    for hit in pool.hits:
        if hit.superseded:
            more = [each for each in found.get(hit.turn.id, ()) if not _overlaps(each, hit.superseded)]
            found[hit.turn.id] = (*hit.superseded, *more)
    for failed, by in _made_good(turn for turn in turns.values() if isinstance(turn, Turn)):
        found[failed] = (*found.get(failed, ()), by)
    for corrected, by in _corrected(turn for turn in turns.values() if isinstance(turn, Turn)):
        if not _overlaps(by, found.get(corrected, ())):
            found[corrected] = (*found.get(corrected, ()), by)
    return Superseded(found, by_line, held)


def _made_good(turns: Iterable[Turn]) -> Iterator[tuple[str, SupersededStatement]]:
    """The results of calls that failed and, made again in the same session, were answered since: all they say."""
    results = [turn for turn in turns if turn.kind == "tool_result" and turn.speaker]
    newest = {(turn.session_id, turn.speaker): turn for turn in sorted(results, key=lambda turn: (turn.seq, turn.id))}
    for turn in results:
        newer = newest.get((turn.session_id, call_without_failure(turn.speaker or "")))
        if newer is not None and newer.seq > turn.seq:
            yield (
                turn.id,
                SupersededStatement(quote=_ALL, start=0, end=0, by=newer.id, by_start=0, by_end=0, is_whole=True),
            )


_CORRECTS = lazy_pattern(r"(?i)\bnot\b")


def _corrected(turns: Iterable[Turn]) -> Iterator[tuple[str, SupersededStatement]]:
    """The words that their speaker put right later in the same session: `sorry, Munich not Berlin`. What else the
    sentence says holds.
    """
    said = sorted(
        (turn for turn in turns if turn.role == "user"), key=lambda turn: (turn.session_id, turn.seq, turn.id)
    )
    for newer in said if len(said) > 1 else ():
        if _CORRECTS.search(newer.quotable) is None:
            continue
        from muniment.memory.extraction.patterns import corrections

        for correction in corrections(newer.quotable, newer.role):
            for older in said:
                is_before = older.session_id == newer.session_id and older.seq < newer.seq
                if is_before and older.speaker == newer.speaker and (where := _stating(older, correction)) is not None:
                    yield older.id, _put_right(older, newer, where, correction)


def _stating(turn: Turn, correction: Correction) -> tuple[int, int] | None:
    """Where a turn says what is put right, in a statement, not in a question."""
    from muniment.memory.extraction.sentences import sentences

    for sentence in sentences(turn.quotable):
        if not sentence.is_question and (place := correction.place_in(sentence.text)) is not None:
            return sentence.start + place[0], sentence.start + place[1]
    return None


def _put_right(older: Turn, newer: Turn, where: tuple[int, int], correction: Correction) -> SupersededStatement:
    here, there = ByteOffsets(older.quotable), ByteOffsets(newer.quotable)
    start, end = where
    by = max(0, newer.quotable.find(correction.quote))
    return SupersededStatement(
        quote=older.quotable[start:end],
        start=here[start],
        end=here[end],
        by=newer.id,
        by_start=there[by],
        by_end=there[by + len(correction.quote)],
        is_whole=covers_all(older.quotable, [where]),
    )


def _overlaps(one: SupersededStatement, others: Iterable[SupersededStatement]) -> bool:
    return any(one.start < other.end and other.start < one.end for other in others)


class Superseded:
    """The outdated statements of a packet's evidence, by event."""

    def __init__(
        self,
        by_event: Mapping[str, tuple[SupersededStatement, ...]],
        by_line: Mapping[tuple[str, str], tuple[SupersededStatement, ...]],
        turns: Mapping[str, Stating],
    ) -> None:
        self._by_event = by_event
        self._by_line = by_line
        """Of sentences whose turns are not in the pool."""
        self._turns = turns
        self._facts: dict[str, SupersededStatement | None] = {}

    def __bool__(self) -> bool:
        return bool(self._by_event)

    def of(self, evidence_id: str, text: str | None = None) -> tuple[SupersededStatement, ...]:
        """The outdated statements of an event; with a text, those whose words stand in it."""
        found = self._by_event.get(evidence_id, ())
        return found if text is None or not found else tuple(each for each in found if each.quote in text)

    def outdated_by(self, evidence_id: str) -> str | None:
        """The event that says otherwise, where nothing of an event stands."""
        found = self._by_event.get(evidence_id)
        return None if found is None else outdated_by(found)

    def note_in(self, evidence_id: str, text: str) -> str:
        """The note beside a quote, as long as it may become."""
        shown = self.of(evidence_id, text)
        return note_text(parts_of(shown, [each.by for each in shown]), typical_mark) if shown else ""

    def note_of(self, line: SummaryLine) -> str | None:
        """What is noted behind a sentence of which a part is outdated; None where nothing of it stands."""
        found = self._by_line.get((line.evidence_id, line.text)) or self.of(line.evidence_id, line.text)
        if not found:
            return ""
        if any(each.is_whole and each.quote == _ALL for each in found):
            return None
        places = [(at, at + len(each.quote)) for each in found if (at := line.text.find(each.quote)) >= 0]
        if covers_all(line.text, places):
            return None
        return note_text([Outdated(each.key or shown_words(each.quote), None) for each in found], str)

    def of_fact(self, fact: Fact) -> SupersededStatement | None:
        """The statement of a fact's own key that is outdated, in whichever of its turns; None where the fact stands."""
        if not self._by_event or not fact.sources:
            return None
        if fact.fact_id not in self._facts:
            found = [self._stated(fact, source) for source in fact.sources]
            self._facts[fact.fact_id] = None if None in found else found[0]
        return self._facts[fact.fact_id]

    def _stated(self, fact: Fact, source: str) -> SupersededStatement | None:
        return next((each for each in self._by_event.get(source, ()) if self._is_of(fact, source, each)), None)

    def _is_of(self, fact: Fact, source: str, each: SupersededStatement) -> bool:
        """Is the statement what the fact says?"""
        value = value_words(value_text(fact.value))
        said = value_words(each.quote)
        is_inside = bool(value) and value <= said
        if self._says_again(each, value):
            return False
        about = aspects_of(fact.fact_key)
        if each.key is None:
            return is_inside and self._names(fact.fact_key, each.quote)
        whose, _, key = each.key.rpartition(".")
        if key.startswith("favorite") or whose == "favorite":
            whose, key = "", each.key
        if whose.casefold() not in (about.whose or {""}):
            return False
        keys = _WHOLE_ATTRIBUTES.get(key, frozenset((key,))) | {key}
        is_elsewhere = bool(value) and not is_inside and value <= value_words(self._text(source))
        return not keys.isdisjoint(about.of) and not is_elsewhere

    def _says_again(self, each: SupersededStatement, value: frozenset[str]) -> bool:
        """Do the newer words say the same value, and not that it has ended?"""
        text = self._text(each.by)
        if not text or not value:
            return False
        newer = text.encode()[each.by_start : each.by_end].decode(errors="ignore")
        return value <= value_words(newer) and _ENDING.search(newer) is None

    def _text(self, evidence_id: str) -> str:
        """What may be quoted of a turn of the pool; nothing of any other."""
        turn = self._turns.get(evidence_id)
        return "" if turn is None else turn.quotable

    @staticmethod
    def _names(key: str, quote: str) -> bool:
        """Do the words of a clause name what the key is about? Of `meeting.time` and a value, "meeting" is enough where
        the clause says a number.
        """
        terms = set(analyze(quote))
        words = [word for word in _WORD.findall(key.replace("_", " ")) if word.casefold() != "user"]
        named = [not terms.isdisjoint(analyze(word)) for word in words]
        return bool(named) and (named[-1] or (any(named) and _DIGIT.search(quote) is not None))


def parts_of(statements: Iterable[SupersededStatement], present: Iterable[str]) -> list[Outdated]:
    """Statements as they are noted beside a quote; what supersedes them is named where it stands on the page."""
    here = frozenset(present)
    return [
        Outdated(
            None if each.is_whole else each.key or shown_words(each.quote),
            each.by if each.by in here else None,
        )
        for each in statements
    ]

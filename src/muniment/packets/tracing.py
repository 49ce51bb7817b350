"""Why was my agent told this, and why did it say that? From a text back to builds, their lines, and their events."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate, islice
from typing import Annotated, Any, NamedTuple

from muniment.core.listing import ListQuery, shown
from muniment.core.ports.engine import Reader
from muniment.core.ports.rows import texts
from muniment.core.ports.schema import ENTRIES
from muniment.core.record import Absent, Items, Record, Timestamp, ValidationError
from muniment.core.requests import Request, checked, within
from muniment.core.text.analyzer import analyze
from muniment.errors import InvalidInput, NotFound
from muniment.memory.turn_reading import LiveTurn, turns_by_id
from muniment.memory.turns import Turn
from muniment.packets.answering import cited_lines, find_answers, plain_words, trace_answer
from muniment.store.context import Context
from muniment.store.items import Item
from muniment.store.ledger import LedgerEntry
from muniment.store.lists.seeking import each_made, read_listed, seek
from muniment.store.proofs import check_proofs
from muniment.store.reading import get_entry

__all__ = ["Telling", "trace_text"]

LOOKED_MAX = 1000
"""How many builds, and answers, back it looks, where nobody says."""
LOOKED_AT_MOST = 100_000
ID_CHARS_MAX = 256
_WORD = re.compile(r"[a-z0-9]+")
_MARK = re.compile(r"\[(\d{1,9})\]")
_SHARE_MIN = 0.5
"""A sentence that puts lines in other words, and cites them, has this share of its words from them."""


class Telling(Record):
    """A build whose text held the words that were asked for, or the lines that they cite; or one for an answer."""

    build_id: str
    purpose: str
    at: Timestamp
    policy_id: str
    query: str
    line: str
    """The lines of the prompt it stood on, or that it cites; of an answer those that the sentence cites, if any."""
    evidence_ids: Items[str]
    """The events whose own words these are, as far as the build knew them; of an answer those that it cites."""
    answer_id: Absent[str] = None
    """The event that is the answer."""
    sentence: Absent[str] = None
    """The sentence of the answer."""
    unknown_marks: Absent[Items[str]] = None
    """Marks of the sentence that name nothing on the page it was given."""


class TraceRequest(Request):
    """How far back is looked."""

    looked_max: Annotated[int, within("looked_max is a number of builds", above=0, at_most=LOOKED_AT_MOST)] = LOOKED_MAX


def trace_text(
    ctx: Context, tenant_id: str, text: str, user_id: str | None, looked_max: int = LOOKED_MAX
) -> list[Telling]:
    """Builds that told a model this text, newest first; and answers that say it, with the lines they cite.

    A text is found by its words: case, marks, punctuation and line breaks may differ. A sentence with marks is also
    found by them, in builds whose lines under these marks have at least half of its words. The id of an answer stands
    for the whole of it. Of each kind the newest `looked_max` are looked through.
    """
    most = checked(TraceRequest, looked_max=looked_max).looked_max
    wanted = _Wanted.of(text) if isinstance(text, str) else None
    if wanted is None or not text.strip():
        raise InvalidInput("say which text", path="$.text")
    if (answer := _answer(ctx, tenant_id, text.strip(), user_id)) is not None:
        return list(_answered(ctx, tenant_id, answer, ""))
    if not wanted.words:
        return []
    found = [
        telling
        for entry, _ in find_answers(ctx, tenant_id, wanted.words, user_id, most)
        for telling in _answered(ctx, tenant_id, entry, wanted.words)
    ]
    return [*found, *_told(ctx, tenant_id, wanted, user_id, most)]


class _Wanted(NamedTuple):
    """A text that is traced."""

    words: str
    marks: tuple[str, ...]
    terms: frozenset[str]
    """Its words as the index has them, without those that say nothing."""

    @classmethod
    def of(cls, text: str) -> _Wanted:
        marks = tuple(dict.fromkeys(_MARK.findall(text)))
        return cls(plain_words(text), marks, frozenset(analyze(_MARK.sub(" ", text))) if marks else frozenset())


def _answer(ctx: Context, tenant_id: str, named: str, user_id: str | None) -> LedgerEntry | None:
    """The answer of this id, where there is one that was observed with its build."""
    if len(named) > ID_CHARS_MAX or " " in named:
        return None
    try:
        entry = get_entry(ctx, tenant_id, named, user_id)
    except NotFound:
        return None
    return entry if entry.cited is not None else None


def _answered(ctx: Context, tenant_id: str, entry: LedgerEntry, wanted: str) -> Iterator[Telling]:
    """One for each sentence of an answer that holds the words or, where they are several sentences, is among them."""
    for build, sentence, lines in trace_answer(ctx, tenant_id, entry):
        said = plain_words(sentence.text)
        if wanted not in said and said not in wanted:
            continue
        with _read_as_build(build):
            telling = Telling(
                **_request_of(build.plain()),
                build_id=build.id,
                line="\n".join(lines),
                evidence_ids=sentence.evidence_ids,
                answer_id=entry.id,
                sentence=sentence.text,
                unknown_marks=sentence.unknown_marks,
            )
        yield telling


def _told(ctx: Context, tenant_id: str, wanted: _Wanted, user_id: str | None, most: int) -> Iterator[Telling]:
    asked = ListQuery(descending=True, limit=most)
    reading = read_listed("build", user_id, each_made(lambda item: item), asked)
    word = "" if wanted.marks else max(_WORD.findall(wanted.words), key=len, default="")
    for item in islice(shown(seek(ctx, tenant_id, reading, asked), asked), most):
        if item.checked and word not in _folded(item.body or ""):
            item.check()  # what does not hold the longest word holds no more of it, and is not read on
            continue
        with _read_as_build(item):
            telling = _telling(ctx, tenant_id, item, wanted)
        if telling is not None:
            check_proofs(ctx, tenant_id, [item])
            yield telling


def _folded(text: str) -> str:
    """Casefolded; of letters without accents that is the same as lower case, and much faster."""
    return text.lower() if text.isascii() else text.casefold()


def _telling(ctx: Context, tenant_id: str, item: Item, wanted: _Wanted) -> Telling | None:
    """What a build told of the words; None if it told nothing of them."""
    body = item.plain()
    page, marks = body["text"].splitlines(), body.get("marks", {})
    if lines := _lines_with(page, wanted.words):
        sources = _sources(ctx, tenant_id, body, lines, wanted.words)
    elif lines := _lines_cited(page, marks, wanted):
        sources = tuple(marks[number] for number in wanted.marks)
    else:
        return None
    line = "\n".join(line.strip() for line in lines)
    return Telling(**_request_of(body), build_id=item.id, line=line, evidence_ids=sources)


def _lines_with(page: Sequence[str], words: str) -> list[str]:
    """The lines on which the words first stand, or over which they run."""
    plain = [plain_words(line) for line in page]
    ends = list(accumulate(len(line) + 1 for line in plain))
    start = " ".join(plain).find(words)
    if start < 0:
        return []
    first, last = bisect_right(ends, start), bisect_right(ends, start + len(words) - 1)
    return [line for line, said in zip(page[first : last + 1], plain[first : last + 1], strict=True) if said]


def _lines_cited(page: Sequence[str], marks: dict[str, str], wanted: _Wanted) -> list[str]:
    """The lines that a sentence cites, if they have enough of its words and each of its marks is on the page."""
    if not wanted.terms or not all(number in marks for number in wanted.marks):
        return []
    lines = list(dict.fromkeys(cited_lines(page, wanted.marks)))
    held = wanted.terms.intersection(analyze(" ".join(lines)))
    return lines if len(held) >= _SHARE_MIN * len(wanted.terms) else []


def _sources(ctx: Context, tenant_id: str, body: dict[str, Any], lines: list[str], wanted: str) -> tuple[str, ...]:
    """The events whose words these are, of those that the lines cite: what was only a candidate told nothing.

    If the words are nobody's own (a value that was normalised, a name for a place), all that the lines cite.
    """
    marks: dict[str, str] = body.get("marks", {})
    cited = dict.fromkeys(marks[number] for line in lines for number in _MARK.findall(line) if number in marks)
    told = list(cited or dict.fromkeys(marks.values()))
    held = _holding(ctx, tenant_id, told, wanted)
    for fact in body["pool"]["facts"]:
        if wanted in plain_words(str(fact["fact"]["value"])):
            held |= dict.fromkeys(id_ for id_ in fact["fact"]["sources"] if id_ in told)
    return tuple(held) or tuple(cited)


def _holding(ctx: Context, tenant_id: str, ids: list[str], wanted: str) -> dict[str, None]:
    """Those of these events that hold the words."""

    def read(reader: Reader) -> dict[str, LiveTurn]:
        events = texts(reader, ENTRIES, "id", (("id", "in", tuple(ids)), ("receipt_id", "=", None)))
        return turns_by_id(ctx, reader, tenant_id, events)

    turns = ctx.engine.read(tenant_id, read)
    return {id_: None for id_ in ids if id_ in turns and wanted in plain_words(_words_of(turns[id_].read.turn))}


def _request_of(body: dict[str, Any]) -> dict[str, Any]:
    request = body["request"]
    return {
        "purpose": request["purpose"],
        "at": request["now"],
        "policy_id": request["policy_id"],
        "query": request["query"],
    }


@contextmanager
def _read_as_build(item: Item) -> Iterator[None]:
    """A body that lacks what every build has, or has another thing in its place, is damaged."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, ValidationError):
        raise item.damaged("the body is not one of a build") from None


def _words_of(turn: Turn) -> str:
    """The words of a turn; of a tool's result, the call as well."""
    return f"{turn.speaker} → {turn.text}" if turn.kind == "tool_result" and turn.speaker else turn.text

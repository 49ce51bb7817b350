"""Trace a text back to builds, their lines and their events: why the agent was given it, and why it said it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import accumulate, islice, takewhile
from typing import Annotated, Any, NamedTuple

from muniment.core.listing import ListQuery, shown
from muniment.core.ports.engine import Condition, Reader
from muniment.core.ports.rows import texts
from muniment.core.ports.schema import ENTRIES
from muniment.core.record import Absent, Items, Record, Timestamp, ValidationError
from muniment.core.requests import Request, checked, within
from muniment.core.scope import Scope
from muniment.core.text.analyzer import analyze
from muniment.errors import Forgotten, InvalidInput, NotFound
from muniment.memory.turn_reading import LiveTurn, turns_by_id
from muniment.memory.turns import Turn
from muniment.packets.answers import CitedSentence, resolve
from muniment.packets.builds import Build, build_of
from muniment.store.context import Context
from muniment.store.items import Item, latest, select_items
from muniment.store.ledger import Cited, LedgerEntry
from muniment.store.lists.seeking import each_made, read_listed, seek
from muniment.store.proofs import check_proofs
from muniment.store.reading import content_of, get_entry

__all__ = [
    "AnsweredLine",
    "Telling",
    "cite",
    "cited_lines",
    "find_answers",
    "plain_words",
    "trace_answer",
    "trace_text",
]

_ANY_MARK = re.compile(r"\[\d{1,9}\]")
_PLAIN_WORD = re.compile(r"[^\W_]+")


def plain_words(text: str) -> str:
    """The bare words of a text, ignoring case, marks, punctuation and line breaks."""
    return " ".join(_PLAIN_WORD.findall(_ANY_MARK.sub(" ", text).casefold()))


def cite(ctx: Context, scope: Scope, role: str, content: Any, build: Build | str, path: str = "$.build") -> Cited:
    """The citations of an answer to a build: its marks resolved, unknown ones named."""
    if role != "assistant":
        raise InvalidInput(
            "only an answer is observed with its build", path=path, hint="leave build out, or observe it as assistant"
        )
    made = build_of(ctx, scope, build, path)
    said = resolve(content, made.marks) if isinstance(content, str) else None  # otherwise the record refuses it
    return Cited(
        build_id=made.id,
        evidence_ids=said.evidence_ids if said is not None else (),
        unknown_marks=said.unknown_marks if said is not None else (),
    )


class AnsweredLine(NamedTuple):
    """A sentence of an answer, and the prompt lines it cites."""

    build: Item
    sentence: CitedSentence
    lines: tuple[str, ...]


def trace_answer(ctx: Context, tenant_id: str, entry: LedgerEntry) -> list[AnsweredLine]:
    """The answer by sentence, with the lines of its marks; empty if its build is gone."""
    cited = entry.cited
    if cited is None:
        return []
    build = ctx.engine.read(tenant_id, lambda reader: latest(reader, cited.build_id))
    if build is None or build.body is None:
        return []
    body = build.plain()
    check_proofs(ctx, tenant_id, [build])
    try:
        marks: dict[str, str] = body.get("marks", {})
        numbers = {evidence_id: number for number, evidence_id in marks.items()}
        page = [line for text in (*_texts_in_view(ctx, tenant_id, body), body["text"]) for line in text.splitlines()]
    except (KeyError, TypeError, AttributeError):
        raise build.damaged("the body is not one of a build") from None
    return [
        AnsweredLine(build, sentence, tuple(cited_lines(page, [numbers[id_] for id_ in sentence.evidence_ids])))
        for sentence in resolve(content_of(ctx, tenant_id, entry.id), marks).sentences
    ]


def _texts_in_view(ctx: Context, tenant_id: str, body: dict[str, Any]) -> Iterator[str]:
    """The texts of the other remaining builds that the model saw together with this one."""
    for build_id in body["request"].get("in_view", ()):
        build = ctx.engine.read(tenant_id, partial(latest, item_id=build_id))
        if build is not None and build.body is not None:
            yield build.plain()["text"]


_NEXT = re.compile(r"\[\d|#|- |undated:|Today is |\d{1,2} [A-Z][a-z]+ \d{4}:")
"""The start of a page line that does not continue the one before; quoted words never begin like this."""


def cited_lines(page: Sequence[str], numbers: Sequence[str]) -> Iterator[str]:
    """For each mark the lines that begin with it, with their continuations, else those that contain it."""
    for number in numbers:
        mark = f"[{number}]"
        first = [place for place, line in enumerate(page) if line.startswith(mark)]
        if not first:
            yield from (line.strip() for line in page if mark in line)
        for place in first:
            yield page[place].strip()
            yield from (line.strip() for line in takewhile(lambda line: not _NEXT.match(line), page[place + 1 :]))


def find_answers(
    ctx: Context, tenant_id: str, words: str, user_id: str | None, limit: int
) -> Iterator[tuple[LedgerEntry, str]]:
    """Answers that contain these words (`plain_words`), newest first, within a limit; with their text."""
    where: tuple[Condition, ...] = (("kind", "=", "answer"),)
    if user_id is not None:
        where = (*where, ("user_id", "=", user_id))

    def newest(reader: Reader) -> list[Item]:
        return select_items(reader, where, order=("created_at", "id"), descending=True, limit=limit)

    for item in ctx.engine.read(tenant_id, newest):
        if item.body is None:
            continue
        try:
            entry = get_entry(ctx, tenant_id, item.plain()["event_id"])
            text = content_of(ctx, tenant_id, entry.id)
        except Forgotten:  # between the two reads
            continue
        if words in plain_words(text):
            yield entry, text


LOOKED_MAX = 1000
"""The default number of builds, and of answers, examined."""
LOOKED_AT_MOST = 100_000
ID_CHARS_MAX = 256
_WORD = re.compile(r"[a-z0-9]+")
_MARK = re.compile(r"\[(\d{1,9})\]")
_SHARE_MIN = 0.5
"""The minimum share of words that a paraphrasing sentence takes from the lines it cites."""


class Telling(Record):
    """A build whose text held the words, or the lines that they cite; or the build of an answer."""

    build_id: str
    purpose: str
    at: Timestamp
    policy_id: str
    query: str
    line: str
    """The prompt lines that contain or support it; for an answer, those that the sentence cites, if any."""
    evidence_ids: Items[str]
    """The events with exactly these words, if the build knew them; for an answer, those that it cites."""
    answer_id: Absent[str] = None
    """The event id of the answer."""
    sentence: Absent[str] = None
    """The sentence of the answer."""
    unknown_marks: Absent[Items[str]] = None
    """Marks of the sentence that name nothing on its page."""


class TraceRequest(Request):
    """Limits of a trace."""

    looked_max: Annotated[int, within("looked_max is a number of builds", above=0, at_most=LOOKED_AT_MOST)] = LOOKED_MAX


def trace_text(
    ctx: Context, tenant_id: str, text: str, user_id: str | None, looked_max: int = LOOKED_MAX
) -> list[Telling]:
    """Builds that showed a model this text, newest first; and answers that contain it, with the lines they cite.

    A text is found by its words: case, marks, punctuation and line breaks may differ. A sentence with marks is also
    found by them, in builds whose lines under these marks have at least half of its words. An answer's id selects the
    whole answer. Of each kind the newest `looked_max` are examined.
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
    """A text to trace."""

    words: str
    marks: tuple[str, ...]
    terms: frozenset[str]
    """Its indexed terms, without stop words."""

    @classmethod
    def of(cls, text: str) -> _Wanted:
        marks = tuple(dict.fromkeys(_MARK.findall(text)))
        return cls(plain_words(text), marks, frozenset(analyze(_MARK.sub(" ", text))) if marks else frozenset())


def _answer(ctx: Context, tenant_id: str, named: str, user_id: str | None) -> LedgerEntry | None:
    """The answer with this id, if it was observed with its build."""
    if len(named) > ID_CHARS_MAX or " " in named:
        return None
    try:
        entry = get_entry(ctx, tenant_id, named, user_id)
    except NotFound:
        return None
    return entry if entry.cited is not None else None


def _answered(ctx: Context, tenant_id: str, entry: LedgerEntry, wanted: str) -> Iterator[Telling]:
    """One result per sentence of an answer that contains the words or, if these span several, is among them."""
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
            item.check()  # a body without the longest word cannot match and is not parsed
            continue
        with _read_as_build(item):
            telling = _telling(ctx, tenant_id, item, wanted)
        if telling is not None:
            check_proofs(ctx, tenant_id, [item])
            yield telling


def _folded(text: str) -> str:
    """Casefold; for text without accents that equals lower case, which is much faster."""
    return text.lower() if text.isascii() else text.casefold()


def _telling(ctx: Context, tenant_id: str, item: Item, wanted: _Wanted) -> Telling | None:
    """The match of a build with the words; None without a match."""
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
    """The lines on which the words first occur, or over which they run."""
    plain = [plain_words(line) for line in page]
    ends = list(accumulate(len(line) + 1 for line in plain))
    start = " ".join(plain).find(words)
    if start < 0:
        return []
    first, last = bisect_right(ends, start), bisect_right(ends, start + len(words) - 1)
    return [line for line, said in zip(page[first : last + 1], plain[first : last + 1], strict=True) if said]


def _lines_cited(page: Sequence[str], marks: dict[str, str], wanted: _Wanted) -> list[str]:
    """The lines that a sentence cites, if they share enough words and each of its marks is on the page."""
    if not wanted.terms or not all(number in marks for number in wanted.marks):
        return []
    lines = list(dict.fromkeys(cited_lines(page, wanted.marks)))
    held = wanted.terms.intersection(analyze(" ".join(lines)))
    return lines if len(held) >= _SHARE_MIN * len(wanted.terms) else []


def _sources(ctx: Context, tenant_id: str, body: dict[str, Any], lines: list[str], wanted: str) -> tuple[str, ...]:
    """The cited events with exactly these words; mere candidates showed nothing.

    If the words are no verbatim quote (a normalised value, a name for a place), all events that the lines cite.
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
    """The subset of these events that contain the words."""

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
    """Treat a body with missing or mistyped standard fields as damaged."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, ValidationError):
        raise item.damaged("the body is not one of a build") from None


def _words_of(turn: Turn) -> str:
    """The words of a turn, including a tool result's call."""
    return f"{turn.speaker} → {turn.text}" if turn.kind == "tool_result" and turn.speaker else turn.text

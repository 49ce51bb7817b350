"""From an answer back: what its marks cite when it is observed, and afterwards the lines it was given (TM-10)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import takewhile
from typing import Any, NamedTuple

from muniment.core.ports.engine import Condition, Reader
from muniment.core.scope import Scope
from muniment.errors import Forgotten, InvalidInput
from muniment.packets.builds import Build, build_of
from muniment.packets.page.answers import CitedSentence, resolve
from muniment.store.context import Context
from muniment.store.items import Item, latest, select_items
from muniment.store.ledger import Cited, LedgerEntry
from muniment.store.proofs import check_proofs
from muniment.store.reading import content_of, get_entry

__all__ = ["AnsweredLine", "cite", "cited_lines", "find_answers", "plain_words", "trace_answer"]

_MARK = re.compile(r"\[\d{1,9}\]")
_WORD = re.compile(r"[^\W_]+")


def plain_words(text: str) -> str:
    """The words of a text alone: two that differ in case, marks, punctuation or line breaks have the same."""
    return " ".join(_WORD.findall(_MARK.sub(" ", text).casefold()))


def cite(ctx: Context, scope: Scope, role: str, content: Any, build: Build | str, path: str = "$.build") -> Cited:
    """What an answer cites of a build: its marks resolved, the unknown ones named."""
    if role != "assistant":
        raise InvalidInput(
            "only an answer is observed with its build", path=path, hint="leave build out, or observe it as assistant"
        )
    made = build_of(ctx, scope, build, path)
    said = resolve(content, made.marks) if isinstance(content, str) else None  # else the record refuses it
    return Cited(
        build_id=made.id,
        evidence_ids=said.evidence_ids if said is not None else (),
        unknown_marks=said.unknown_marks if said is not None else (),
    )


class AnsweredLine(NamedTuple):
    """A sentence of an answer, and the lines of the prompt that it cites."""

    build: Item
    sentence: CitedSentence
    lines: tuple[str, ...]


def trace_answer(ctx: Context, tenant_id: str, entry: LedgerEntry) -> list[AnsweredLine]:
    """The answer sentence by sentence, with the lines that its marks stand on; empty where its build is gone."""
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
    """The texts of the builds that the model had before it beside this one; of those that are still there."""
    for build_id in body["request"].get("in_view", ()):
        build = ctx.engine.read(tenant_id, partial(latest, item_id=build_id))
        if build is not None and build.body is not None:
            yield build.plain()["text"]


_NEXT = re.compile(r"\[\d|#|- |undated:|Today is |\d{1,2} [A-Z][a-z]+ \d{4}:")
"""How a line of a page begins that does not go on with the one before; words of somebody never begin so."""


def cited_lines(page: Sequence[str], numbers: Sequence[str]) -> Iterator[str]:
    """For each mark the lines that begin with it, with those that go on from them, else those that hold it."""
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
    """Answers that hold these words (`plain_words`), newest first, of so many as are looked at; with their text."""
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

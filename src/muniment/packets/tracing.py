"""Why was my agent told this, and why did it say that? From a text back to builds, their lines, and their events."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from muniment.core.record import Absent, Items, Record, Timestamp, ValidationError
from muniment.errors import InvalidInput, NotFound
from muniment.packets.answering import find_answers, trace_answer
from muniment.packets.builds import list_builds
from muniment.store.context import Context
from muniment.store.items import Item
from muniment.store.ledger.records import LedgerEntry
from muniment.store.proving.proofs import check_proofs
from muniment.store.reading import get_entry

__all__ = ["Telling", "trace_text"]

BUILDS_MAX = 1000
"""How many builds, and answers, back it looks."""
ID_CHARS_MAX = 256


class Telling(Record):
    """A build whose text held the words that were asked for, or that an answer with these words was given."""

    build_id: str
    purpose: str
    at: Timestamp
    policy_id: str
    query: str
    line: str
    """The line of the prompt it stood on; of an answer the lines that the sentence cites, which may be none."""
    evidence_ids: Items[str]
    """The events whose own words these are, as far as the build knew them; of an answer those that it cites."""
    answer_id: Absent[str] = None
    """The event that is the answer."""
    sentence: Absent[str] = None
    """The sentence of the answer."""
    unknown_marks: Absent[Items[str]] = None
    """Marks of the sentence that name nothing on the page it was given."""


def trace_text(ctx: Context, tenant_id: str, text: str, user_id: str | None) -> list[Telling]:
    """Builds that told a model this text, newest first; and answers that say it, with the lines they cite.

    The id of an answer stands for the whole of it.
    """
    wanted = " ".join(text.split()) if isinstance(text, str) else ""
    if not wanted:
        raise InvalidInput("say which text", path="$.text")
    if (answer := _answer(ctx, tenant_id, wanted, user_id)) is not None:
        return list(_answered(ctx, tenant_id, answer, ""))
    found = [
        telling
        for entry, _ in find_answers(ctx, tenant_id, wanted, user_id, BUILDS_MAX)
        for telling in _answered(ctx, tenant_id, entry, wanted)
    ]
    return [*found, *_told(ctx, tenant_id, wanted, user_id)]


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
    """One for each sentence of an answer that holds the words."""
    for build, sentence, lines in trace_answer(ctx, tenant_id, entry):
        if wanted.casefold() not in " ".join(sentence.text.split()).casefold():
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


def _told(ctx: Context, tenant_id: str, wanted: str, user_id: str | None) -> Iterator[Telling]:
    for item in list_builds(ctx, tenant_id, user_id, BUILDS_MAX):
        with _read_as_build(item):
            telling = _telling(item, wanted)
        if telling is not None:
            check_proofs(ctx, tenant_id, [item])
            yield telling


def _telling(item: Item, wanted: str) -> Telling | None:
    """What a build told of the words; None where they are not in it."""
    body = item.plain()
    line = next((line for line in body["text"].splitlines() if wanted.casefold() in line.casefold()), None)
    if line is None:
        return None
    pool = body["pool"]
    turns = [hit["turn"] for hit in pool["hits"]] + list(pool["window"])
    sources = [turn["id"] for turn in turns if wanted.casefold() in _words_of(turn).casefold()]
    for fact in pool["facts"]:
        if wanted.casefold() in str(fact["fact"]["value"]).casefold():
            sources += fact["fact"]["sources"]
    return Telling(**_request_of(body), build_id=item.id, line=line.strip(), evidence_ids=tuple(dict.fromkeys(sources)))


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


def _words_of(turn: dict[str, Any]) -> str:
    """The words of a turn on one line; of a tool's result, the call as well."""
    called = turn["speaker"] if turn["kind"] == "tool_result" else None
    return " ".join(f"{called} → {turn['text']}".split()) if called else " ".join(turn["text"].split())

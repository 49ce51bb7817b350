"""The six everyday tools: search, remember, context, record, forget, why. Each calls the caller's handles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from muniment.contracts.packet import Cues
from muniment.core.canonical import canonical_text
from muniment.errors import InvalidInput
from muniment.surfaces.mcp import words
from muniment.surfaces.mcp.answers import (
    ANSWER_CHARS_MAX,
    NOTICE,
    Composed,
    Erased,
    Found,
    FoundHit,
    Recorded,
    Remembered,
    RememberedFact,
)
from muniment.surfaces.mcp.arguments import (
    CHARS_MAX,
    K_MAX,
    TOKENS_MAX,
    TOKENS_MIN,
    ContextArguments,
    ForgetArguments,
    RecordArguments,
    RememberArguments,
    SearchArguments,
    check_count,
)
from muniment.surfaces.mcp.excerpts import excerpt, fitting, shortened
from muniment.surfaces.mcp.tool import Answered

if TYPE_CHECKING:
    from muniment.memory.search import Hit
    from muniment.surfaces.mcp.callers import ToolCaller

__all__ = ["forget", "get_context", "record", "remember", "search_memory"]

HIT_CHARS_MAX = 600
"""The most characters of one hit; the rest is read by its id."""
PART_CHARS_MAX = 8_000
"""The most characters of an entry that is read by its id, in one answer."""
SOURCES_MAX = 20
_HITS_CHARS_MAX = ANSWER_CHARS_MAX - 500
"""The most characters of the hits in an answer; the rest is for the text around them."""


# -- search -------------------------------------------------------------------------------------------


def search_memory(tool_caller: ToolCaller, asked: SearchArguments) -> Answered:
    if asked.event_id is not None:
        if asked.query is not None:
            raise InvalidInput("give a query or an event_id", path="$.query")
        found = _read_on(tool_caller, asked)
    elif asked.query is None:
        raise InvalidInput("say what to look for", path="$.query", hint="a query, or the event_id of an entry to read")
    else:
        found = _search(tool_caller, asked, asked.query)
    return Answered(found, words.say_found(found))


def _search(tool_caller: ToolCaller, asked: SearchArguments, query: str) -> Found:
    k = check_count(asked.k, 1, K_MAX, "k")
    hits = tool_caller.run.search(query, k=k, now=asked.now, min_score=asked.min_score)
    shown = fitting([_found_hit(hit, query) for hit in hits], _HITS_CHARS_MAX)
    more = []
    left_out = len(hits) - len(shown)
    if left_out:
        more.append(f"{left_out} less likely hits are left out: ask for something narrower")
    if any(hit.next is not None or hit.start for hit in shown):
        more.append("a hit that was cut is read whole with its id as event_id")
    told: dict[str, Any] = {"left_out": left_out or None, "more": "; ".join(more) or None}
    return Found(notice=NOTICE, hits=shown, **_present(told))


def _found_hit(hit: Hit, query: str) -> FoundHit:
    part = excerpt(hit.text, query, HIT_CHARS_MAX)
    who = hit.speaker or hit.role
    told: dict[str, Any] = {
        "who": shortened(who, 200) if who else None,
        "flags": hit.flags or None,
        "sources": None if hit.sources == (hit.id,) else hit.sources[:SOURCES_MAX],
        "start": part.start or None,
        "next": part.end if part.end < len(hit.text) else None,
    }
    return FoundHit(
        id=hit.id,
        kind=hit.kind,
        text=part.text,
        score=round(hit.score, 3),
        ts=hit.ts,
        trust=hit.trust,
        **_present(told),
    )


def _present(told: dict[str, Any]) -> dict[str, Any]:
    """Leave out fields without a value."""
    return {name: value for name, value in told.items() if value is not None}


def _read_on(tool_caller: ToolCaller, asked: SearchArguments) -> Found:
    """Read one entry by its id, from a character on, as much as fits in an answer."""
    start = check_count(asked.start, 0, CHARS_MAX, "start")
    entry = tool_caller.run.ledger.get(str(asked.event_id))
    whole = tool_caller.run.ledger.content(entry.id)
    text = whole[start : start + PART_CHARS_MAX]
    while len(canonical_text(text)) > _HITS_CHARS_MAX - HIT_CHARS_MAX:  # JSON escapes make some texts longer
        text = text[: len(text) // 2]
    end = start + len(text)
    who = entry.speaker or entry.role
    has_more = end < len(whole)
    told = {"flags": entry.flags or None, "start": start or None, "next": end if has_more else None}
    hit = FoundHit(
        id=entry.id,
        kind="event",
        text=text,
        ts=entry.ts,
        who=shortened(who, 200),
        trust=entry.trust,
        **_present(told),
    )
    more = f"{len(whole) - end} characters follow: read on with start {end}" if has_more else None
    return Found(notice=NOTICE, hits=(hit,), **_present({"more": more}))


# -- remember -----------------------------------------------------------------------------------------


def remember(tool_caller: ToolCaller, asked: RememberArguments) -> Answered:
    has_value = "value" in asked.model_fields_set
    if asked.key is None and has_value:
        raise InvalidInput("a value needs its key", path="$.key", hint="such as user.city")
    if asked.key is not None and not has_value:
        raise InvalidInput("a key needs its value", path="$.value")
    if asked.key is None and asked.text is None:
        raise InvalidInput("say what to remember", path="$.text", hint="a text, or a key and its value")
    if asked.key is None and (asked.sources or asked.quote):
        given = "sources" if asked.sources else "quote"
        raise InvalidInput("evidence goes with a fact", path=f"$.{given}", hint="give key and value too")
    sources, event_id = list(asked.sources), None
    if asked.text is not None:
        event_id = tool_caller.run.observe("user", asked.text, trust=tool_caller.trust("user")).id
    elif not sources:
        event_id = tool_caller.run.observe("assistant", _sentence(asked), trust=tool_caller.trust("assistant")).id
    made: dict[str, Any] = {} if event_id is None else {"event_id": event_id}
    if asked.key is not None:
        made["fact"] = _fact(tool_caller, asked, asked.key, [*sources, *([] if event_id is None else [event_id])])
    remembered = Remembered(**made)
    return Answered(remembered, words.say_remembered(remembered, asked.value))


def _sentence(asked: RememberArguments) -> str:
    """The text recorded if a model gives no evidence: its own statement."""
    value = asked.value if isinstance(asked.value, str) else canonical_text(asked.value)
    return f"{asked.key}: {value}"


def _fact(tool_caller: ToolCaller, asked: RememberArguments, key: str, sources: list[str]) -> RememberedFact:
    fact = tool_caller.run.remember(
        key,
        asked.value,
        sources=sources,
        quote=asked.quote,
        confidence=asked.confidence,
        scope_level=tool_caller.settings.level,  # type: ignore[arg-type]  # one of CHOICES
        valid_from=asked.valid_from,
        valid_to=asked.valid_to,
        notes=asked.notes,
    )
    return RememberedFact(fact_id=fact.fact_id, key=fact.fact_key, status=fact.status, sources=fact.sources)


# -- context ------------------------------------------------------------------------------------------


def get_context(tool_caller: ToolCaller, asked: ContextArguments) -> Answered:
    tokens = asked.max_tokens
    build = tool_caller.run.compose(
        asked.purpose,
        query=asked.query,
        max_tokens=None if tokens is None else check_count(tokens, TOKENS_MIN, TOKENS_MAX, "max_tokens"),
        cues=asked.cues.to_wire() if isinstance(asked.cues, Cues) else asked.cues,
        now=asked.now,
        idempotency_key=asked.idempotency_key,
    )
    composed = Composed(
        notice=NOTICE,
        build_id=build.id,
        text=build.text,
        found=build.found,
        tokens=build.tokens,
        max_tokens=build.request.budget.max_tokens,
        marks=dict(build.marks),
    )
    return Answered(composed, words.say_composed(composed))


# -- record -------------------------------------------------------------------------------------------


def record(tool_caller: ToolCaller, asked: RecordArguments) -> Answered:
    more: dict[str, Any] = {
        "ts": asked.ts,
        "tags": asked.tags,
        "entities": asked.entities,
        "idempotency_key": asked.idempotency_key,
        "trust": tool_caller.trust(asked.role, asked.trust),
    }
    if (asked.role == "tool") != (asked.tool is not None):
        raise InvalidInput("a tool's result, and nothing else, names its tool", path="$.tool")
    if asked.tool is not None:
        if asked.speaker is not None:
            raise InvalidInput("a tool has no speaker", path="$.speaker")
        if asked.build is not None:
            raise InvalidInput("only an answer is recorded with its build", path="$.build")
        ok = True if asked.ok is None else asked.ok
        more |= {"args": asked.args, "call_id": asked.call_id}
        entry = tool_caller.run.observe_tool(asked.tool, content=asked.content, ok=ok, **more)
    else:
        if asked.ok is not None:
            raise InvalidInput("only a tool's result is ok or not", path="$.ok")
        for name in ("args", "call_id"):
            if getattr(asked, name) is not None:
                raise InvalidInput("only a tool's result answers a call", path=f"$.{name}")
        entry = tool_caller.run.observe(asked.role, asked.content, speaker=asked.speaker, build=asked.build, **more)
    flags: dict[str, Any] = {"flags": entry.flags} if entry.flags else {}
    recorded = Recorded(event_id=entry.id, ts=entry.ts, trust=entry.trust, **flags)
    return Answered(recorded, words.say_recorded(recorded))


# -- forget -------------------------------------------------------------------------------------------


def forget(tool_caller: ToolCaller, asked: ForgetArguments) -> Answered:
    if (asked.event_id is None) == (asked.fact_id is None):
        raise InvalidInput("name one event or one fact", path="$.event_id", hint="`search_memory` finds its id")
    if asked.event_id is not None:
        kind = tool_caller.run.ledger.get(asked.event_id).kind
        if kind not in ("message", "tool_result"):
            raise InvalidInput(
                f"the event is a {kind}, which the store itself wrote", path="$.event_id", hint="name what it speaks of"
            )
    receipt = tool_caller.memory.forget(
        event=asked.event_id, fact=asked.fact_id, user_id=tool_caller.user, tenant_id=tool_caller.tenant
    )
    erased = Erased(receipt_id=receipt.receipt_id, counts=dict(receipt.counts))
    return Answered(erased, words.say_erased(erased))

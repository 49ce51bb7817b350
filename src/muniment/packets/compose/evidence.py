"""How much evidence a packet shows: what is too weak to stand in it, what comes first, was anything found.

Pure functions of what was gathered and placed: replay decides the same again.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from muniment.memory.recall.reasons import match_text, read_wanted
from muniment.memory.recall.several import gathers
from muniment.memory.results.asked_calls import asked_order, asks_how_often
from muniment.packets.compose.advice_questions import asks_for_advice
from muniment.packets.compose.run_questions import read_question
from muniment.packets.page.lines import StateUnit, state_line

if TYPE_CHECKING:
    from muniment.core.policy import ComposePolicy
    from muniment.memory.turns import SessionLine
    from muniment.packets.compose.draft import PacketDraft
    from muniment.packets.page.lines import BlockName
    from muniment.packets.pool import HitCandidate

__all__ = ["is_asked", "is_found", "strong_ids", "worth_of"]

_USUAL_TOKENS = 1024
"""The budget that the cut-off was chosen at."""
_CHARS_A_TOKEN = 4
"""About: the tokens of a hundred turns are not counted only to put them in order."""
_FAILED = re.compile(r" failed(?: →|$)")
"""How the line of a tool's result says that it failed."""


_HELPING: tuple[BlockName, ...] = ("instructions", "facts", "insights")
"""What, beside earlier sessions, may tell of the one who asks, and helps to advise them."""


def is_asked(draft: PacketDraft) -> bool:
    """Is there anything that evidence is sought for: a query, or keywords?"""
    return bool(draft.request.query.strip() or any(word.strip() for word in draft.request.cues.keywords or ()))


def strong_ids(draft: PacketDraft, worths: Sequence[float]) -> frozenset[str]:
    """The turns that are worth their room; all of them where nothing is asked. `worths` is what each hit is worth."""
    policy, hits = draft.policy, draft.pool.hits
    if not is_asked(draft):
        return frozenset([hit.turn.id for hit in hits])
    least = max(worths, default=0.0) * _share(draft)
    return frozenset(
        hit.turn.id
        for hit, worth in zip(hits, worths, strict=True)
        if worth >= least and hit.score >= policy.evidence_min
    )


def worth_of(hit: HitCandidate, policy: ComposePolicy, result_tokens_max: float = math.inf) -> float:
    """What a quote is worth for the room it takes: how likely it is evidence, and of a long one less than that.

    Room is what the others go without: two short turns of a chance each tell more than a long one of the same chance.
    A tool's result is shown by the lines that match: however long it is, it takes no more than `result_tokens_max`.
    """
    tokens = len(hit.turn.text) / _CHARS_A_TOKEN
    if hit.turn.kind == "tool_result":
        tokens = min(tokens, result_tokens_max)
    if tokens <= policy.short_tokens:
        return hit.score
    return hit.score * math.pow(policy.short_tokens / tokens, policy.length_discount)


def _share(draft: PacketDraft) -> float:
    """What a quote is worth at least, measured by the best one, so that a question whose evidence is hard to tell keeps
    more. Half as much is enough where several things are asked for, each of which holds; and the less, the more room
    the caller gives beyond what is usual: that much they are willing to read.
    """
    share = draft.policy.evidence_share / (2 if gathers(draft.request.query) else 1)
    return share * math.pow(min(1.0, _USUAL_TOKENS / draft.purse.tokens_max), 2)


def is_found(draft: PacketDraft, hits: Iterable[HitCandidate]) -> bool:
    """Does memory hold something on what is asked?

    True where one of the hits that may be quoted is evidence with `found_min` or more, or those are together that
    share the question (`_alike`); where a fact that was placed holds `match_min` of what is asked for, or a line that
    the search does not look through does (`_Line.share`); where nothing is asked for but the work at hand, or the
    talk itself, and a line tells of it; and where advice is asked for, and anything is told of the one who asks.
    """
    policy = draft.policy
    hits = list(hits)
    if any(hit.score >= policy.found_min for hit in hits):
        return True
    if math.fsum(hit.score for hit in _alike(draft, hits)) >= policy.found_min:
        return True
    facts = (*draft.items("instructions"), *draft.items("facts"))
    if any(placed.item.score >= policy.match_min for placed in facts):
        return True
    if asks_for_advice(draft.request.query) and (draft.pool.episodes or any(map(draft.items, _HELPING))):
        return True
    asked = read_question(draft.request.query)
    if not asked.has_subject:
        is_about_work = not any(word.strip() for word in draft.request.cues.keywords or ())
        return is_about_work and any(line.kind in asked.answered_by for line in _lines(draft))
    wanted = read_wanted(asked.subject)
    measured = (
        (line, policy.match_min if line.share is None else line.share) for line in _lines(draft) if line.share != 0
    )
    return any(match_text(wanted, line.text).score >= share for line, share in measured)


def _alike(draft: PacketDraft, hits: Iterable[HitCandidate]) -> Iterator[HitCandidate]:
    """The hits that hold `match_min` of what is asked for, where it is asked how often something happened, or of calls
    which is the first or the last: two hundred that are alike share the chance, and none of them has much of it.
    """
    query = draft.request.query
    is_counted = asks_how_often(query.casefold())
    if not is_counted and asked_order(query) is None:
        return
    wanted = read_wanted(read_question(query).subject)
    for hit in hits:
        turn = hit.turn
        is_call = turn.kind == "tool_result"
        text = f"{turn.speaker} {turn.text}" if is_call and turn.speaker else turn.text
        if (is_counted or is_call) and match_text(wanted, text).score >= draft.policy.match_min:
            yield hit


class _Line(NamedTuple):
    """A line that stands in a packet whatever is asked."""

    kind: str
    """The part of the state, or what else it is."""
    text: str
    share: float | None
    """How much of what is asked for it holds where it answers: as much as a fact does (None), or all of it where it
    says what is meant to be and not what is; 0 of what answers no question by its words, or what the search, which
    sees every turn, has judged."""


_MEANT = frozenset(("goal", "objective", "done_definition", "plan", "next_actions", "risks", "hints"))


def _lines(draft: PacketDraft) -> Iterator[_Line]:
    for placed in (*draft.items("task"), *draft.items("state")):
        unit: StateUnit = placed.item
        yield _Line(unit.part, state_line(unit, lambda _: ""), 1.0 if unit.part in _MEANT else None)
    yield from (_Line("loops", placed.item.question, 0) for placed in draft.items("loops"))
    for placed in draft.items("summary"):
        line: SessionLine = placed.item[0]
        is_settled = line.kind is not None and line.kind != "given"
        yield _Line("settled" if is_settled else "summary", line.text, None if line.kind == "given" else 0)
    for placed in draft.items("tools"):
        yield _Line("failed_tools" if _FAILED.search(placed.item.summary) else "tools", placed.item.summary, 0)
    yield from (_Line("window", turn.text, 0) for turn in draft.pool.window if draft.bars_turn(turn) is None)

"""Candidate lines from the conversation: profile, summary, open questions, tool results, last turns, quotes.

Likely evidence comes before the user's recent turns. A turn has one line, regardless of the source offering it.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Any, NamedTuple

from muniment.contracts.packet import OpenLoop, ToolEvidence
from muniment.core.policy import ComposePolicy
from muniment.core.text.analyzer import analyze
from muniment.core.text.sentences import Seen, Words, read_words, with_marks
from muniment.memory.tool_results import asks_how_often
from muniment.memory.turns import SessionLine, Turn, told_text
from muniment.packets.admission import Admission, emitted_ts, instant_order
from muniment.packets.allocate import (
    TYPICAL_MARK,
    Candidate,
    Fits,
    IsShown,
    Offer,
    ShownTurn,
    Step,
    cut_text,
    cut_turn,
    typical_mark,
    whole_turn,
)
from muniment.packets.explain import Explanation, Reason, names_of
from muniment.packets.page import (
    BlockName,
    day_heading,
    day_of,
    excerpt_line,
    loop_line,
    may_show,
    quote_line,
    summary_evidence,
    summary_line,
    summary_text,
    superseded_note,
    tool_line,
)
from muniment.packets.pool import CUE_PART, SAID_LATELY, HitCandidate

__all__ = [
    "SETTLED",
    "WINDOW",
    "QuoteOffers",
    "ShownLine",
    "cued_turns",
    "offer_loops",
    "offer_profile",
    "offer_quotes",
    "offer_summary",
    "offer_tools",
    "offer_window",
    "worth_of",
]

SETTLED, WINDOW = "summary", "last turns"
"""The budget pots of the summary and the last turns."""


# -- the session's summary ----------------------------------------------------------------------------

_SETTLED_FIRST = ("constraint", "given", "decision", "commitment")
"""The allocation order of settled points; the page lists them in the order they were said."""


class ShownLine(NamedTuple):
    """A summary line in a packet, and its form in `rolling_summary` with evidence ids."""

    line: SessionLine
    text: str
    written: str


def offer_summary(admission: Admission, notes: Explanation) -> list[Offer]:
    """The session's settled points and the caller's summary, strongest first, then newest."""
    fit: list[tuple[int, str, SessionLine]] = []
    names = names_of("summary", (line.evidence_id for line in admission.pool.summary))
    for at, (name, line) in enumerate(zip(names, admission.pool.summary, strict=True)):
        if (reason := _unfit_line(admission, line)) is not None:
            notes.omit(name, reason)
        elif line.kind is None:
            notes.omit(name, "weak_evidence")
        else:
            fit.append((at, name, line))
    fit.sort(key=lambda each: (_SETTLED_FIRST.index(each[2].kind or ""), -each[2].weight, -each[0]))
    return [Offer(_summary_candidate(admission, name, line, at), pot=SETTLED) for at, name, line in fit]


def _unfit_line(admission: Admission, line: SessionLine) -> Reason | None:
    text = line.text.strip()
    if not text:
        return "empty"
    if line.kind == "given" and (reason := admission.bars(line.trust or "assistant", line.flags or ())) is not None:
        return reason
    for evidence_id in (line.evidence_id, *(line.sources or ())):
        if (reason := admission.bars_sentence(evidence_id, text)) is not None:
            return reason
    return admission.cues.bars(line.ts)


def _summary_candidate(admission: Admission, name: str, line: SessionLine, at: int) -> Candidate:
    cited = summary_evidence(line)

    def shown(text: str) -> ShownLine:
        return ShownLine(line, text, summary_line(line, text, admission.who(line.evidence_id)))

    def write(shown: ShownLine) -> str:
        return summary_text(shown.written, cited, typical_mark, admission.answers)

    def shorten(fits: Fits, _: IsShown) -> tuple[ShownLine, Step] | None:
        if line.kind != "given":
            return None  # half of a decision is a different decision
        text = cut_text(line.text.strip(), lambda part: fits(shown(part)))
        return None if text is None else (shown(text), "raw→summary")

    def says(shown: ShownLine) -> tuple[str, Words | None]:
        return shown.text, line.words if shown.text == line.text else None

    return Candidate(
        name,
        "summary",
        shown(line.text.strip()),
        (at,),
        write,
        line.weight,
        (line.kind or "weight",),
        shorten=shorten,
        voice="summary",
        says=says,
        tells=lambda shown: [(line.evidence_id, shown.text)],
    )


# -- open questions and tool results ------------------------------------------------------------------


def offer_loops(admission: Admission, notes: Explanation) -> list[Offer]:
    offers = []
    names = names_of("loop", (str(at) for at in range(len(admission.pool.loops))))
    for at, (name, loop) in enumerate(zip(names, admission.pool.loops, strict=True)):
        if loop.status != "open":
            notes.omit(name, "superseded", detail="closed")
        elif (said_at := admission.said_at(loop.evidence_id)) is not None and admission.cues.bars(said_at):
            notes.omit(name, "out_of_window")
        elif not loop.question.strip():
            notes.omit(name, "empty")
        elif (reason := admission.bars_sentence(loop.evidence_id, loop.question)) is not None:
            notes.omit(name, reason)
        else:
            offers.append(Offer(Candidate(name, "loops", loop, (at,), _loop_line, 0.0, ("open",))))
    return offers


def _loop_line(loop: OpenLoop) -> str:
    return loop_line(loop, typical_mark)


def offer_tools(admission: Admission, notes: Explanation) -> list[Offer]:
    """The newest results first, whole or by reference only; shown in call order, so that an edit follows the failure
    that prompted it.
    """
    offers: list[Offer] = []
    names = names_of("tool", (tool.ref for tool in admission.pool.tools))
    taken: dict[str, str] = {}
    said: dict[str, str] = {}
    for at, (name, tool) in enumerate(zip(names, admission.pool.tools, strict=True)):
        summary = tool.summary.strip()
        if not may_show("tools", admission.purpose):
            notes.omit(name, "purpose")
        elif (reason := admission.bars(tool.trust, tool.flags) or admission.cues.bars(tool.ts)) is not None:
            notes.omit(name, reason)
        elif tool.ref in admission.superseded:
            notes.omit(name, "superseded", by=admission.superseded[tool.ref])
        elif tool.ref in taken:
            notes.omit(name, "duplicate")
        elif summary and summary in said:
            notes.omit(name, "duplicate", of=said[summary])
        elif len(taken) >= admission.policy.tool_evidence_max:
            notes.omit(name, "count_limit", limit=admission.policy.tool_evidence_max)
        else:
            taken[tool.ref] = said[summary] = name
            offers.append(Offer(_tool_candidate(name, ToolEvidence(ref=tool.ref, summary=summary), at)))
    return offers


def _tool_candidate(name: str, evidence: ToolEvidence, at: int) -> Candidate:
    def shorten(fits: Fits, _: IsShown) -> tuple[ToolEvidence, Step] | None:
        ref = ToolEvidence(ref=evidence.ref, summary="")
        return (ref, "raw→ref") if fits(ref) else None

    def says(evidence: ToolEvidence) -> tuple[str, None]:
        return evidence.summary, None

    return Candidate(
        name,
        "tools",
        evidence,
        (-at,),
        lambda evidence: tool_line(evidence, typical_mark),
        0.0,
        ("recent",),
        evidence.ref,
        shorten=shorten,
        says=says,
    )


# -- turns --------------------------------------------------------------------------------------------


def offer_window(admission: Admission, notes: Explanation) -> list[Offer]:
    """The last turns, newest first, so that the oldest are dropped first. Off for a responder (MP-05)."""
    offers: list[Offer] = []
    names = names_of("turn", (turn.id for turn in admission.pool.window))
    query = _folded(admission.request.query)
    for at, (name, turn) in reversed(list(enumerate(zip(names, admission.pool.window, strict=True)))):
        if not may_show("window", admission.purpose):
            notes.omit(name, "purpose")
        elif (reason := admission.bars_turn(turn)) is not None:
            notes.omit(name, reason)
        elif not turn.text.strip():
            notes.omit(name, "empty")
        elif turn.role == "user" and _folded(turn.text) == query:
            notes.omit(name, "duplicate", of="query")
        elif len(offers) >= admission.policy.window_turns:
            notes.omit(name, "count_limit", limit=admission.policy.window_turns)
        else:
            newer = admission.superseded.get(turn.id)
            candidate = _turn_candidate(admission, name, "window", turn, (at,), 0.0, ("recent",), after=newer)
            offers.append(Offer(candidate, pot=WINDOW))
    return offers


def offer_profile(admission: Admission, notes: Explanation) -> list[Offer]:
    """The profile's statements, by the gate's scores, then newest. They are short, so none is cut."""
    offers: list[tuple[int, Offer]] = []
    query = _folded(admission.request.query)
    names = names_of("profile", [each.turn.id for each in admission.pool.profile])
    for name, each in zip(names, admission.pool.profile, strict=True):
        turn, text = each.turn, each.turn.text[each.start : each.end]
        if (reason := admission.bars_turn(turn)) is not None:
            notes.omit(name, reason)
        elif _folded(turn.text) == query:
            notes.omit(name, "duplicate", of="query")
        else:
            candidate = _turn_candidate(
                admission,
                name,
                "profile",
                turn,
                (instant_order(turn.ts), turn.session_id, turn.seq),
                round(max(each.safety, each.wish) / 255, 4),
                ("safety" if each.safety >= each.wish else "wish",),
                heading=day_heading(_day(turn.ts)),
                shown=ShownTurn(turn, text),
            )
            offers.append((-max(each.safety, each.wish), Offer(candidate, may_cut=False)))
    return [offer for _, offer in sorted(offers, key=lambda pair: pair[0])]


class QuoteOffers(NamedTuple):
    """The quotable turns."""

    found: list[Offer]
    """Turns that match a cue, then search hits by their probability of being evidence per room taken."""
    own: list[Offer]
    """The user's recent turns, newest first; those with one meaningful word ("Thanks!") last."""


_RESULT_TOKENS = 160
"""The tokens of a tool's result in a large budget while others wait: its matching lines come first, and the rest is
offered again for remaining room.
"""
_WORDS_MIN, _SHORT_CHARS = 2, 80


def offer_quotes(admission: Admission, notes: Explanation) -> QuoteOffers:
    """Offer the hits of the pool."""
    policy, hits = admission.policy, admission.pool.hits
    most = int(policy.quote_share * admission.request.budget.max_tokens)
    names = names_of("quote", [hit.turn.id for hit in hits])
    worths = [worth_of(hit, policy, min(most, _RESULT_TOKENS)) for hit in hits]
    least = max(worths, default=0.0) * policy.evidence_share
    query = _folded(admission.request.query)
    found: list[tuple[str, HitCandidate]] = []
    own: list[tuple[str, HitCandidate]] = []
    taken: set[str] = set()
    carried = [-_carried(hit) for hit in hits]
    for cues, worth, name, hit in sorted(zip(carried, [-each for each in worths], names, hits, strict=True)):
        turn = hit.turn
        is_strong = -worth >= least and hit.score >= policy.evidence_min
        if (reason := admission.bars_turn(turn)) is not None:
            notes.omit(name, reason)
        elif not turn.text.strip():
            notes.omit(name, "empty")
        elif turn.id in taken:
            notes.omit(name, "duplicate")
        elif turn.role == "user" and _folded(turn.text) == query:
            notes.omit(name, "duplicate", of="query")
        elif hit.reasons != (SAID_LATELY,) and (not admission.is_asked or is_strong or cues):
            taken.add(turn.id)
            found.append((name, hit))
        elif SAID_LATELY in hit.reasons:
            taken.add(turn.id)
            own.append((name, hit))
        else:
            notes.omit(name, "weak_evidence")
    if not admission.request.query.strip():
        for name, hit in found[policy.quotes_max :]:  # without a query nothing matches
            if SAID_LATELY in hit.reasons:
                own.append((name, hit))
            else:
                notes.omit(name, "count_limit")
        found = found[: policy.quotes_max]
    found = _newest_of_each(admission, found, notes)
    own.sort(key=lambda named: (instant_order(named[1].turn.ts), named[1].turn.seq), reverse=True)
    own.sort(key=lambda named: _has_few_words(named[1].turn.text))
    counts_calls = asks_how_often(admission.request.query.casefold())
    return QuoteOffers(
        [
            Offer(
                _quote_candidate(admission, name, hit, counts_calls=counts_calls),
                most=min(most, _RESULT_TOKENS) if hit.turn.kind == "tool_result" else most,
            )
            for name, hit in found
        ],
        [Offer(_quote_candidate(admission, name, hit), may_cut=False) for name, hit in own],
    )


def _has_few_words(text: str) -> bool:
    return len(text) <= _SHORT_CHARS and len(set(analyze(text))) < _WORDS_MIN


def worth_of(hit: HitCandidate, policy: ComposePolicy, result_tokens_max: float = math.inf) -> float:
    """The value of a quote per room taken: its probability of being evidence, reduced for long ones.

    Room is taken from others: two short turns say more than a long one of the same probability. A tool's result is
    shown by its matching lines: it never takes more than `result_tokens_max`.
    """
    tokens = len(hit.turn.text) / _CHARS_A_TOKEN
    if hit.turn.kind == "tool_result":
        tokens = min(tokens, result_tokens_max)
    if tokens <= policy.short_tokens:
        return hit.score
    return hit.score * math.pow(policy.short_tokens / tokens, policy.length_discount)


_CHARS_A_TOKEN = 4
"""A rough estimate: the tokens of a hundred turns are not counted only to sort them."""


def _carried(hit: HitCandidate) -> float:
    """The number of the caller's cues that a hit matches."""
    return hit.parts.get(CUE_PART, 0.0)


def cued_turns(admission: Admission) -> frozenset[str]:
    """The turns that match a cue."""
    return frozenset([hit.turn.id for hit in admission.pool.hits if _carried(hit)])


def _newest_of_each(
    admission: Admission, named: list[tuple[str, HitCandidate]], notes: Explanation
) -> list[tuple[str, HitCandidate]]:
    """Replace turns by their newest repetition: it shows that the statement still holds.

    The user's own words are not replaced by somebody else's repetition.
    """
    seen = Seen(admission.policy.near_duplicate)
    kept: dict[str, tuple[str, HitCandidate]] = {}
    for name, hit in named:
        turn = hit.turn
        if turn.kind == "tool_result":
            kept[name] = (name, hit)
            continue
        place = seen.find(turn.text, turn.words)
        if place is None:
            seen.add(turn.text, name, turn.words)
            kept[name] = (name, hit)
            continue
        other_name, other = kept[place]
        is_echo = other.turn.role == "user" and turn.role != "user"
        if is_echo or instant_order(turn.ts) <= instant_order(other.turn.ts):
            notes.omit(name, "near_duplicate", of=other_name)
        else:
            notes.omit(other_name, "near_duplicate", of=name)
            kept[place] = (name, hit)
    return list(kept.values())


def _quote_candidate(admission: Admission, name: str, hit: HitCandidate, *, counts_calls: bool = False) -> Candidate:
    turn, day = hit.turn, _day(hit.turn.ts)
    newer = admission.superseded.get(turn.id)
    order = (_reversed(day), newer is not None, instant_order(turn.ts), turn.session_id, turn.seq, turn.id)
    is_repeatable = counts_calls and turn.kind == "tool_result"  # if calls are counted, each is shown
    return _turn_candidate(
        admission,
        name,
        "quotes",
        turn,
        order,
        hit.score,
        hit.reasons,
        heading=day_heading(day),
        after=newer,
        voice="" if is_repeatable else "said",
    )


def _turn_candidate(
    admission: Admission,
    name: str,
    block: BlockName,
    turn: Turn,
    order: tuple[Any, ...],
    score: float,
    rules: tuple[str, ...],
    *,
    heading: str = "",
    after: str | None = None,
    voice: str = "said",
    shown: ShownTurn | None = None,
) -> Candidate:
    def write(shown: ShownTurn) -> str:
        return _turn_line(admission, shown)

    def shorten(fits: Fits, _: IsShown) -> tuple[ShownTurn, Step] | None:
        shorter = cut_turn(turn, fits, admission.terms)
        return None if shorter is None else (shorter, "raw→quote")

    return Candidate(
        name,
        block,
        shown or whole_turn(turn, admission.terms),
        order,
        write,
        score,
        rules,
        turn.id,
        heading,
        shorten,
        after,
        # Among the last turns a repeated short answer stays where it was given.
        voice if block != "window" or turn.kind == "tool_result" else "",
        _words_of,
    )


def _turn_line(admission: Admission, shown: ShownTurn) -> str:
    turn, text, excerpt = shown
    note = superseded_note(TYPICAL_MARK) if turn.id in admission.superseded else ""
    who = admission.who(turn.id) or turn.role
    if excerpt is not None:
        return excerpt_line(TYPICAL_MARK, who, turn.id, excerpt, note)
    text = text if turn.cited is None else with_marks(text, turn.cited, typical_mark)
    is_result, said_at = turn.kind == "tool_result", emitted_ts(turn.ts) if turn.role == "user" else None
    return quote_line(TYPICAL_MARK, who, text, note, is_result=is_result, said_at=said_at)


def _words_of(shown: ShownTurn) -> tuple[str, Words | None]:
    """The text and its words; for a result, always including the call and the full text."""
    turn = shown.turn
    is_known = shown.text is turn.text or turn.kind == "tool_result"
    return told_text(turn, shown.text), turn.words if is_known else read_words(shown.text)


_NO_SIGN = re.compile(r"[\W_]+")


def _folded(text: str) -> str:
    """A text without case, spaces and punctuation, to detect the question itself."""
    return _NO_SIGN.sub("", text.casefold()) if len(text) < 10_000 else text


@lru_cache(maxsize=1024)
def _day(ts: str) -> str:
    return day_of(emitted_ts(ts))


@lru_cache(maxsize=1024)
def _reversed(day: str) -> tuple[int, ...]:
    """A sort key for days, newest first, undated last."""
    return tuple(-ord(char) for char in day) if day != "undated" else (1,)

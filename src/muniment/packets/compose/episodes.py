"""Which episodes stand in a packet, and how much of each: windows, cues, decay and compression by age (MP-11)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from muniment.contracts.packet import Episode, TimeSpan
from muniment.core.instants import Instant, parse_rfc3339
from muniment.memory.turns import EpisodeCandidate, SummaryLine
from muniment.packets.compose.budget import typical_mark
from muniment.packets.compose.draft import PacketDraft, Placed, instant_order
from muniment.packets.compose.explain import Reason, Rung, names_of
from muniment.packets.compose.results import told_of
from muniment.packets.page.lines import BlockName, episode_text

__all__ = ["episode_prices", "place_episodes"]

_DAY_SECONDS = 86_400
_CHARS_A_TOKEN, _MARK_TOKENS = 4, 6
"""What a sentence costs, for an estimate: its text, and who said it with the mark."""


@dataclass(frozen=True, slots=True)
class _Known:
    """A candidate with what follows from the time and the cues."""

    name: str
    candidate: EpisodeCandidate
    start: Instant
    age_days: float
    recency: float
    cues: tuple[str, ...]
    """What lifts the window for it: a match with the query, or what the caller points at."""

    @property
    def is_chosen(self) -> bool:
        """Does it carry a tag or an entity that the caller named?"""
        return "tag" in self.cues or "entity" in self.cues

    @property
    def worth(self) -> tuple[bool, float, bool, float, str, str]:
        is_pointed_at = any(cue != _MATCH for cue in self.cues)
        match = -max(self.candidate.score, 0.0)
        return (not is_pointed_at, match, not self.cues, -self.recency, self.candidate.episode_id, self.name)


_MATCH = "query_match"


def place_episodes(draft: PacketDraft) -> None:
    """Cued ones while the section lasts; of the others at most `episodes_max`, within the window."""
    names = names_of("episode", (each.episode_id for each in draft.pool.episodes))
    taken: set[str] = set()
    fit: list[_Known] = []
    for name, each in zip(names, draft.pool.episodes, strict=True):
        known = _known(draft, name, each)
        reason = "out_of_window" if known is None else _unfit(draft, known)
        if reason is None and each.episode_id in taken:
            reason = "duplicate"
        if reason is not None or known is None:
            draft.tally.omit(name, reason or "out_of_window")
        else:
            taken.add(each.episode_id)
            fit.append(known)
    if draft.cues.chooses and any(known.is_chosen for known in fit):
        for known in fit:
            if not known.is_chosen:
                draft.tally.omit(known.name, "not_cued")
        fit = [known for known in fit if known.is_chosen]
    uncued = 0
    for known in sorted(fit, key=lambda each: each.worth):
        if not known.cues and uncued >= draft.policy.episodes_max:
            draft.tally.omit(known.name, "count_limit", limit=draft.policy.episodes_max)
        elif _place(draft, known) and not known.cues:
            uncued += 1


def episode_prices(draft: PacketDraft) -> Iterator[tuple[BlockName, int]]:
    """What could stand under episodes, and about what each sentence costs: which of them will be fresh is not known."""
    for each in draft.pool.episodes:
        known = _known(draft, "", each)
        if known is not None and _unfit(draft, known) is None:
            lines_max = _compression(draft, known.age_days)[1]
            yield from (
                ("episodes", len(line.text) // _CHARS_A_TOKEN + _MARK_TOKENS) for line in each.lines[:lines_max]
            )


def _known(draft: PacketDraft, name: str, each: EpisodeCandidate) -> _Known | None:
    start, end = parse_rfc3339(each.start), parse_rfc3339(each.end)
    if start is None:
        return None
    age_days = (draft.now.seconds - max(start, end or start).seconds) / _DAY_SECONDS
    recency = round(0.5 ** (max(age_days, 0.0) / draft.policy.recency_half_life_days), 6)
    return _Known(name, each, start, age_days, recency, tuple(_cues(draft, each)))


def _cues(draft: PacketDraft, each: EpisodeCandidate) -> Iterator[str]:
    """What lifts the window: a match with the query, a tag, an entity, a keyword, the time that is asked for."""
    cues = draft.cues
    if each.score > 0:
        yield _MATCH
    if not cues.is_given:
        return
    labels = {word.casefold() for word in (*each.tags, *each.entities)}
    words = (("tag", cues.tags), ("entity", cues.entities), ("keyword", cues.keywords))
    found = {noun for noun, given in words if not labels.isdisjoint(word.casefold() for word in given)}
    if any(cues.names(line.text) for line in each.lines):
        found.add("entity")
    if any(cues.says_keyword(line.text) for line in each.lines):
        found.add("keyword")
    if cues.chooses and "tag" not in found and not draft.carrying.isdisjoint(each.sources):
        found.add("tag" if cues.tags else "entity")  # as a label of a turn, of which an episode names but a few
    yield from (noun for noun, _ in words if noun in found)
    if cues.has_range and cues.holds(each.start, each.end):
        yield "time_range"


def _unfit(draft: PacketDraft, known: _Known) -> Reason | None:
    if (reason := draft.bars(known.candidate.trust)) is not None:
        return reason
    if (reason := draft.cues.bars(known.candidate.start, known.candidate.end)) is not None:
        return reason  # no cue opens this wall (TM-05)
    if known.cues:
        return None
    if draft.purpose == "tool":
        return "purpose"  # §9: weak for a tool, so only what it asked for
    window = min(draft.policy.episode_window_days, draft.policy.milestone_days)
    return None if 0 <= known.age_days <= window else "out_of_window"


# -- the ladder: all its lines, fewer, one, only that it was ------------------------------------------


def _place(draft: PacketDraft, known: _Known) -> bool:
    level, lines_max = _compression(draft, known.age_days)
    best, reason = _fresh_lines(draft, known.candidate, lines_max)
    if reason is not None:
        draft.tally.omit(known.name, reason)
        return False
    room = draft.purse.room("episodes")
    for count in range(_most(draft, best, room), -1, -1):
        episode = _episode(draft, known, level, best[:count])
        price = draft.purse.price(_text(draft, episode))
        if price <= room and (count or episode.tags):  # a day with neither sentence nor tag tells nothing
            break
    else:
        draft.tally.omit(known.name, "over_budget", tokens=price)
        return False
    rules = (*known.cues, level, f"recency={known.recency:g}")
    order = (-known.start.seconds, known.candidate.episode_id)
    draft.place(Placed(known.name, "episodes", price, episode, order), known.candidate.score, rules)
    if count < len(best):
        rung: Rung = "raw→summary" if count else "raw→ref"
        draft.tally.step_down(known.name, "episodes", rung, f"{count} of {len(best)} sentences kept")
    for line in best[:count]:
        draft.said.add(line.text, known.name, line.words)
    return True


def _most(draft: PacketDraft, lines: list[SummaryLine], room: int) -> int:
    """How many sentences are worth trying: priced one by one they come to a little more than the room, at most."""
    spent = 0
    for count, line in enumerate(lines):
        spent += draft.purse.price(line.text)
        if spent > room + _MARK_TOKENS:
            return count
    return len(lines)


def _fresh_lines(draft: PacketDraft, each: EpisodeCandidate, lines_max: int) -> tuple[list[SummaryLine], Reason | None]:
    """The best sentences that may be shown and are not on the page yet; or why there is none."""
    fresh: list[SummaryLine] = []
    reason: Reason | None = None
    for line in each.lines:
        if len(fresh) == lines_max:
            break
        text = line.text.strip()
        if not text:
            reason = reason or "empty"
        elif (barred := draft.bars_sentence(line.evidence_id, line.text)) is not None:
            reason = reason or barred
        elif (
            text in draft.shown.get(line.evidence_id, "")
            or draft.said.find(text, line.words) is not None
            or (line.role == "tool" and told_of(draft, line.evidence_id, text) is not None)
        ):
            reason = "duplicate"
        else:
            fresh.append(line)
    return fresh, reason if not fresh else None


def _text(draft: PacketDraft, episode: Episode) -> str:
    results = {source for source in episode.sources if draft.is_result(source)}
    return episode_text(episode, draft.who, typical_mark, results, draft.answers)


def _compression(draft: PacketDraft, age_days: float) -> tuple[str, int]:
    policy = draft.policy
    if age_days < policy.raw_days:
        return "raw", policy.raw_lines
    if age_days < policy.phase_days:
        return "phase_summary", policy.phase_lines
    return "milestone", policy.milestone_lines


_FIELDS = set(Episode.model_fields)
_SPAN, _START = {"start", "end"}, {"start"}


def _episode(draft: PacketDraft, known: _Known, level: str, lines: list[SummaryLine]) -> Episode:
    """The best sentence is the summary, the rest are highlights in the order they were said, sources beside them."""
    each = known.candidate
    rest = sorted(lines[1:], key=lambda line: (instant_order(line.ts), line.evidence_id, line.text))
    ordered = [*lines[:1], *rest]
    sources = [line.evidence_id for line in ordered] or [
        source for source in each.sources if draft.bars_evidence(source) is None
    ][:1]
    has_end = parse_rfc3339(each.end) is not None
    span = TimeSpan.unchecked({"start": each.start, "end": each.end if has_end else None}, _SPAN if has_end else _START)
    told = {
        "highlights": tuple([line.text.strip() for line in ordered[1:]]),
        "tags": tuple([word for word in each.tags if not draft.wall.bars_value(word)]),
        "entities": tuple([word for word in each.entities if not draft.wall.bars_value(word)]),
    }
    fields = {
        "episode_id": each.episode_id,
        "time_range": span,
        "summary": ordered[0].text.strip() if ordered else "",
        **{key: words or None for key, words in told.items()},
        "sources": tuple(sources),
        "compression_level": level,
        "recency_score": known.recency,
    }
    return Episode.unchecked(fields, _FIELDS.difference([key for key, words in told.items() if not words]))

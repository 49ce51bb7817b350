"""The router (RP-01): from a question and a policy to perspectives. Deterministic; it asks no model and no network.

A model may propose a plan instead: `read_plan` takes it as plain data and checks it as ours are checked.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import count, cycle
from typing import Literal, NamedTuple

from muniment.contracts.research import Perspective, PromptContract
from muniment.core.policy import ResearchLimits, ResearchPolicy
from muniment.core.text.analyzer import analyze
from muniment.core.text.script import Written, written_in
from muniment.errors import InvalidInput
from muniment.research.questions.angle_words import platforms_of
from muniment.research.questions.angles import TITLE_CHARS_MAX, Angle, contrarian, independent, standard
from muniment.research.questions.phrases import clip, tidy, title_case
from muniment.research.questions.plan_checks import TRACKS, Track, check_plan, deal_tracks, read_plan
from muniment.research.questions.question import QuestionAnalysis
from muniment.research.questions.words import domains_of
from muniment.research.run_records import Gap, Mode

__all__ = ["Track", "check_plan", "deal_tracks", "plan", "plan_second_wave", "read_plan"]

_MAKERS = {"standard": standard, "independent": independent, "contrarian": contrarian}
_SAME_GAP = 0.6
"""Share of the shorter gap's terms that stand in the other too: at this much, and three of them, they are one gap."""
_SAME_TERMS_MIN = 3
_FOLLOWED: tuple[Literal["P0", "P1", "P2"], ...] = ("P0", "P1", "P2")
_GAP_CHARS_MAX = {"en": 140, "zh": 60}


def plan(
    question: str,
    analysis: QuestionAnalysis,
    policy: ResearchPolicy,
    limits: ResearchLimits,
    agent_types: Sequence[str],
    mode: Mode,
) -> tuple[Perspective, ...]:
    """The perspectives of the first wave: as many as the question has strands for, within the limits."""
    tracks = deal_tracks(_how_many(analysis, policy, limits, mode), policy.tracks)
    angles = {track: cycle(_MAKERS[track](analysis, tracks.count(track))) for track in TRACKS}
    taken = {tidy(question).rstrip("?？").casefold()}
    domain = analysis.domains[0] if analysis.domains else None
    return tuple(
        _perspective(number, track, _unlike(next(angles[track]), taken), agent, policy, platforms_of(domain))
        for number, track, agent in zip(count(1), tracks, _deal_agents(tracks, agent_types), strict=False)
    )


def _how_many(analysis: QuestionAnalysis, policy: ResearchPolicy, limits: ResearchLimits, mode: Mode) -> int:
    most = limits.max_wave1_agents
    if mode == "deep":
        return most
    asked = min(policy.perspectives_min + analysis.complexity, most)
    return min(asked, max(1, most // 2)) if mode == "quick" else asked


def _unlike(angle: Angle, taken: set[str]) -> Angle:
    """A title that no other perspective has: a second reading of the same matter is numbered."""
    title = angle.title
    for number in count(2):
        if title.rstrip("?？").casefold() not in taken:
            break
        title = f"{angle.title[: TITLE_CHARS_MAX - 8]} ({number})"
    taken.add(title.rstrip("?？").casefold())
    return angle._replace(title=title)


def _perspective(
    number: int,
    track: Track,
    angle: Angle,
    agent_type: str,
    policy: ResearchPolicy,
    platforms: tuple[tuple[str, ...], ...],
    wave: int = 1,
) -> Perspective:
    contract = policy.contract
    budget = {"search_calls": contract.search_calls, "fetch_calls": contract.fetch_calls}
    return Perspective.from_wire(
        {
            "id": f"p{number}",
            "title": angle.title,
            "track": track,
            "agent_type": agent_type,
            "prompt_contract": PromptContract(
                max_words=contract.max_words,
                max_sources=contract.max_sources,
                tool_budget=dict(budget),
                must_include_sections=contract.must_include_sections,
            ).to_wire(),
            "expected_platforms": list(platforms[TRACKS.index(track)]),
            "focus": angle.focus,
            "wave": wave,
        }
    )


# -- agents -------------------------------------------------------------------------------------------


def _deal_agents(
    tracks: Sequence[Track], agent_types: Sequence[str], shunned: Sequence[Collection[str]] = ()
) -> list[str]:
    """An agent for each: tracks share none where there are enough, and those shunned are left out where they can be."""
    pools = _pools(tracks, tuple(dict.fromkeys(agent_types)))
    dealt: list[str] = []
    turns = dict.fromkeys(TRACKS, 0)
    for place, track in enumerate(tracks):
        pool, turn = pools[track], turns[track]
        order = [pool[(turn + step) % len(pool)] for step in range(len(pool))]
        avoid = shunned[place] if shunned else ()
        dealt.append(next((agent for agent in order if agent not in avoid), order[0]))
        turns[track] += 1
    return dealt


def _pools(tracks: Sequence[Track], agents: tuple[str, ...]) -> dict[Track, tuple[str, ...]]:
    """The agents of each track. One alone takes all; of two the second takes what is not standard."""
    if not agents:
        raise InvalidInput("no agent types are registered", path="$.agent_types", hint="name at least one agent type")
    present = [track for track in TRACKS if track in tracks]
    if len(agents) < len(present):
        return {track: agents[:1] if track == "standard" else agents[-1:] for track in TRACKS}
    spare = len(agents) - len(present)
    sizes = [1 + spare // len(present) + (place < spare % len(present)) for place in range(len(present))]
    starts = [sum(sizes[:place]) for place in range(len(present))]
    return {track: agents[start : start + size] for track, start, size in zip(present, starts, sizes, strict=True)}


# -- the second wave ----------------------------------------------------------------------------------


class _Need(NamedTuple):
    """Gaps that say the same."""

    gap: Gap
    """The most important of them."""
    reporters: tuple[str, ...]
    terms: frozenset[str]


def plan_second_wave(
    gaps: Sequence[Gap],
    first: Sequence[Perspective],
    policy: ResearchPolicy,
    limits: ResearchLimits,
    agent_types: Sequence[str],
) -> tuple[Perspective, ...]:
    """A perspective for each gap of weight, the most important first; gaps that say the same are one."""
    needs = _needs(gaps)[: limits.max_wave2_agents]
    tracks = deal_tracks(len(needs), policy.tracks)
    agent_of = {perspective.id: perspective.agent_type for perspective in first}
    shunned = [{agent_of[each] for each in need.reporters if each in agent_of} for need in needs]
    taken = {perspective.title.rstrip("?？").casefold() for perspective in first}
    start = 1 + max((int(found[1]) for each in first if (found := re.fullmatch(r"p(\d{1,6})", each.id))), default=0)
    agents = _deal_agents(tracks, agent_types, shunned) if needs else []
    made = []
    for number, track, agent, need in zip(count(start), tracks, agents, needs, strict=False):
        angle = _unlike(_gap_angle(need, track, written_in(need.gap.text)), taken)
        domain = next(iter(domains_of(need.gap.text)), None)
        made.append(_perspective(number, track, angle, agent, policy, platforms_of(domain), wave=2))
    return tuple(made)


def _needs(gaps: Sequence[Gap]) -> list[_Need]:
    kept: list[_Need] = []
    for priority in _FOLLOWED:
        for gap in gaps:
            if gap.priority == priority and tidy(gap.text):
                _add(kept, gap)
    return kept


def _add(kept: list[_Need], gap: Gap) -> None:
    terms = frozenset(term for term in analyze(gap.text) if len(term) > 1)
    for place, need in enumerate(kept):
        shared, least = len(terms & need.terms), min(len(terms), len(need.terms))
        if (shared >= _SAME_TERMS_MIN and shared >= _SAME_GAP * least) or tidy(gap.text) == tidy(need.gap.text):
            reporters = tuple(dict.fromkeys((*need.reporters, gap.perspective_id)))
            kept[place] = need._replace(reporters=reporters)
            return
    kept.append(_Need(gap, (gap.perspective_id,), terms))


_GAP_TITLES: dict[Written, dict[Track, str]] = {
    "en": {"standard": "{}", "independent": "Checked at the source: {}", "contrarian": "What speaks against it: {}"},
    "zh": {"standard": "{}", "independent": "一手来源核查：{}", "contrarian": "反面证据：{}"},
}
_GAP_FOCUS: dict[Written, str] = {
    "en": "Close this gap ({}, reported by {}): {}. Where it cannot be closed, say what was searched and "
    "what would close it.",
    "zh": "补上这一缺口（{}，由{}报告）：{}。若无法补上，说明查过什么、还需要什么。",
}


def _gap_angle(need: _Need, track: Track, language: Written) -> Angle:
    text = tidy(need.gap.text)
    title = title_case(clip(text, _GAP_CHARS_MAX[language], language))
    reporters = ("、" if language == "zh" else ", ").join(need.reporters)
    whole = clip(text, 600, language)
    return Angle(
        _GAP_TITLES[language][track].format(title), _GAP_FOCUS[language].format(need.gap.priority, reporters, whole)
    )

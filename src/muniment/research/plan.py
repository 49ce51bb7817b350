"""The perspectives of a research run (RP-01): planned from templates per track, or proposed and validated by the same
rules.

The question is not interpreted. Each track has its own angles, and each perspective is given the whole question; to
divide it by meaning, pass a function to `route(propose=)`. The second wave has a perspective for each gap left by the
first.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from fractions import Fraction
from itertools import count
from typing import Any, Literal, NamedTuple, cast

from muniment.contracts.research import Perspective, PromptContract
from muniment.core.canonical import child_path
from muniment.core.policy import ResearchLimits, ResearchPolicy, TrackShares
from muniment.core.text.analyzer import analyze
from muniment.core.text.sentences import sentence_spans
from muniment.errors import InvalidInput, InvalidRecord, Issue
from muniment.research.records import Gap, Mode

Track = Literal["standard", "independent", "contrarian"]
TRACKS: tuple[Track, ...] = ("standard", "independent", "contrarian")
TITLE_CHARS_MAX = 200


class _Angle(NamedTuple):
    title: str
    focus: str


_ANGLES: dict[Track, tuple[_Angle, ...]] = {
    "standard": (
        _Angle("Direct answer", "Answer the question part by part, and leave no part of it out."),
        _Angle("Figures and trends", "Find the numbers that the answer rests on: amounts, rates, dates, changes."),
        _Angle("Causes and mechanisms", "Find out how and why: what drives what the question asks about."),
        _Angle(
            "Comparisons and alternatives", "Compare the things that the question names, and what could replace them."
        ),
        _Angle("Cases in practice", "Find where it was tried, built or decided, and what came of it."),
        _Angle("History and outlook", "Find out how it came to be as it is, and what informed people expect next."),
    ),
    "independent": (
        _Angle("Primary data", "Go to datasets, filings and measurements yourself, and report what they show."),
        _Angle(
            "Original documents", "Read laws, standards, papers and statements in the original, not summaries of them."
        ),
        _Angle("Other regions and languages", "Look for sources from places and languages that summaries leave out."),
    ),
    "contrarian": (
        _Angle(
            "Evidence against the expected answer", "Look for data and studies that disagree with what is widely said."
        ),
        _Angle("Failures and costs", "Look for where it failed, what it cost, and who was worse off."),
        _Angle(
            "Weak and interested sources", "Find out which widely repeated claims rest on weak or interested sources."
        ),
    ),
}
_PLATFORMS: dict[Track, tuple[str, ...]] = {
    "standard": ("papers", "news", "docs"),
    "independent": ("papers", "statistics", "official_documents"),
    "contrarian": ("papers", "news", "forum"),
}
_GAP_TITLES: dict[Track, str] = {
    "standard": "{}",
    "independent": "Checked at the source: {}",
    "contrarian": "What speaks against it: {}",
}
_GAP_TITLE_CHARS_MAX = 140
_GAP_CHARS_MAX = 600
_SAME_GAP = 0.6
"""Minimum share of the shorter gap's terms in common, besides three terms, for two gaps to count as one."""
_SAME_TERMS_MIN = 3
_WORDS_MAX = 1_000_000
_SOURCES_MAX = 2_000
_CALLS_MAX = 1_000
_ID = re.compile(r"p[1-9]\d{0,5}")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\uffff]+")
_EDGES = " \t,.;:!¿¡-–—/，。；：！、·~"


# -- the first wave -----------------------------------------------------------------------------------


def plan(
    question: str, policy: ResearchPolicy, limits: ResearchLimits, agent_types: Sequence[str], mode: Mode
) -> tuple[Perspective, ...]:
    """Make the perspectives of the first wave, within the limits."""
    tracks = deal_tracks(_how_many(question, policy, limits, mode), policy.tracks)
    given = dict.fromkeys(TRACKS, 0)
    angles: list[_Angle] = []
    for track in tracks:
        round_, at = divmod(given[track], len(_ANGLES[track]))
        given[track] += 1
        angle = _ANGLES[track][at]
        label = angle.title if round_ == 0 else f"{angle.title} ({round_ + 1})"
        subject = clip(tidy(question) or "the question", TITLE_CHARS_MAX - len(label) - 2)
        angles.append(_Angle(f"{label}: {subject}", angle.focus))
    agents = _deal_agents(tracks, agent_types)
    return tuple(
        _perspective(number, track, angle, agent, policy)
        for number, track, angle, agent in zip(count(1), tracks, angles, agents, strict=False)
    )


def _how_many(question: str, policy: ResearchPolicy, limits: ResearchLimits, mode: Mode) -> int:
    """The limit in deep mode; otherwise, one more for each further sentence of the question."""
    most = limits.max_wave1_agents
    if mode == "deep":
        return most
    asked = min(policy.perspectives_min + len(sentence_spans(question)) - 1, most)
    return min(asked, max(1, most // 2)) if mode == "quick" else asked


def _perspective(
    number: int, track: Track, angle: _Angle, agent_type: str, policy: ResearchPolicy, wave: int = 1
) -> Perspective:
    contract = policy.contract
    return Perspective.from_wire(
        {
            "id": f"p{number}",
            "title": angle.title,
            "track": track,
            "agent_type": agent_type,
            "prompt_contract": {
                "max_words": contract.max_words,
                "max_sources": contract.max_sources,
                "tool_budget": {"search_calls": contract.search_calls, "fetch_calls": contract.fetch_calls},
                "must_include_sections": list(contract.must_include_sections),
            },
            "expected_platforms": list(_PLATFORMS[track]),
            "focus": angle.focus,
            "wave": wave,
        }
    )


def deal_tracks(n: int, shares: TrackShares) -> tuple[Track, ...]:
    """Distribute tracks over `n` perspectives by largest remainder, in order; a tie goes to the track named first."""
    weights = [Fraction(getattr(shares, track)) for track in TRACKS]
    exact = [n * weight / sum(weights) for weight in weights]
    counts = [int(quota) for quota in exact]
    by_remainder = sorted(range(len(TRACKS)), key=lambda place: counts[place] - exact[place])
    for place in by_remainder[: n - sum(counts)]:
        counts[place] += 1
    return tuple(track for track, times in zip(TRACKS, counts, strict=True) for _ in range(times))


def _deal_agents(
    tracks: Sequence[Track], agent_types: Sequence[str], shunned: Sequence[Collection[str]] = ()
) -> list[str]:
    """Assign agents: tracks share none if there are enough of them; shunned ones are avoided if possible."""
    pools = _agent_pools(tracks, tuple(dict.fromkeys(agent_types)))
    dealt: list[str] = []
    turns = dict.fromkeys(TRACKS, 0)
    for place, track in enumerate(tracks):
        pool, turn = pools[track], turns[track]
        order = [pool[(turn + step) % len(pool)] for step in range(len(pool))]
        avoid = shunned[place] if shunned else ()
        dealt.append(next((agent for agent in order if agent not in avoid), order[0]))
        turns[track] += 1
    return dealt


def _agent_pools(tracks: Sequence[Track], agents: tuple[str, ...]) -> dict[Track, tuple[str, ...]]:
    """Split the agents by track. A single one serves all; of two, the second serves the tracks other than standard."""
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
    """Gaps with the same meaning; `gap` is the most important of them."""

    gap: Gap
    reporters: tuple[str, ...]
    terms: frozenset[str]


def plan_second_wave(
    gaps: Sequence[Gap],
    first: Sequence[Perspective],
    policy: ResearchPolicy,
    limits: ResearchLimits,
    agent_types: Sequence[str],
) -> tuple[Perspective, ...]:
    """Make a perspective for each gap above P3, the most important first; equivalent gaps share one."""
    needs = _needs(gaps)[: limits.max_wave2_agents]
    tracks = deal_tracks(len(needs), policy.tracks)
    agent_of = {perspective.id: perspective.agent_type for perspective in first}
    shunned = [{agent_of[each] for each in need.reporters if each in agent_of} for need in needs]
    agents = _deal_agents(tracks, agent_types, shunned) if needs else []
    start = 1 + max((int(found[1]) for each in first if (found := re.fullmatch(r"p(\d{1,6})", each.id))), default=0)
    taken = {_title_key(perspective.title) for perspective in first}
    made = []
    for number, track, agent, need in zip(count(start), tracks, agents, needs, strict=False):
        text = tidy(need.gap.text)
        title = _free_title(_GAP_TITLES[track].format(clip(text, _GAP_TITLE_CHARS_MAX)), taken)
        focus = (
            f"Close this gap ({need.gap.priority}, reported by {', '.join(need.reporters)}): "
            f"{clip(text, _GAP_CHARS_MAX)}. Where it cannot be closed, say what was searched and what would close it."
        )
        made.append(_perspective(number, track, _Angle(title, focus), agent, policy, wave=2))
    return tuple(made)


def _needs(gaps: Sequence[Gap]) -> list[_Need]:
    kept: list[_Need] = []
    for priority in ("P0", "P1", "P2"):
        for gap in gaps:
            if gap.priority == priority and tidy(gap.text):
                _add_need(kept, gap)
    return kept


def _add_need(kept: list[_Need], gap: Gap) -> None:
    terms = frozenset(term for term in analyze(gap.text) if len(term) > 1)
    for place, need in enumerate(kept):
        shared, least = len(terms & need.terms), min(len(terms), len(need.terms))
        if (shared >= _SAME_TERMS_MIN and shared >= _SAME_GAP * least) or tidy(gap.text) == tidy(need.gap.text):
            kept[place] = need._replace(reporters=tuple(dict.fromkeys((*need.reporters, gap.perspective_id))))
            return
    kept.append(_Need(gap, (gap.perspective_id,), terms))


def _free_title(title: str, taken: set[str]) -> str:
    """A title that no other perspective has: repeated ones are numbered."""
    free = title
    for number in count(2):
        if _title_key(free) not in taken:
            break
        free = f"{title[: TITLE_CHARS_MAX - 8]} ({number})"
    taken.add(_title_key(free))
    return free


def _title_key(title: str) -> str:
    return " ".join(title.split()).casefold()


def tidy(text: str) -> str:
    """Text on one line, without control characters and without punctuation at its edges."""
    return " ".join(_CONTROL.sub(" ", text).split()).strip(_EDGES)


def clip(text: str, chars_max: int) -> str:
    """Text of at most `chars_max` characters, cut between words where it has spaces."""
    if len(text) <= chars_max:
        return text
    head = text[: chars_max - 1]
    words = head.rpartition(" ")[0]
    return (words if len(words) > chars_max // 2 else head).rstrip(_EDGES) + "…"


# -- checks -------------------------------------------------------------------------------------------


def check_plan(
    perspectives: Sequence[Perspective],
    policy: ResearchPolicy,
    limits: ResearchLimits,
    agent_types: Sequence[str],
    wave: Literal[1, 2] = 1,
    *,
    taken: Collection[str] = (),
    root: str = "$.perspectives",
) -> list[Issue]:
    """List everything wrong with a plan, each with its JSON path; `taken` are the ids of an earlier wave."""
    issues = list(_check_count(len(perspectives), limits, wave, root))
    issues.extend(_check_unique(perspectives, taken, root))
    for place, perspective in enumerate(perspectives):
        path = child_path(root, place)
        issues.extend(_check_title(perspective.title, f"{path}.title"))
        if wave == 1 and (perspective.model_extra or {}).get("wave", 1) != 1:
            issues.append(Issue(f"{path}.wave", "these are the perspectives of wave 1: leave it out", "wave"))
        issues.extend(_check_agent(perspective.agent_type, agent_types, f"{path}.agent_type"))
        issues.extend(_check_contract(perspective.prompt_contract, policy, f"{path}.prompt_contract"))
        for at, platform in enumerate(perspective.expected_platforms or ()):
            if not platform.strip():
                issues.append(Issue(child_path(f"{path}.expected_platforms", at), "an empty platform name", "platform"))
    issues.extend(_check_tracks([each.track for each in perspectives], policy.tracks, root))
    return issues


def _check_count(found: int, limits: ResearchLimits, wave: int, root: str) -> Iterator[Issue]:
    name = f"max_wave{wave}_agents"
    most = limits.max_wave1_agents if wave == 1 else limits.max_wave2_agents
    if not found:
        yield Issue(root, "wanted at least one perspective", "count")
    if found > most:
        yield Issue(root, f"{found} perspectives, and {name} allows {most}", "count")


def _check_unique(perspectives: Sequence[Perspective], taken: Collection[str], root: str) -> Iterator[Issue]:
    ids: dict[str, str] = dict.fromkeys(taken, "an earlier wave")
    titles: dict[str, str] = {}
    for place, each in enumerate(perspectives):
        path = child_path(root, place)
        if not _ID.fullmatch(each.id):
            yield Issue(f"{path}.id", f"wanted p and a number, such as p{place + 1}, found {each.id[:40]!r}", "id")
        elif each.id in ids:
            yield Issue(f"{path}.id", f"{each.id} is the id of {ids[each.id]} already", "duplicate_id")
        ids.setdefault(each.id, path)
        key = _title_key(each.title)
        if key and key in titles:
            yield Issue(f"{path}.title", f"the same title as {titles[key]}", "duplicate_title")
        titles.setdefault(key, path)


def _check_title(title: str, path: str) -> Iterator[Issue]:
    if not tidy(title):
        yield Issue(path, "an empty title", "title")
    elif len(title) > TITLE_CHARS_MAX:
        yield Issue(path, f"{len(title)} characters, and a title has at most {TITLE_CHARS_MAX}", "title")
    elif _CONTROL.search(title) is not None:
        yield Issue(path, "a title is one line without control characters", "title")


def _check_agent(agent: str, agent_types: Sequence[str], path: str) -> Iterator[Issue]:
    if agent not in agent_types:
        near = get_close_matches(agent[:80], agent_types, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"the registered ones are {', '.join(agent_types)}"
        yield Issue(path, f"no agent type {agent[:80]!r} is registered; {hint}", "agent_type")


def _check_contract(contract: PromptContract, policy: ResearchPolicy, path: str) -> Iterator[Issue]:
    for name, most in (("max_words", _WORDS_MAX), ("max_sources", _SOURCES_MAX)):
        yield from _check_whole(getattr(contract, name), 1, most, f"{path}.{name}")
    for tool, calls in contract.tool_budget.items():
        yield from _check_whole(calls, 0, _CALLS_MAX, child_path(f"{path}.tool_budget", tool))
    for section in policy.contract.must_include_sections:
        if section not in contract.must_include_sections:
            near = [each for each in contract.must_include_sections if each.strip().casefold() == section.casefold()]
            hint = f"; {near[0]!r} is not written the same" if near else ""
            yield Issue(f"{path}.must_include_sections", f"the section {section!r} is missing{hint}", "section")
    for at, section in enumerate(contract.must_include_sections):
        if not section.strip():
            yield Issue(child_path(f"{path}.must_include_sections", at), "an empty section name", "section")


def _check_whole(value: Any, least: int, most: int, path: str) -> Iterator[Issue]:
    whole = isinstance(value, int | float) and not isinstance(value, bool) and value == value // 1
    if not whole or not least <= value <= most:
        yield Issue(path, f"wanted a whole number from {least} to {most}, found {str(value)[:40]}", "number")


def _check_tracks(tracks: Sequence[Track], shares: TrackShares, root: str) -> Iterator[Issue]:
    wanted, found = Counter(deal_tracks(len(tracks), shares)), Counter(tracks)
    if wanted != found:
        shown = [", ".join(f"{counts[track]} {track}" for track in TRACKS) for counts in (wanted, found)]
        yield Issue(root, f"tracks should be {shown[0]}; they are {shown[1]}", "tracks")


# -- proposals ----------------------------------------------------------------------------------------


def read_plan(
    plain: Any,
    policy: ResearchPolicy,
    limits: ResearchLimits,
    agent_types: Sequence[str],
    wave: Literal[1, 2] = 1,
    *,
    taken: Collection[str] = (),
) -> tuple[Perspective, ...]:
    """Read a proposal: a list of perspectives, or an object that holds one. `InvalidRecord` names every issue."""
    root, items = _list_in(plain)
    perspectives: list[Perspective] = []
    issues: list[Issue] = []
    for place, item in enumerate(items):
        path = child_path(root, place)
        try:
            perspectives.append(Perspective.from_wire(item))
        except InvalidRecord as error:
            issues.extend(Issue(path + issue.path[1:], issue.message, issue.code) for issue in error.issues)
    issues = issues or check_plan(perspectives, policy, limits, agent_types, wave, taken=taken, root=root)
    if issues:
        hint = "each issue names its path; correct them all and propose again"
        raise InvalidRecord("not a valid plan", issues, hint=hint)
    return tuple(perspectives)


def _list_in(plain: Any) -> tuple[str, Sequence[Any]]:
    root, items = "$", plain
    if isinstance(plain, Mapping):
        if "perspectives" not in plain:
            raise InvalidRecord("not a plan", [Issue("$.perspectives", "a required key is missing", "missing")])
        if plain.get("schema_version", "perspectives.v1") != "perspectives.v1":
            raise InvalidRecord("not a plan", [Issue("$.schema_version", "wanted 'perspectives.v1'", "literal_error")])
        root, items = "$.perspectives", plain["perspectives"]
    if not isinstance(items, list | tuple):
        raise InvalidRecord("not a plan", [Issue(root, "wanted an array of perspectives", "type")])
    return root, cast("Sequence[Any]", items)

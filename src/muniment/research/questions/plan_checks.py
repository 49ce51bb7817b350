"""What a plan must be (RP-01), the same for ours and for a model's proposal. Every issue has its JSON path."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from fractions import Fraction
from typing import Any, Literal, cast

from muniment.contracts.research import Perspective, PromptContract
from muniment.core.canonical import child_path
from muniment.core.policy import ResearchLimits, ResearchPolicy, TrackShares
from muniment.errors import InvalidRecord, Issue
from muniment.research.questions.angles import TITLE_CHARS_MAX
from muniment.research.questions.phrases import on_one_line, tidy

__all__ = ["TRACKS", "Track", "check_plan", "deal_tracks", "read_plan"]

Track = Literal["standard", "independent", "contrarian"]
TRACKS: tuple[Track, ...] = ("standard", "independent", "contrarian")

WORDS_MAX = 1_000_000
SOURCES_MAX = 2_000
CALLS_MAX = 1_000
_ID = re.compile(r"p[1-9]\d{0,5}")


def deal_tracks(n: int, shares: TrackShares) -> tuple[Track, ...]:
    """The tracks of so many perspectives by largest remainder, in their order; a tie goes to the one named first."""
    weights = [Fraction(getattr(shares, track)) for track in TRACKS]
    exact = [n * weight / sum(weights) for weight in weights]
    counts = [int(quota) for quota in exact]
    by_remainder = sorted(range(len(TRACKS)), key=lambda place: counts[place] - exact[place])
    for place in by_remainder[: n - sum(counts)]:
        counts[place] += 1
    return tuple(track for track, times in zip(TRACKS, counts, strict=True) for _ in range(times))


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
    """Everything wrong with a plan; `taken` are the ids of an earlier wave. Empty when it may be used."""
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
        key = " ".join(each.title.split()).casefold()
        if key and key in titles:
            yield Issue(f"{path}.title", f"the same title as {titles[key]}", "duplicate_title")
        titles.setdefault(key, path)


def _check_title(title: str, path: str) -> Iterator[Issue]:
    if not tidy(title):
        yield Issue(path, "an empty title", "title")
    elif len(title) > TITLE_CHARS_MAX:
        yield Issue(path, f"{len(title)} characters, and a title has at most {TITLE_CHARS_MAX}", "title")
    elif not on_one_line(title):
        yield Issue(path, "a title stands on one line and holds no control characters", "title")


def _check_agent(agent: str, agent_types: Sequence[str], path: str) -> Iterator[Issue]:
    if agent not in agent_types:
        near = get_close_matches(agent[:80], agent_types, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"the registered ones are {', '.join(agent_types)}"
        yield Issue(path, f"no agent type {agent[:80]!r} is registered; {hint}", "agent_type")


def _check_contract(contract: PromptContract, policy: ResearchPolicy, path: str) -> Iterator[Issue]:
    for name, least, most in (("max_words", 1, WORDS_MAX), ("max_sources", 1, SOURCES_MAX)):
        yield from _check_whole(getattr(contract, name), least, most, f"{path}.{name}")
    for tool, calls in contract.tool_budget.items():
        yield from _check_whole(calls, 0, CALLS_MAX, child_path(f"{path}.tool_budget", tool))
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
        said = [", ".join(f"{counts[track]} {track}" for track in TRACKS) for counts in (wanted, found)]
        yield Issue(root, f"tracks should be {said[0]}; they are {said[1]}", "tracks")


def read_plan(
    plain: Any,
    policy: ResearchPolicy,
    limits: ResearchLimits,
    agent_types: Sequence[str],
    wave: Literal[1, 2] = 1,
    *,
    taken: Collection[str] = (),
) -> tuple[Perspective, ...]:
    """A proposal as plain data: a list of perspectives, or an object that holds one. `InvalidRecord` has all issues."""
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
        raise InvalidRecord(
            "not a valid plan", issues, hint="each issue names its path; mend them all and propose again"
        )
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

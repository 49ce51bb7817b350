"""Compare two builds, and preview a kept build under other settings. Nothing is written."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import Match, SequenceMatcher
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from muniment.contracts.packet import MemoryPacket
from muniment.core.instants import parse_rfc3339
from muniment.core.record import Absent, Count, Items, Numeric, Record
from muniment.core.requests import Expect, Request, checked, one_of, whole
from muniment.packets.builds import Build, BuildInputs, BuildRequest, compose_inputs, gather_inputs
from muniment.packets.explain import selected_name
from muniment.packets.layout import PageLine, page_lines
from muniment.packets.marks import KeptMarks, read_marks
from muniment.packets.pool import ComposeRequest, KnownMarks

if TYPE_CHECKING:
    from muniment.core.policy import ComposePolicy, Policy
    from muniment.packets.builds import Build
    from muniment.store.context import Context

__all__ = [
    "Basis",
    "BuildDiff",
    "Changed",
    "Fate",
    "Fates",
    "LinePair",
    "Piece",
    "PlacedLine",
    "Preview",
    "PreviewRequest",
    "SectionDiff",
    "Settings",
    "align",
    "diff_builds",
    "preview_build",
]

_KINDS_OF_WORDS = ("profile", "quote", "turn", "tool", "summary")
"""Candidate kinds that show the words of one event."""
_GATHERED = {"quote": "turns", "turn": "window", "tool": "tools", "episode": "sessions"} | {
    "procedure": "procedures", "insight": "insights", "loop": "questions",
}  # fmt: skip
"""Kind of a candidate → its counter in the pool."""


class Fate(NamedTuple):
    """A reason, and the item that replaces or repeats the missing one."""

    reason: str
    by: str | None = None


class Fates:
    """The fates in one build of items that another one shows."""

    def __init__(self, build: Build) -> None:
        self._build = build

    def of(self, item: str, since: str | None = None) -> Fate:
        """The reason `item` is not shown; `since` is its creation time, if known."""
        for name in self._names(item):
            found = self._omitted.get(name)
            # A responder never gets last turns, so that does not explain a missing quote.
            if found is not None and (name == item or found["reason"] != "purpose"):
                by = found.get("of") or found.get("by")
                return Fate(str(found["reason"]), by if isinstance(by, str) else None)
        if item in self._selected:
            return Fate("purpose")  # in the packet, but not on this purpose's page
        request = self._build.request
        if item.partition(":")[2] in (request.exclude or ()):
            return Fate("excluded")
        if since is not None and _is_later(since, request.now):
            return Fate("later")
        return Fate(self._not_gathered(item.partition(":")[0]))

    def chosen_by(self, item: str) -> str | None:
        """The rules by which it was chosen, from the explanation."""
        return next((self._selected[name] for name in self._names(item) if name in self._selected), None)

    def since(self, item: str) -> str | None:
        """The time of a candidate of this build."""
        kind, _, id_ = item.partition(":")
        return next((at for named, each, at in self._times if named == kind and each == id_), None)

    def _names(self, item: str) -> Iterator[str]:
        """Its possible names in the explanation: an event's words may be a candidate under several kinds."""
        yield item
        kind, _, id_ = item.partition(":")
        if kind in _KINDS_OF_WORDS:
            yield from (f"{other}:{id_}" for other in _KINDS_OF_WORDS if other != kind)
        if kind == "loop":
            yield from (f"loop:{at}" for at, loop in enumerate(self._build.pool.loops) if loop.question == id_)

    def _not_gathered(self, kind: str) -> str:
        """The reason things of its kind were not gathered, if it is one for all of them."""
        counted = _GATHERED.get(kind)
        found = next((each.reasons for each in self._build.pool.not_gathered if each.kind == counted), {})
        return next(iter(found)) if len(found) == 1 else "not_gathered"

    @cached_property
    def _omitted(self) -> dict[str, dict[str, Any]]:
        return {each.item: each.to_wire() for each in self._build.packet.explain.omitted}

    @cached_property
    def _selected(self) -> dict[str, str]:
        lines = self._build.packet.explain.selected
        return {selected_name(line): line.rpartition(" rules=")[2] for line in lines}

    @cached_property
    def _times(self) -> list[tuple[str, str, str]]:
        pool = self._build.pool
        return [
            *(("fact", each.fact.fact_id, each.recorded_at) for each in pool.facts),
            *(("procedure", each.procedure.procedure_id, each.recorded_at) for each in pool.procedures),
            *(("insight", each.insight.id, each.recorded_at) for each in pool.insights),
            *(("profile", each.turn.id, each.turn.ts) for each in pool.profile),
            *(("quote", each.turn.id, each.turn.ts) for each in pool.hits),
            *(("turn", each.id, each.ts) for each in pool.window),
            *(("summary", each.evidence_id, each.ts) for each in pool.summary),
            *(("tool", each.ref, each.ts) for each in pool.tools),
            *(("episode", each.episode_id, each.start) for each in pool.episodes),
        ]


def _is_later(ts: str, now: str) -> bool:
    said, asked = parse_rfc3339(ts), parse_rfc3339(now)
    return said is not None and asked is not None and said > asked


Change = Literal["same", "added", "removed", "moved", "reworded"]
_SAID = ("quote", "turn", "tool")
"""Kinds that show somebody's words, in different places of the page."""
_MARK = re.compile(r"\[([0-9]{1,9})\]")
_WORDS = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]|[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]+|\s+|[^\w\s]"
)
_WORDS_MAX = 200
"""Only the beginning and end of longer lines are compared."""


class Piece(Record):
    """A stretch of a line, marked if it differs on the other page."""

    text: str
    is_changed: bool


class PlacedLine(Record):
    """A line at its position on one page."""

    number: Count
    """The number of its first line, from 1."""
    block: str
    text: str
    pieces: Absent[Items[Piece]] = None
    """The text in pieces, if the wording differs on the other page."""


class LinePair(Record):
    """A line of either page, or of both, and its fate."""

    what: Change
    is_moved: bool
    """True if its position differs. A moved line may also be worded differently."""
    item: Absent[str] = None
    """Its subject; absent for a heading."""
    evidence: Items[str]
    a: Absent[PlacedLine] = None
    b: Absent[PlacedLine] = None
    reason: Absent[str] = None
    """For a line missing on one page, the reason: from its packet's explanation, or as far as known."""
    by: Absent[str] = None
    """The item that replaces or repeats it."""
    why: Absent[str] = None
    """For an added line, the rules by which it was chosen."""


class _Matched(NamedTuple):
    left: int
    right: int


def align(
    left: Sequence[PageLine], right: Sequence[PageLine], marks_left: Mapping[str, str], marks_right: Mapping[str, str]
) -> list[LinePair]:
    """The lines of both pages in the second page's order; lines only in the first keep their position."""
    places = {key: at for at, key in enumerate(_keys(right))}
    matched = [_Matched(at, places[key]) for at, key in enumerate(_keys(left)) if key in places]
    still = _longest_rising(matched)
    pairs = {pair.right: pair for pair in matched if pair in still or left[pair.left].item is not None}
    paired = {pair.left for pair in pairs.values()}
    rows: list[LinePair] = []
    at_left = at_right = 0
    for stop in (*sorted(still), _Matched(len(left), len(right))):
        rows += [_alone(left[at], "removed") for at in range(at_left, stop.left) if at not in paired]
        for at in range(at_right, min(stop.right + 1, len(right))):
            pair = pairs.get(at)
            if pair is None:
                rows.append(_alone(right[at], "added"))
            else:
                is_moved = pair not in still
                rows.append(_both(left[pair.left], right[at], marks_left, marks_right, is_moved=is_moved))
        at_left, at_right = stop.left + 1, stop.right + 1
    return rows


def _keys(lines: Sequence[PageLine]) -> Iterator[tuple[str, str, int]]:
    """A key that identifies each line on both pages; repeated keys are numbered."""
    seen: Counter[tuple[str, str]] = Counter()
    for line in lines:
        kind, _, id_ = (line.item or "").partition(":")
        key = ("said" if kind in _SAID else kind, id_) if line.item else ("", _plain(line))
        yield (*key, seen[key])
        seen[key] += 1


def _plain(line: PageLine) -> str:
    """A key for lines without a subject: a heading by its words, the date line by its kind."""
    return line.block if line.block == "today" else f"{line.block} {line.text}"


def _longest_rising(matched: Sequence[_Matched]) -> frozenset[_Matched]:
    """The largest set of pairs in the same order on both pages; all others were moved."""
    ends: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for at, pair in enumerate(matched):
        place = bisect_left(ends, pair.right)
        before.append(last[place - 1] if place else -1)
        ends[place : place + 1] = [pair.right]
        last[place : place + 1] = [at]
    kept, at = set(), last[-1] if last else -1
    while at >= 0:
        kept.add(matched[at])
        at = before[at]
    return frozenset(kept)


def _alone(line: PageLine, what: Literal["added", "removed"]) -> LinePair:
    side: dict[str, Any] = {"b" if what == "added" else "a": _placed(line)}
    return _pair(line, what, **side)


def _both(
    left: PageLine,
    right: PageLine,
    marks_left: Mapping[str, str],
    marks_right: Mapping[str, str],
    *,
    is_moved: bool,
) -> LinePair:
    is_moved = is_moved or left.block != right.block
    if _unnumbered(left.text, marks_left) == _unnumbered(right.text, marks_right):
        return _pair(right, "moved" if is_moved else "same", is_moved=is_moved, a=_placed(left), b=_placed(right))
    pieces_left, pieces_right = _compared(left.text, right.text)
    a, b = _placed(left, pieces_left), _placed(right, pieces_right)
    return _pair(right, "reworded", is_moved=is_moved, a=a, b=b)


def _pair(line: PageLine, what: Change, *, is_moved: bool = False, **sides: Any) -> LinePair:
    item: dict[str, Any] = {} if line.item is None else {"item": line.item}
    return LinePair(what=what, is_moved=is_moved, evidence=line.evidence, **item, **sides)


def _placed(line: PageLine, pieces: tuple[Piece, ...] | None = None) -> PlacedLine:
    given: dict[str, Any] = {} if pieces is None else {"pieces": pieces}
    return PlacedLine(number=line.number, block=line.block, text=line.text, **given)


def _unnumbered(text: str, marks: Mapping[str, str]) -> str:
    """The text with evidence ids instead of marks, since two sessions number the same evidence differently."""
    return _MARK.sub(lambda found: f"[{marks.get(found[1], found[1])}]", text)


def _compared(left: str, right: str) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    """Both texts in pieces, with differences marked."""
    words = _WORDS.findall(left), _WORDS.findall(right)
    if max(map(len, words)) > _WORDS_MAX:
        same = _ends(*words)
    else:
        blocks = SequenceMatcher(None, *words, autojunk=False).get_matching_blocks()
        same = [(block.a, block.b, block.size) for block in blocks if _says(words[0], block) or _is_end(words, block)]
    left_same = [(start, size) for start, _, size in same]
    right_same = [(start, size) for _, start, size in same]
    return _pieces(words[0], left_same), _pieces(words[1], right_same)


def _says(words: Sequence[str], block: Match) -> bool:
    """True if the block contains words; a shared blank or comma means nothing."""
    return any(word[0].isalnum() for word in words[block.a : block.a + block.size])


def _is_end(words: tuple[Sequence[str], Sequence[str]], block: Match) -> bool:
    begins = block.a == block.b == 0
    return begins or (block.a + block.size == len(words[0]) and block.b + block.size == len(words[1]))


def _ends(left: Sequence[str], right: Sequence[str]) -> list[tuple[int, int, int]]:
    """The common beginning and end."""
    most = min(len(left), len(right))
    first = next((at for at in range(most) if left[at] != right[at]), most)
    last = next((at for at in range(most - first) if left[-1 - at] != right[-1 - at]), most - first)
    return [(0, 0, first), (len(left) - last, len(right) - last, last)]


def _pieces(words: Sequence[str], same: Sequence[tuple[int, int]]) -> tuple[Piece, ...]:
    found: list[Piece] = []
    at = 0
    for start, size in (*same, (len(words), 0)):
        for is_changed, stretch in ((True, words[at:start]), (False, words[start : start + size])):
            if stretch:
                found.append(Piece(text="".join(stretch), is_changed=is_changed))
        at = start + size
    return tuple(found)


_NOT_ASKED = frozenset(("marks",))
"""Request fields that come from the session, not the caller."""
_RULE_GIVEN = "it was selected for the run"
_RULE_NOT_GIVEN = "it was not selected for the run"


class Changed(Record):
    """A packet item that was added, removed or changed."""

    what: str
    """added, removed or changed"""
    item: str
    why: str


class SectionDiff(Record):
    """A section's budget and usage in both builds."""

    section: str
    used_a: Count
    used_b: Count
    cap_a: Count
    cap_b: Count


class BuildDiff(Record):
    """The differences between two builds, with reasons."""

    a: str
    b: str
    is_same: bool
    request: Items[str]
    """Differences in the request."""
    changes: Items[Changed]
    tokens_a: int
    tokens_b: int
    tokens_max_a: int
    tokens_max_b: int
    sections: Items[SectionDiff]
    lines: Items[LinePair]
    """Both texts, lines paired by subject, in the order of the second."""


def diff_builds(a: Build, b: Build, why_no_rule: Callable[[str], str | None] = lambda _: None) -> BuildDiff:
    """The differences from `a` to `b`, each with the reason the explanations give.

    Rules precede the packet and are not part of it: `why_no_rule` returns the reason a rule is missing, by id, if
    known.
    """
    left, right = _items(a), _items(b)
    changes = [Changed(what="removed", item=name, why=_why_not(b, name)) for name in left.keys() - right.keys()]
    changes += [Changed(what="added", item=name, why=_why(b, name)) for name in right.keys() - left.keys()]
    changes += [
        Changed(what="changed", item=name, why="it stands there differently")
        for name in left.keys() & right.keys()
        if left[name] != right[name]
    ]
    given, given_later = _rules(a), _rules(b)
    changes += [
        Changed(what="removed", item=f"rule:{id_}", why=_why_no_rule(b, id_, why_no_rule))
        for id_ in given - given_later
    ]
    changes += [Changed(what="added", item=f"rule:{id_}", why=_RULE_GIVEN) for id_ in given_later - given]
    return BuildDiff(
        a=a.id,
        b=b.id,
        is_same=a.packet_bytes == b.packet_bytes,
        request=tuple(_request_differences(a, b)),
        changes=tuple(sorted(changes, key=lambda change: (change.what, change.item))),
        tokens_a=a.tokens,
        tokens_b=b.tokens,
        tokens_max_a=a.packet.budget_report.max_tokens,
        tokens_max_b=b.packet.budget_report.max_tokens,
        sections=tuple(_sections(a, b)),
        lines=tuple(_lines(a, b, why_no_rule)),
    )


def _sections(a: Build, b: Build) -> Iterator[SectionDiff]:
    caps = [each.packet.meta.budget.per_section.to_wire() for each in (a, b)]
    used = [each.packet.budget_report.section_usage for each in (a, b)]
    for section in caps[0]:
        yield SectionDiff(
            section=section,
            used_a=used[0].get(section, 0),
            used_b=used[1].get(section, 0),
            cap_a=caps[0][section],
            cap_b=caps[1][section],
        )


def _lines(a: Build, b: Build, why_no_rule: Callable[[str], str | None]) -> Iterator[LinePair]:
    """The lines of both, with a reason for each line missing on one side."""
    left, right = Fates(a), Fates(b)
    for pair in align(_page_lines(a), _page_lines(b), a.marks, b.marks):
        item = pair.item
        if item is None or pair.what not in ("added", "removed"):
            yield pair
            continue
        if item.startswith("rule:"):
            why = _RULE_GIVEN if pair.what == "added" else _why_no_rule(b, item[len("rule:") :], why_no_rule)
            yield pair.model_copy(update={"why": why})
            continue
        there, missing = (right, left) if pair.what == "added" else (left, right)
        reason, by = missing.of(item, there.since(item))
        chosen = right.chosen_by(item) if pair.what == "added" else None
        known = {"reason": reason, "by": by or _successor(b, item, reason), "why": chosen}
        yield pair.model_copy(update={name: value for name, value in known.items() if value is not None})


def _page_lines(build: Build) -> list[PageLine]:
    return page_lines(build.packet, build.text, build.marks, sorted(_rules(build), key=_given_order(build)))


def _given_order(build: Build) -> Callable[[str], int]:
    return (build.rules.rule_ids if build.rules is not None else ()).index


_REPLACED = ("deprecated", "superseded", "overridden")


def _successor(build: Build, item: str, reason: str) -> str | None:
    """The fact of the same key that a packet shows instead of one no longer in force."""
    kind, _, fact_id = item.partition(":")
    if kind != "fact" or reason not in _REPLACED:
        return None
    key = next((each.fact.fact_key for each in build.pool.facts if each.fact.fact_id == fact_id), None)
    held = (fact for fact in build.packet.long_term.facts if fact.fact_key == key and fact.fact_id != fact_id)
    return next((f"fact:{fact.fact_id}" for fact in held), None)


def _items(build: Build) -> dict[str, Any]:
    """Everything in a packet that can be added or removed, by a name that is stable across builds."""
    packet = build.packet.to_wire()
    short, long = packet["short_term"], packet["long_term"]
    items: dict[str, Any] = {f"state:{key}": value for key, value in short["working_state"].items()}
    for kind, quotes in (("quote", short.get("key_quotes", ())), ("turn", short.get("conversation_window", ()))):
        for quote in quotes:  # a long result is quoted in several stretches
            items.setdefault(f"{kind}:{quote['evidence_id']}", []).append(quote)
    items |= {f"loop:{loop['question']}": loop for loop in short.get("open_loops", ())}
    items |= {f"tool:{tool['ref']}": tool for tool in short.get("last_tool_evidence", ())}
    items |= {f"fact:{fact['fact_id']}": fact for fact in long["facts"]}
    items |= {f"procedure:{each['procedure_id']}": each for each in long["procedures"]}
    items |= {f"episode:{each['episode_id']}": each for each in long["episodes"]}
    for name in ("hypotheses", "strategy_sketches", "patterns"):
        items |= {f"insight:{each['id']}": each for each in packet["insight"][name]}
    if short["rolling_summary"]:
        items["summary"] = short["rolling_summary"]
    return items


def _rules(build: Build) -> frozenset[str]:
    """The rules shown in its text."""
    return frozenset() if build.rules is None or build.rules.omitted is not None else frozenset(build.rules.rule_ids)


def _why_no_rule(build: Build, rule_id: str, told: Callable[[str], str | None]) -> str:
    if build.rules is not None and build.rules.omitted is not None and rule_id in build.rules.rule_ids:
        return build.rules.omitted
    return told(rule_id) or _RULE_NOT_GIVEN


def _why(build: Build, name: str) -> str:
    lines = build.packet.explain.selected
    return next((line for line in lines if _is_named(selected_name(line), name)), "it was not a candidate before")


def _why_not(build: Build, name: str) -> str:
    omitted = (item for item in build.packet.explain.omitted if _is_named(item.item, name))
    return next((item.reason for item in omitted), "it is no candidate any more")


def _is_named(candidate: str, name: str) -> bool:
    """True if the explanation's name refers to this item: words may have several candidates, and a state has parts."""
    id_ = name.partition(":")[2]
    named = candidate.partition(":")[2]
    return named.partition("#")[0] == id_ or (candidate.startswith("state:") and named.startswith(f"{id_}."))


def _request_differences(a: Build, b: Build) -> list[str]:
    left, right = a.request.to_wire(), b.request.to_wire()
    names = sorted(name for name in (left.keys() | right.keys()) - _NOT_ASKED if left.get(name) != right.get(name))
    return [*names, *(["policy"] if a.policy.digest != b.policy.digest else [])]


PREVIEW = "preview"
"""Replaces the id: nothing was kept."""
WINDOW_TURNS_MAX = 10_000
WindowTurns = Annotated[
    int,
    Numeric(integral=True, minimum=0, maximum=WINDOW_TURNS_MAX),
    Expect(f"window_turns should be a whole number from 0 to {WINDOW_TURNS_MAX}"),
]
Basis = Literal["then", "candidates", "now"]
_GATHERING = (
    "window_turns", "tool_evidence_max", "claims_max", "questions_max", "conflicts_max", "failures_max", "quotes_max",
    "candidates_max",
)  # fmt: skip
"""Settings for how much is gathered: larger values need more than a build kept."""


class Preview(Record):
    """A packet composed only for inspection, and its comparison with the original build."""

    basis: Basis
    """The origin of its inputs. `then`: the store as the build saw it. `candidates`: the store has changed, and these
    are the candidates that the build kept. `now`: the current store.
    """
    packet: MemoryPacket
    text: str
    tokens: Count
    found: bool
    marks: dict[str, str]
    request: ComposeRequest
    diff: BuildDiff
    """The differences from the build."""


class PreviewRequest(Request):
    """A preview request: the settings beyond those of a packet request."""

    window_turns: WindowTurns
    basis: Annotated[str, one_of(("then", "now"), "{given!r} is nothing to compose from")]


class Settings(NamedTuple):
    """The settings of a packet; None keeps the build's."""

    purpose: Any = None
    query: Any = None
    max_tokens: Any = None
    per_section: Mapping[str, int] | None = None
    window_turns: Any = None


def preview_build(
    ctx: Context,
    build: Build,
    settings: Settings,
    policy: Policy | None,
    wanted: str,
    why_no_rule: Callable[[str], str | None] = lambda _: None,
) -> Preview:
    """Compose a build's request again with other settings, and compare the two."""
    policy = policy or build.policy
    settings = _filled(build, settings, policy)
    asked = settings._asdict()
    checked(PreviewRequest, window_turns=asked.pop("window_turns"), basis=wanted)
    checked(BuildRequest, cues=None, **asked)
    policy = _with_window(policy, settings.window_turns)
    inputs, basis = _inputs(ctx, build, settings, policy, wanted)
    made = compose_inputs(ctx, inputs, policy, PREVIEW)
    return Preview(
        basis=basis,
        packet=made.packet,
        text=made.text,
        tokens=made.tokens,
        found=made.found,
        marks=dict(made.marks),
        request=made.request,
        diff=diff_builds(build, made, why_no_rule),
    )


def _inputs(ctx: Context, build: Build, settings: Settings, policy: Policy, wanted: str) -> tuple[BuildInputs, Basis]:
    """The inputs of the preview, and their origin."""
    if wanted == "then":
        own, then = _filled(build, Settings(), build.policy), build.request.local_now
        again = _gathered(ctx, build, own, build.policy, then)
        if again.rules == build.rules:
            is_same = settings == own and policy == build.policy
            inputs = again if is_same else _gathered(ctx, build, settings, policy, then)
            if again.pool == build.pool:
                return inputs, "then"
            if inputs.rules == build.rules and _is_enough(build, inputs, policy):
                return _of_candidates(ctx, build, inputs), "candidates"
    return _gathered(ctx, build, settings, policy, None), "now"


def _filled(build: Build, settings: Settings, policy: Policy) -> Settings:
    """The settings, completed from the build."""
    request = build.request
    known = Settings(request.purpose, request.query, _asked(build), {}, policy.compose.window_turns)
    return Settings(*(own if given is None else whole(given) for given, own in zip(settings, known, strict=True)))


def _gathered(ctx: Context, build: Build, settings: Settings, policy: Policy, now: str | None) -> BuildInputs:
    """The inputs that `compose` would gather with these settings from the current store."""
    request = build.request
    return gather_inputs(
        ctx,
        request.scope,
        settings.purpose,
        query=settings.query,
        cues=request.cues.to_wire(),
        max_tokens=settings.max_tokens,
        per_section=_given_caps(build) | dict(settings.per_section or {}),
        policy=policy,
        now=now,
        task_type=request.task_type,
        exclude_session=bool(request.exclude_session),
        exclude=request.exclude or (),
    )


def _asked(build: Build) -> int:
    """The requested budget: the packet's, plus the tokens of its rules."""
    rules = build.rules
    return build.request.budget.max_tokens + (0 if rules is None or rules.omitted is not None else rules.tokens)


def _given_caps(build: Build) -> dict[str, int]:
    """The caps set by the caller, as opposed to the policy's shares."""
    budget, shares = build.request.budget, build.policy.compose.shares
    caps: dict[str, int] = budget.per_section.to_wire()
    return {name: cap for name, cap in caps.items() if cap != int(budget.max_tokens * getattr(shares, name))}


def _with_window(policy: Policy, window_turns: int) -> Policy:
    if window_turns == policy.compose.window_turns:
        return policy
    plain = policy.to_wire()
    compose: Any = plain.get("compose", {})
    return type(policy).from_wire({**plain, "compose": {**compose, "window_turns": window_turns}})


def _is_enough(build: Build, inputs: BuildInputs, policy: Policy) -> bool:
    """True if the build's candidates suffice; a different query needs others."""
    is_asked_alike = inputs.request.query == build.request.query
    return is_asked_alike and policy.recall == build.policy.recall and _is_within(policy.compose, build.policy.compose)


def _is_within(policy: ComposePolicy, known: ComposePolicy) -> bool:
    return all(getattr(policy, name) <= getattr(known, name) for name in _GATHERING)


def _of_candidates(ctx: Context, build: Build, inputs: BuildInputs) -> BuildInputs:
    """The build's candidates for the other request, with the session's numbers for them."""
    scope, ids = build.request.scope, build.pool.evidence_ids()
    held = ctx.engine.read(scope.tenant_id, lambda reader: read_marks(reader, scope, ids, ctx.cache(KeptMarks)))
    marks = KnownMarks(numbers=held.numbers, next_number=held.next_number)
    return inputs._replace(request=inputs.request.model_copy(update={"marks": marks}), pool=build.pool)

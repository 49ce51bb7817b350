"""The composer's input: a request, and the pool of all candidates.

Both are stored with a build, which refers to the turns of its pool by id: composing it again reads them from the ledger
(MP-16).
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Self

from pydantic_core import to_json

from muniment.contracts.packet import (
    Cues,
    Fact,
    InsightItem,
    OpenLoop,
    PacketBudget,
    Procedure,
    Purpose,
    WorkingState,
)
from muniment.core.canonical import Written, ordered_keys
from muniment.core.instants import local_form
from muniment.core.record import Absent, Count, Items, JsonObject, Number, Numeric, Record, Timestamp
from muniment.core.scope import IdText, Scope, Trust
from muniment.memory.turns import EpisodeCandidate, SessionLine, Turn

__all__ = [
    "CUE_PART",
    "SAID_LATELY",
    "UNKNOWN_NUMBER",
    "ComposeRequest",
    "FactCandidate",
    "GivenRules",
    "HitCandidate",
    "InsightCandidate",
    "KnownMarks",
    "NotGathered",
    "Pool",
    "ProcedureCandidate",
    "ProfileCandidate",
    "RunBasis",
    "ToolCandidate",
    "ids_in_kept",
    "read_kept",
    "version_name",
    "versions_of",
    "written_table",
]


CUE_PART = "cue"
"""Part of a hit's score: the number of the caller's cues it matches."""


SAID_LATELY = "said by the user lately"
"""The reason given for hits among the user's newest turns."""


class HitCandidate(Record):
    """A turn found by the search, its probability of being evidence (`score`, 0 to 1), and the reasons."""

    turn: Turn
    score: Number
    parts: dict[str, float]
    reasons: Items[str]


class ProfileCandidate(Record):
    """A stretch of a user's turn chosen for the profile, with the gate's scores."""

    turn: Turn
    start: Count
    end: Count
    """Characters of the turn's text."""
    safety: Count
    wish: Count


class FactCandidate(Record):
    """A fact of any status and scope level. `score` is its match with the query, 0 if there is none."""

    fact: Fact
    trust: Trust
    recorded_at: str
    version: Count
    score: Number
    is_preference: bool
    stale_dependency: bool
    is_many_valued: Absent[bool] = None
    """True if its key holds facts of several levels at once."""
    since: Absent[str] = None
    """Start of its validity, or the time it was said; absent in older builds."""


def version_name(fact_id: str, version: int) -> str:
    """The name by which a request excludes this version of a fact from a packet, until its value changes."""
    return f"{fact_id}@{version}"


def versions_of(facts: Iterable[FactCandidate], fact_ids: Iterable[str]) -> tuple[str, ...]:
    """The names of these facts in their versions among the candidates, in order."""
    asked = set(fact_ids)
    newest: dict[str, int] = {}
    for each in facts:
        if each.fact.fact_id in asked:
            newest[each.fact.fact_id] = max(each.version, newest.get(each.fact.fact_id, 0))
    return tuple(sorted(version_name(fact_id, version) for fact_id, version in newest.items()))


class ProcedureCandidate(Record):
    procedure: Procedure
    trust: Trust
    usage: Count
    recorded_at: str


class InsightCandidate(Record):
    insight: InsightItem
    trust: Trust
    run_id: IdText
    run_is_finished: bool
    recorded_at: str


class ToolCandidate(Record):
    """A recent tool result, as a reference and a line about it; never its payload."""

    ref: IdText
    summary: str
    ts: str
    trust: Trust
    flags: Items[str]


class NotGathered(Record):
    """Counts for one kind: how many the scope holds, how many are in the pool, and why the others are not."""

    kind: str
    held: Count | None
    """None: an unknown number."""
    gathered: Count
    reasons: dict[str, Count | None]
    """Counts by reason; None: an unknown number."""

    @classmethod
    def of(cls, kind: str, held: int | None, gathered: int, reasons: Mapping[str, int]) -> Self:
        """From counts that add up; if the pool holds other things than were counted, the number is unknown."""
        told: dict[str, int | None] = {reason: count for reason, count in reasons.items() if count}
        if held is not None and (min(reasons.values(), default=0) < 0 or held != gathered + sum(reasons.values())):
            held, told = None, dict.fromkeys(told)
        return cls.unchecked({"kind": kind, "held": held, "gathered": gathered, "reasons": told})

    def less(self, gathered: int, reasons: Mapping[str, int]) -> Self:
        """The counts after gathering more, reduced by reason; unknown ones stay unknown. If a reason's count is smaller
        than its reduction, the counts were of other things and the number becomes unknown.
        """
        left: dict[str, int | None] = {}
        for name in {**self.reasons, **reasons}:
            count = self.reasons.get(name, 0 if self.held is not None else None)
            left[name] = None if count is None else count - reasons.get(name, 0)
        told = {name: count for name, count in left.items() if count != 0 and name in self.reasons}
        held = self.held
        if any(count is not None and count < 0 for count in left.values()):
            held, told = None, dict.fromkeys(told)
        return self.unchecked({"kind": self.kind, "held": held, "gathered": self.gathered + gathered, "reasons": told})

    def to_report(self) -> JsonObject:
        """The report in `explain.filters`."""
        reasons: JsonObject = {reason: _told(count) for reason, count in self.reasons.items()}
        return {"held": _told(self.held), "gathered": self.gathered, "not_gathered": reasons}


UNKNOWN_NUMBER = "unknown number"


def _told(count: int | None) -> int | str:
    return UNKNOWN_NUMBER if count is None else count


class KnownMarks(Record):
    """The numbers that earlier packets of the session gave to evidence that may appear in this one."""

    numbers: dict[str, Count]
    """By evidence id."""
    next_number: Count
    """The next number to assign."""


class VectorsRead(Record):
    """The extent of a user's vectors when a search compared them, as they are made after the write."""

    embedder: str
    """Its identity."""
    entries: Count
    """The number of the user's first entries whose turns had vectors."""
    of: Count


class ComposeRequest(Record):
    """A packet request: scope, purpose, budget and time."""

    scope: Scope
    purpose: Purpose
    query: str
    task_type: str
    cues: Cues
    budget: PacketBudget
    policy_id: str
    now: Timestamp
    utc_offset: Absent[Annotated[int, Numeric(integral=True)]] = None
    """The UTC offset of the caller's clock in minutes, if known and not zero."""
    exclude_session: Absent[bool] = None
    """True to exclude everything said in this session."""
    exclude: Absent[Items[str]] = None
    """Events to exclude from the packet, and facts by version (`FACT_ID@VERSION`)."""
    in_view: Absent[Items[IdText]] = None
    """Builds of the session that the model still sees, oldest first: the text omits what they show."""
    marks: Absent[KnownMarks] = None
    """Absent if no earlier packet of the session was kept."""
    vectors: Absent[VectorsRead] = None
    """Absent if the search used words only."""

    @property
    def local_now(self) -> str:
        """`now` by the caller's clock."""
        return self.now if self.utc_offset is None else local_form(self.now, self.utc_offset)


class GivenRules(Record):
    """A run's rules, placed before the packet in a prompt: outside of it, and counted."""

    selection_id: str
    rule_ids: Items[str]
    text: str
    tokens: Count
    omitted: Absent[str] = None
    """The reason they are omitted, if the budget had no room."""


class RunBasis(Record):
    """The basis of the run's own state in a pool."""

    sources: Items[str]
    """Items of the run and their entries; forgetting one forgets the build."""
    trust: dict[str, Trust]
    """The trust of a question's author, by evidence id."""
    outdated: Absent[dict[str, str]] = None
    """Outdated results in the session, each with the newer call that replaces it."""


class Pool(Record):
    """Everything the composer may choose from, each list best first."""

    working_state: WorkingState | None
    facts: Items[FactCandidate]
    procedures: Items[ProcedureCandidate]
    insights: Items[InsightCandidate]
    hits: Items[HitCandidate]
    window: Items[Turn]
    """The last turns of this session, oldest first."""
    summary: Items[SessionLine]
    """The summary of this session: settled points, the caller's summary, the best sentences; each oldest first."""
    loops: Items[OpenLoop]
    tools: Items[ToolCandidate]
    episodes: Items[EpisodeCandidate]
    run: Absent[RunBasis] = None
    profile: Items[ProfileCandidate] = ()
    """Statements about the user's safety and standing wishes, oldest first."""
    not_gathered: Items[NotGathered] = ()
    """Counts of stored items not gathered. Kinds that are complete are not listed."""

    @property
    def quotable(self) -> list[Turn]:
        """The quotable turns: those of the profile, and the search hits."""
        return [*(each.turn for each in self.profile), *(hit.turn for hit in self.hits)]

    def evidence_ids(self) -> set[str]:
        """All evidence of the pool, which may get a mark."""
        ids = {turn.id for turn in (*self.quotable, *self.window)}
        for line in self.summary:
            ids.update((line.evidence_id, *(line.sources or ())))
        ids |= {tool.ref for tool in self.tools}
        ids |= {loop.evidence_id for loop in self.loops if loop.evidence_id}
        for episode in self.episodes:
            ids.update(episode.sources, (line.evidence_id for line in episode.lines))
        ids.update(*(each.fact.sources for each in self.facts))
        ids.update(*(each.procedure.sources or () for each in self.procedures))
        ids.update(*(each.insight.sources or () for each in self.insights))
        if self.working_state is not None:
            ids.update(_named_evidence(self.working_state.to_wire()))
        return ids

    def to_kept(self) -> JsonObject:
        """The pool as a build stores it: turns by id, since the ledger has them. A tool's long result is stored in
        full: the query decided which parts are included.
        """
        kept = self.model_dump(mode="json", exclude_unset=True, by_alias=True, exclude=_KEPT_APART)
        kept["hits"] = [
            {"turn": _kept_turn(hit.turn), "score": hit.score, "parts": dict(hit.parts), "reasons": list(hit.reasons)}
            for hit in self.hits
        ]
        kept["window"] = [_kept_turn(turn) for turn in self.window]
        kept["profile"] = [
            {"turn": each.turn.id, "start": each.start, "end": each.end, "safety": each.safety, "wish": each.wish}
            for each in self.profile
        ]
        return kept


_KEPT_APART: dict[str, Any] = {"hits": True, "window": True, "profile": True}


def _kept_turn(turn: Turn) -> str | JsonObject:
    return turn.id if turn.excerpt is None else turn.to_wire()


def ids_in_kept(wire: dict[str, Any]) -> list[str]:
    """The ids of the turns that a stored pool names without containing them."""
    named = [*(each["turn"] for each in (*wire["hits"], *wire.get("profile", ()))), *wire["window"]]
    return list(dict.fromkeys(turn for turn in named if isinstance(turn, str)))


_EVIDENCE_KEYS = frozenset(("evidence_id", "evidence_ids", "ref", "side_a", "side_b", "sources"))


def _named_evidence(value: Any) -> Iterator[str]:
    """The ids that a JSON value names as evidence, at any depth."""
    if isinstance(value, dict):
        for key, part in value.items():
            if key in _EVIDENCE_KEYS:
                yield from (each for each in (part if isinstance(part, list) else [part]) if isinstance(each, str))
            yield from _named_evidence(part)
    elif isinstance(value, list):
        for part in value:
            yield from _named_evidence(part)


def read_kept(wire: dict[str, Any], turns: Mapping[str, Turn]) -> Pool:
    """The pool of a stored build, with the turns that it names. Hit parts of earlier composers that are now unknown are
    dropped.
    """

    def whole(turn: Any) -> Any:
        return turns[turn].to_wire() if isinstance(turn, str) else turn

    hits = [{name: hit[name] for name in HitCandidate.model_fields if name in hit} for hit in wire["hits"]]
    for hit in hits:
        hit["turn"] = whole(hit["turn"])
    profile = [{**each, "turn": whole(each["turn"])} for each in wire.get("profile", ())]
    return Pool.from_wire(
        {**wire, "hits": hits, "profile": profile, "window": [whole(turn) for turn in wire["window"]]}
    )


def written_table(table: Mapping[str, str | int]) -> Written:
    """A table of texts or integers as canonical JSON, for which any writer produces the same bytes."""
    return Written(to_json({key: table[key] for key in ordered_keys(table)}).decode())

"""What the composer is handed: a request, and the pool of everything it may choose from.

Both are stored with a build, which names the turns of its pool by their ids: composing it again reads them from the
ledger (MP-16).
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
"""Among the parts of a hit: how many of the caller's cues it carries."""


SAID_LATELY = "said by the user lately"
"""The reason for hits that are among the newest turns of the user's own."""


class HitCandidate(Record):
    """A turn that the search found, how likely it is evidence (`score`, 0 to 1), and why."""

    turn: Turn
    score: Number
    parts: dict[str, float]
    reasons: Items[str]


class ProfileCandidate(Record):
    """A stretch of one of the user's turns that the profile chose, with the gate's scores of it."""

    turn: Turn
    start: Count
    end: Count
    """Characters of the turn's text."""
    safety: Count
    wish: Count


class FactCandidate(Record):
    """A fact of any status and scope level. `score` is its match with the query, 0 where it has none."""

    fact: Fact
    trust: Trust
    recorded_at: str
    version: Count
    score: Number
    is_preference: bool
    stale_dependency: bool
    is_many_valued: Absent[bool] = None
    """Of its key, facts of several levels hold at once."""
    since: Absent[str] = None
    """From when it is said to hold, or when it was said; builds of before do not tell."""


def version_name(fact_id: str, version: int) -> str:
    """How a request names a fact as it stands, so that it is left out of a packet until it says something else."""
    return f"{fact_id}@{version}"


def versions_of(facts: Iterable[FactCandidate], fact_ids: Iterable[str]) -> tuple[str, ...]:
    """The names of these facts as they stand among the candidates, in order."""
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
    """How much of one kind a store holds for the scope, how much of that is in the pool, and why the rest is not."""

    kind: str
    held: Count | None
    """None: an unknown number."""
    gathered: Count
    reasons: dict[str, Count | None]
    """By reason, how many; None: an unknown number."""

    @classmethod
    def of(cls, kind: str, held: int | None, gathered: int, reasons: Mapping[str, int]) -> Self:
        """Of counts that add up; where the pool holds other things than were counted, the number is unknown."""
        told: dict[str, int | None] = {reason: count for reason, count in reasons.items() if count}
        if held is not None and (min(reasons.values(), default=0) < 0 or held != gathered + sum(reasons.values())):
            held, told = None, dict.fromkeys(told)
        return cls.unchecked({"kind": kind, "held": held, "gathered": gathered, "reasons": told})

    def less(self, gathered: int, reasons: Mapping[str, int]) -> Self:
        """With so many more gathered, and by reason so many fewer left; what is unknown stays so. Where fewer were
        counted under a reason than are taken from it, the counts were of other things: the number is unknown.
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
        """As `explain.filters` has it."""
        reasons: JsonObject = {reason: _told(count) for reason, count in self.reasons.items()}
        return {"held": _told(self.held), "gathered": self.gathered, "not_gathered": reasons}


UNKNOWN_NUMBER = "unknown number"


def _told(count: int | None) -> int | str:
    return UNKNOWN_NUMBER if count is None else count


class KnownMarks(Record):
    """The numbers that the session's packets before this one gave to evidence that may stand in it too."""

    numbers: dict[str, Count]
    """By evidence id."""
    next_number: Count
    """What comes next gets this one."""


class VectorsRead(Record):
    """How far the vectors of a user went when a search compared them: they are made behind the writing."""

    embedder: str
    """Its identity."""
    entries: Count
    """The first entries of the user whose turns had a vector, of those that there were."""
    of: Count


class ComposeRequest(Record):
    """Who asks, for what purpose, with what budget, at what time."""

    scope: Scope
    purpose: Purpose
    query: str
    task_type: str
    cues: Cues
    budget: PacketBudget
    policy_id: str
    now: Timestamp
    utc_offset: Absent[Annotated[int, Numeric(integral=True)]] = None
    """How many minutes the clock of whoever asks is ahead of UTC, if that is known and not zero."""
    exclude_session: Absent[bool] = None
    """True where nothing that was said in this session is to stand in the packet."""
    exclude: Absent[Items[str]] = None
    """Events that are not to stand in the packet, and facts as they stood (`FACT_ID@VERSION`)."""
    in_view: Absent[Items[IdText]] = None
    """Builds of the session that the model still has before it, oldest first: the text says only what they do not."""
    marks: Absent[KnownMarks] = None
    """Absent where no packet of the session was kept before."""
    vectors: Absent[VectorsRead] = None
    """Absent where the search was by words alone."""

    @property
    def local_now(self) -> str:
        """`now` as the clock of whoever asks shows it."""
        return self.now if self.utc_offset is None else local_form(self.now, self.utc_offset)


class GivenRules(Record):
    """The rules of a run as they stand before the packet in a prompt: outside of it, and counted."""

    selection_id: str
    rule_ids: Items[str]
    text: str
    tokens: Count
    omitted: Absent[str] = None
    """Why they are not there, where the budget left no room for them."""


class RunBasis(Record):
    """What the run's own state in a pool rests on."""

    sources: Items[str]
    """Items of the run and the entries they were made from: if one is forgotten, so is the build."""
    trust: dict[str, Trust]
    """Whose word a question of the run is, by its evidence."""
    outdated: Absent[dict[str, str]] = None
    """Results in the session that no longer hold, each with the newer call that says so."""


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
    """What sums up this session: what was settled, what the caller gave, the best sentences; each oldest first."""
    loops: Items[OpenLoop]
    tools: Items[ToolCandidate]
    episodes: Items[EpisodeCandidate]
    run: Absent[RunBasis] = None
    profile: Items[ProfileCandidate] = ()
    """What protects the user and what they asked for lastingly, oldest first."""
    not_gathered: Items[NotGathered] = ()
    """What the stores hold besides, counted. A kind of which everything is here is not named."""

    @property
    def quotable(self) -> list[Turn]:
        """The turns that may be quoted: those of the profile, and those that were searched for."""
        return [*(each.turn for each in self.profile), *(hit.turn for hit in self.hits)]

    def evidence_ids(self) -> set[str]:
        """All evidence that something of the pool rests on, and that so may get a mark."""
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
        """The pool as a build keeps it: turns by their ids, since the ledger has them. A tool's long result is kept:
        the query decided which parts of it are here."""
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
    """The ids of the turns that a kept pool names and does not hold."""
    named = [*(each["turn"] for each in (*wire["hits"], *wire.get("profile", ()))), *wire["window"]]
    return list(dict.fromkeys(turn for turn in named if isinstance(turn, str)))


_EVIDENCE_KEYS = frozenset(("evidence_id", "evidence_ids", "ref", "side_a", "side_b", "sources"))


def _named_evidence(value: Any) -> Iterator[str]:
    """The ids that a JSON value names as evidence, wherever they stand in it."""
    if isinstance(value, dict):
        for key, part in value.items():
            if key in _EVIDENCE_KEYS:
                yield from (each for each in (part if isinstance(part, list) else [part]) if isinstance(each, str))
            yield from _named_evidence(part)
    elif isinstance(value, list):
        for part in value:
            yield from _named_evidence(part)


def read_kept(wire: dict[str, Any], turns: Mapping[str, Turn]) -> Pool:
    """The pool of a stored build, with the turns that it names. What an earlier composer kept of a hit and this one
    does not know is left out."""

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
    """A table of texts or whole numbers as canonical JSON: any writer makes the same bytes of these."""
    return Written(to_json({key: table[key] for key in ordered_keys(table)}).decode())

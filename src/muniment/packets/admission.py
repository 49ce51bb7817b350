"""Admission to a packet: trust, exclusions, the time range, and the wall between a responder and insights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import chain
from typing import Any

from muniment.contracts.packet import Cues, Purpose
from muniment.core.canonical import canonical_text
from muniment.core.instants import Instant, parse_rfc3339
from muniment.core.limits import remembered
from muniment.core.policy import ComposePolicy
from muniment.core.record import JsonObject
from muniment.core.scope import FOREIGN, Trust
from muniment.core.text.analyzer import analyze
from muniment.core.text.sentences import words_of
from muniment.errors import InvalidInput
from muniment.memory.tool_results import call_without_failure
from muniment.memory.turns import Turn
from muniment.packets.explain import Reason
from muniment.packets.pool import ComposeRequest, InsightCandidate, Pool, version_name
from muniment.store.injection import has_injection_form, reads_like_instructions
from muniment.store.ledger import INSTRUCTION_LIKE, imported_from

__all__ = [
    "SOFT",
    "Admission",
    "AskedCues",
    "Wall",
    "barred",
    "emitted_ts",
    "instant_order",
]

SOFT = "soft"
"""The cue key that turns filters into boosts."""


class AskedCues:
    """The parsed cues of a request."""

    def __init__(self, cues: Cues) -> None:
        self.is_soft = is_soft(cues)
        self.start, self.end = _instant(cues, "start"), _instant(cues, "end")
        self.has_range = self.start is not None or self.end is not None
        self.tags, self.entities, self.keywords = map(_words, (cues.tags, cues.entities, cues.keywords))
        terms = [frozenset(analyze(word)) for word in (*self.tags, *self.entities, *self.keywords)]
        self._terms = tuple(each for each in terms if each)
        self._named = tuple(frozenset(analyze(word)) for word in self.entities)
        self._key = tuple(frozenset(analyze(word)) for word in self.keywords)

    @property
    def is_given(self) -> bool:
        """True if the caller gave any cue."""
        return bool(self.has_range or self.tags or self.entities or self.keywords)

    def to_report(self) -> JsonObject:
        """The report in `explain.filters`: the effect of each cue."""
        told: JsonObject = {}
        if self.has_range:
            told["time_range"] = "wall" if self.is_wall else "lift"
        labels = "choose, where any turn or episode carries one" if self.chooses else "lift"
        told |= {key: labels for key, given in (("tags", self.tags), ("entities", self.entities)) if given}
        return told | ({"keywords": "lift"} if self.keywords else {})

    @property
    def is_wall(self) -> bool:
        """True if a time range excludes everything outside it."""
        return self.has_range and not self.is_soft

    @property
    def chooses(self) -> bool:
        """True if tags or entities exclude untagged items, given that something is tagged."""
        return bool(self.tags or self.entities) and not self.is_soft

    def holds(self, start: str | None, end: str | None = None) -> bool:
        """True if this moment or period overlaps the range; False for things without a time."""
        first = parse_rfc3339(start) if start else None
        if first is None:
            return False
        last = max(first, (parse_rfc3339(end) if end else None) or first)
        return (self.start is None or last >= self.start) and (self.end is None or first <= self.end)

    def bars(self, start: str | None, end: str | None = None) -> Reason | None:
        """The reason the range excludes a moment or period; None if it does not."""
        return "out_of_window" if self.is_wall and not self.holds(start, end) else None

    def bars_lasting(self, start: str | None, end: str | None) -> Reason | None:
        """The reason the range excludes a state lasting from `start` to `end`, or until now; None if it does not."""
        return "out_of_window" if self.is_wall and not self.holds_lasting(start, end) else None

    def holds_lasting(self, start: str | None, end: str | None) -> bool:
        """True if a state lasting from `start` to `end`, or until now, overlaps the range."""
        first, last = parse_rfc3339(start or ""), parse_rfc3339(end or "")
        is_before = last is not None and self.start is not None and last < self.start
        is_after = first is not None and self.end is not None and first > self.end
        return not (is_before or is_after)

    def says(self, text: str) -> bool:
        """True if a text contains a tag, an entity or a keyword."""
        return bool(self._terms) and _says(text, self._terms)

    def names(self, text: str) -> bool:
        """True if a text contains an entity."""
        return bool(self._named) and _says(text, self._named)

    def says_keyword(self, text: str) -> bool:
        """True if a text contains a keyword."""
        return bool(self._key) and _says(text, self._key)


def is_soft(cues: Cues) -> bool:
    given = (cues.model_extra or {}).get(SOFT, False)
    if not isinstance(given, bool):
        raise InvalidInput("soft is true or false", path=f"$.cues.{SOFT}", hint="leave it out for a wall")
    return given


def _instant(cues: Cues, key: str) -> Instant | None:
    text = getattr(cues.time_range, key, None)
    if text is None:
        return None
    moment = parse_rfc3339(text)
    if moment is None:
        raise InvalidInput(
            f"{text!r:.60} names no instant",
            path=f"$.cues.time_range.{key}",
            hint="write RFC 3339 with an offset, such as 2026-05-01T12:00:00Z",
        )
    return moment


def _words(given: tuple[str, ...] | None) -> tuple[str, ...]:
    return tuple(word for word in given or () if word.strip())


def _says(text: str, wanted: tuple[frozenset[str], ...]) -> bool:
    said = set(analyze(text))
    return any(terms <= said for terms in wanted if terms)


_QUERY_CHARS_MAX = 10_000
_STATEMENT_WORDS_MIN = 3
"""A shorter statement is only recognised as a whole text, not inside one."""
_EARLIEST = Instant(0, "")


class Wall:
    """Keeps unvalidated insights from a responder."""

    def __init__(self, insights: Iterable[InsightCandidate], purpose: Purpose) -> None:
        held = [each.insight for each in insights if each.insight.validation_state != "validated"]
        self._stands = purpose == "responder"
        self._ids = frozenset(item.id for item in held) if self._stands else frozenset()
        statements = [words_of(item.statement) for item in held] if self._stands else []
        self._whole = frozenset(_joined(words) for words in statements if words)
        self._parts = tuple(_joined(words) for words in statements if len(words) >= _STATEMENT_WORDS_MIN)

    @property
    def is_up(self) -> bool:
        """True if any insight is held back."""
        return bool(self._ids)

    def bars_id(self, *evidence_ids: str) -> bool:
        """True if one of them is a held-back insight."""
        return not self._ids.isdisjoint(evidence_ids)

    def bars_text(self, text: str) -> bool:
        """True if the text repeats a held-back statement."""
        if not self._whole:
            return False
        said = _joined(words_of(text))
        return said in self._whole or any(part in said for part in self._parts)

    def bars_value(self, value: Any) -> bool:
        """True if a JSON value repeats a held-back statement in its texts or keys, or holds an object marked as
        unvalidated.
        """
        if not self._stands:
            return False
        if isinstance(value, str):
            return self.bars_text(value) or self.bars_id(value)
        if isinstance(value, Mapping):
            if "validation_state" in value and value["validation_state"] != "validated":
                return True
            return any(self.bars_value(part) for pair in value.items() for part in pair)
        if isinstance(value, list | tuple):
            return any(self.bars_value(each) for each in value)
        return False


def _joined(words: list[str]) -> str:
    return f" {' '.join(words)} "


def barred(policy: ComposePolicy, purpose: Purpose, trust: Trust, flags: Iterable[str] = ()) -> Reason | None:
    """The reason a purpose must not see an item, by its provenance (LG-08)."""
    if trust in getattr(policy, f"barred_trust_{purpose}"):
        return "trust"
    if not policy.quote_instruction_like and INSTRUCTION_LIKE in flags:
        return "instruction_like"
    return None


class Admission:
    """A request and its pool, and the admission decision for everything in the pool."""

    def __init__(self, request: ComposeRequest, pool: Pool, policy: ComposePolicy) -> None:
        now = parse_rfc3339(request.now)
        if now is None:
            raise InvalidInput(
                f"{request.now!r:.60} names no instant",
                path="$.now",
                hint="write RFC 3339 with an offset, such as 2026-05-01T12:00:00Z",
            )
        self.request, self.pool, self.policy, self.now = request, pool, policy, now
        self.purpose = request.purpose
        self.cues = AskedCues(request.cues)
        self.wall = Wall(pool.insights, request.purpose)
        asked = " ".join((request.query[:_QUERY_CHARS_MAX], *self.cues.keywords))
        self.terms = frozenset(analyze(asked[:_QUERY_CHARS_MAX]))
        self.turns = {turn.id: turn for turn in chain(pool.window, pool.quotable)}
        self.lines = {
            line.evidence_id: line
            for line in chain(*(episode.lines for episode in pool.episodes), pool.summary)
            if line.evidence_id not in self.turns
        }
        """Sentences of turns that are not in the pool themselves."""
        self.answers: dict[str, dict[str, str]] = {
            **{name: line.cited for name, line in self.lines.items() if line.cited is not None},
            **{name: turn.cited for name, turn in self.turns.items() if turn.cited is not None},
        }
        """Answers to earlier pages, and the evidence their marks named."""
        self.superseded = _find_repeated_calls(pool)
        """Outdated results, each with the newer call that replaces it."""
        self._tools = frozenset(tool.ref for tool in pool.tools)
        self._barred: tuple[Trust, ...] = getattr(policy, f"barred_trust_{request.purpose}")
        self._withheld = self._withheld_ids()

    @property
    def is_asked(self) -> bool:
        """True if there is a query or keywords to find evidence for."""
        return bool(self.request.query.strip() or any(word.strip() for word in self.cues.keywords))

    # -- admission --------------------------------------------------------------------------------------

    def bars(self, trust: Trust, flags: Iterable[str] = ()) -> Reason | None:
        """The reason to exclude an item by its provenance."""
        return barred(self.policy, self.purpose, trust, flags)

    def bars_words(self, trust: Trust, words: Any, *, instructs: bool = False) -> Reason | None:
        """The reason to exclude text derived from external evidence: its words read like a prompt injection.

        With `instructs`, for text that is an instruction by nature, only plain injections are excluded.
        """
        if trust not in FOREIGN or self.policy.quote_instruction_like:
            return None
        text = words if isinstance(words, str) else canonical_text(words)
        return "instruction_like" if _reads_like_instructions(text, instructs) else None

    def bars_evidence(self, evidence_id: str | None) -> Reason | None:
        """The reason to exclude an item resting on this evidence: a held-back insight, or evidence excluded itself."""
        if evidence_id is None:
            return None
        if self.wall.bars_id(evidence_id):
            return "insight_wall"
        return self._withheld.get(evidence_id)

    def bars_sentence(self, evidence_id: str | None, text: str) -> Reason | None:
        """The reason to exclude a sentence: by its evidence, or by its words unless they are the user's."""
        if (reason := self.bars_evidence(evidence_id)) is not None:
            return reason
        turn = self.turns.get(evidence_id) if evidence_id else None
        if turn is not None and turn.role == "user" and text in turn.text:
            return None
        return "insight_wall" if self.wall.bars_text(text) else None

    def bars_turn(self, turn: Turn) -> Reason | None:
        """The reason to exclude a turn: its provenance, repeated words, or its time."""
        if turn.id in self._withheld or turn.flags or self.wall.is_up or self._barred or self.cues.is_wall:
            return (
                self.bars(turn.trust, turn.flags) or self.bars_sentence(turn.id, turn.text) or self.cues.bars(turn.ts)
            )
        return None

    def leaves_out_version(self, fact_id: str, version: int) -> bool:
        """True if the caller excludes this version of the fact. Once its value changes it is another version."""
        return self._withheld.get(version_name(fact_id, version)) == "excluded"

    def _withheld_ids(self) -> dict[str, Reason]:
        found: dict[str, Reason] = dict.fromkeys(self.request.exclude or (), "excluded")
        for turn in self.turns.values():
            if (turn.flags or turn.trust in self._barred) and (reason := self.bars(turn.trust, turn.flags)) is not None:
                found[turn.id] = reason
        if self._barred:
            found |= {name: "trust" for name, line in self.lines.items() if line.trust in self._barred}
        for tool in self.pool.tools:
            if (reason := self.bars(tool.trust, tool.flags)) is not None:
                found.setdefault(tool.ref, reason)
        if self._barred and self.pool.run is not None:
            found |= {name: "trust" for name, trust in self.pool.run.trust.items() if trust in self._barred}
        return found

    # -- speaker and time -----------------------------------------------------------------------------------

    def said_at(self, evidence_id: str | None) -> str | None:
        """The time of a piece of evidence, if known here."""
        said = None if evidence_id is None else self.turns.get(evidence_id) or self.lines.get(evidence_id)
        return None if said is None else said.ts

    def who(self, evidence_id: str) -> str | None:
        """The speaker's name or role; None if unknown."""
        said = self.turns.get(evidence_id) or self.lines.get(evidence_id)
        if said is None:
            return None
        if said.role == "tool" and said.speaker and self.wall.bars_text(said.speaker):
            return said.role  # a call's arguments may repeat a held-back statement
        name, origin = said.speaker or said.role, imported_from(said.flags or ())
        return name if origin is None else f"{name}, imported from {origin}"  # MV-02

    def is_result(self, evidence_id: str) -> bool:
        """True for a tool's result."""
        if (turn := self.turns.get(evidence_id)) is not None:
            return turn.kind == "tool_result"
        line = self.lines.get(evidence_id)
        return evidence_id in self._tools if line is None or not (line.speaker or line.role) else line.role == "tool"


@remembered(4096)
def _reads_like_instructions(text: str, instructs: bool) -> bool:
    return has_injection_form(text) if instructs else reads_like_instructions(text)


@lru_cache(maxsize=4096)
def instant_order(ts: str | None) -> Instant:
    """A sort key for time stamps: invalid ones come first."""
    return (parse_rfc3339(ts) if ts else None) or _EARLIEST


@lru_cache(maxsize=4096)
def emitted_ts(ts: str) -> str | None:
    """A time stamp in packet form, or None if it is invalid."""
    return ts if instant_order(ts).seconds else None


def _find_repeated_calls(pool: Pool) -> dict[str, str]:
    """Map outdated results to the newer calls that replace them: in this session by its calls, in others if the pool
    holds the same call with another result.
    """
    results = [
        (turn.session_id, turn.speaker, instant_order(turn.ts), turn.seq, turn.id, turn.text)
        for turn in (*pool.window, *pool.quotable)
        if turn.kind == "tool_result" and turn.speaker and "…" not in turn.speaker
    ]
    newest: dict[tuple[str, str], tuple[Any, ...]] = {}
    repeated: dict[str, str] = {}
    for session_id, call, *when, id_, text in sorted(results, key=lambda each: each[2:5], reverse=True):
        _, newer, said = newest.setdefault((session_id, call_without_failure(call) or call), (when, id_, text))
        if newer != id_ and said != text:
            repeated[id_] = newer
    own = pool.run.outdated if pool.run is not None else None
    return repeated | (own or {})
